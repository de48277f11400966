//! From an installed skill to what the engine calls: its tools, and the plugins behind its hooks.

use std::collections::BTreeMap;
use std::sync::Arc;

use palyra_common::{HookEvent, Risk, SkillStatus};
use palyra_executors::{BoundPlugin, SkillRuntime, SkillTool, ToolSchemas, grant_set, skill_settings};
use palyra_plugins_runtime::{CapabilityGrantSet, Plugin, Revocation};
use palyra_skills::{LoadedSkill, SkillError, SkillRecord, ToolEntrypoint};
use palyra_tools::{Tool, ToolDeclaration, ToolName};

use super::policy::WasmPluginRunnerPolicy;

/// Which skills are bound to which plugins, at this moment.
#[derive(Default, Clone)]
pub(crate) struct PluginBindingsIndex {
    bound: BTreeMap<String, Arc<BoundSkill>>,
}

/// One skill that may run.
pub(crate) struct BoundSkill {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The same tools by their id in the skill, for calls outside a run.
    pub(crate) callable: BTreeMap<String, Callable>,
    pub(crate) hooks: BTreeMap<String, BoundHook>,
    revocation: Revocation,
}

/// A tool for calls outside a run.
pub(crate) struct Callable {
    pub(crate) plugin: BoundPlugin,
    pub(crate) schemas: Arc<ToolSchemas>,
}

/// A hook.
pub(crate) struct BoundHook {
    pub(crate) plugin: BoundPlugin,
    pub(crate) events: Vec<HookEvent>,
}

impl PluginBindingsIndex {
    /// The skill, if it may run.
    pub(crate) fn get(&self, skill_id: &str) -> Option<&Arc<BoundSkill>> {
        self.bound.get(skill_id)
    }

    /// Every tool of every skill.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.bound.values().flat_map(|skill| skill.tools.iter())
    }

    /// Puts a skill in the place of what it was before. What is under way of the old one loses its grants.
    pub(crate) fn put(&mut self, skill_id: &str, skill: Option<BoundSkill>) {
        let before = match skill {
            Some(skill) => self.bound.insert(skill_id.to_owned(), Arc::new(skill)),
            None => self.bound.remove(skill_id),
        };
        if let Some(before) = before {
            before.revocation.revoke();
        }
    }
}

/// Makes a skill callable. Blocks while modules are compiled that were never compiled here.
pub(crate) fn bind(
    record: &SkillRecord,
    loaded: &LoadedSkill,
    policy: &WasmPluginRunnerPolicy,
    shared: &SkillRuntime,
) -> Result<BoundSkill, SkillError> {
    debug_assert_eq!(record.status, SkillStatus::Enabled);
    let archive = &loaded.archive;
    let manifest = archive.manifest();
    let revocation = Revocation::default();
    let settings = Arc::new(skill_settings(manifest, &record.config));
    // Requested ∩ manifest ∩ operator; a skill requests what its manifest says.
    let asked = grant_set(&manifest.capabilities);
    let mut prepared: BTreeMap<String, Arc<Plugin>> = BTreeMap::new();
    let mut plugin = |entrypoint: &str, named: Option<&str>| -> Result<BoundPlugin, SkillError> {
        let (path, wasm) = archive.module_of(entrypoint, named)?;
        let plugin = match prepared.get(path) {
            Some(plugin) => Arc::clone(plugin),
            None => {
                let plugin = shared
                    .runtime
                    .prepare(wasm)
                    .map_err(|error| SkillError::Tampered { reason: format!("`{path}` cannot be loaded: {error}") })?;
                prepared.insert(path.to_owned(), Arc::clone(&plugin));
                plugin
            }
        };
        Ok(BoundPlugin {
            skill_id: manifest.skill_id.to_string(),
            plugin,
            limits: policy.limits(manifest.quotas),
            grants: CapabilityGrantSet::narrowed(&asked, &asked, &grant_set(&record.grants)),
            settings: Arc::clone(&settings),
            revocation: revocation.clone(),
        })
    };
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    let mut callable = BTreeMap::new();
    for tool in &manifest.tools {
        let bound = plugin(&tool.id, tool.module.as_deref())?;
        let schemas = Arc::new(schemas(tool)?);
        let declaration = declaration(&manifest.tool_name(tool), manifest.skill_id.as_str(), tool)?;
        callable.insert(tool.id.clone(), Callable { plugin: bound.clone(), schemas: Arc::clone(&schemas) });
        tools.push(Arc::new(SkillTool::new(declaration, &tool.id, schemas, bound, shared.clone())));
    }
    let mut hooks = BTreeMap::new();
    for hook in &manifest.hooks {
        let mut bound = plugin(&hook.id, hook.module.as_deref())?;
        if let Some(deadline_ms) = hook.deadline_ms {
            bound.limits.wall_clock = bound.limits.wall_clock.min(std::time::Duration::from_millis(deadline_ms));
        }
        hooks.insert(hook.id.clone(), BoundHook { plugin: bound, events: hook.events.clone() });
    }
    Ok(BoundSkill { tools, callable, hooks, revocation })
}

/// Compiled here, once for all calls until the skill changes.
fn schemas(tool: &ToolEntrypoint) -> Result<ToolSchemas, SkillError> {
    ToolSchemas::compile(&tool.input_schema, &tool.output_schema)
        .map_err(|reason| SkillError::Tampered { reason: format!("`{}`: {reason}", tool.id) })
}

/// Stands for the arguments while the declaration is made; the manifest's schema takes its place.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {}

fn declaration(name: &str, skill_id: &str, tool: &ToolEntrypoint) -> Result<ToolDeclaration, SkillError> {
    let tool_name = ToolName::new(name.to_owned())
        .map_err(|error| SkillError::Tampered { reason: format!("`{name}` is not a valid tool name: {error}") })?;
    let mut declaration = ToolDeclaration::of::<Anything>(tool_name, &tool.name, &format!("call {name}"))
        .classified(&tool.classification())
        .reporting_begin();
    declaration.description.clone_from(&tool.description);
    declaration.input_schema = tool.input_schema.clone().into();
    declaration.skill = Some(skill_id.to_owned());
    if tool.risk.requires_approval {
        // What the policies take for "a person looks first".
        declaration.risk = Risk::Critical;
    }
    Ok(declaration)
}
