//! The set of tools a run can call, by name.
//!
//! A registry is built once and never changes, so the model's list, the reference page and what can really be called are the
//! same thing. It finds, describes and checks; it does not execute and does not decide. When outside servers come and go, a whole new
//! registry takes the place of the old one in a [`SharedRegistry`].

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::schema;
use crate::{Tool, ToolDeclaration, ToolError, ToolName, builtin, offered_schema};

/// Tools by name.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<ToolName, Entry>,
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    offered_schema: Arc<Value>,
}

impl Registry {
    /// A registry to be filled.
    #[must_use]
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// The built-in tools alone.
    pub fn builtin() -> Result<Self, ToolError> {
        Self::builder().with_all(builtin()).build()
    }

    /// The tool of that name, or an error that suggests the nearest one.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        self.tools.get(name).map(|entry| &entry.tool).ok_or_else(|| ToolError::UnknownTool {
            name: name.to_owned(),
            suggestion: nearest(name, self.tools.keys().map(ToolName::as_str)),
        })
    }

    /// Checks arguments against the schema of a tool; every wrong field is named.
    pub fn validate(&self, name: &str, arguments: &Value) -> Result<(), ToolError> {
        let tool = self.get(name)?;
        let errors = schema::check(&tool.declaration().input_schema, arguments);
        if errors.is_empty() {
            return Ok(());
        }
        Err(ToolError::InvalidArguments { tool: name.to_owned(), errors })
    }

    /// All declarations, sorted by name.
    pub fn declarations(&self) -> impl Iterator<Item = &ToolDeclaration> {
        self.tools.values().map(|entry| entry.tool.declaration())
    }

    /// All declarations, sorted by name, each with the schema that a model reads.
    pub fn offers(&self) -> impl Iterator<Item = (&ToolDeclaration, &Arc<Value>)> {
        self.tools.values().map(|entry| (entry.tool.declaration(), &entry.offered_schema))
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is no tool at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

/// The registry in force.
#[derive(Clone)]
pub struct SharedRegistry(Arc<RwLock<Arc<Registry>>>);

impl SharedRegistry {
    /// Begins with this one.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(registry))))
    }

    /// The registry in force now.
    #[must_use]
    pub fn current(&self) -> Arc<Registry> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another one in force; calls that are under way keep the tool they have.
    pub fn replace(&self, registry: Registry) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }
}

/// Collects tools; see [`Registry::builder`].
#[derive(Default)]
pub struct RegistryBuilder {
    tools: Vec<Arc<dyn Tool>>,
}

impl RegistryBuilder {
    /// Adds a tool.
    #[must_use]
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds several tools.
    #[must_use]
    pub fn with_all(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// The registry; two tools of one name are an error, never an overwrite.
    pub fn build(self) -> Result<Registry, ToolError> {
        let mut tools = BTreeMap::new();
        for tool in self.tools {
            let declaration = tool.declaration();
            let name = declaration.name.clone();
            // The schemas of others are passed on as they wrote them.
            let is_foreign = declaration.server.is_some() || declaration.skill.is_some();
            let whole = &declaration.input_schema;
            let offered_schema = if is_foreign { Arc::clone(whole) } else { Arc::new(offered_schema::offered(whole)) };
            if tools.insert(name.clone(), Entry { tool, offered_schema }).is_some() {
                return Err(ToolError::DuplicateTool { name: name.to_string() });
            }
        }
        Ok(Registry { tools })
    }
}

/// The candidate that is most like `wanted`, if any is like it at all.
///
/// The last dotted part counts as well as the whole, since models often call `read_file` or `fs.read`.
pub(crate) fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let tail = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let wanted_tail = tail(wanted);
    candidates
        .map(|name| {
            let whole = strsim::jaro_winkler(wanted, name);
            let last = if wanted_tail.is_empty() { 0.0 } else { strsim::jaro_winkler(&wanted_tail, &tail(name)) };
            (whole.max(last), name)
        })
        .filter(|(score, _)| *score >= 0.8)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
