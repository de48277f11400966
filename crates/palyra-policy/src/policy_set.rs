//! A set of policies: everything that is in force at one time, loaded as one.
//!
//! INVARIANT: a [`PolicySet`] that exists was parsed, validated strictly and indexed as a whole. There is no set with a part left out
//! because that part was bad.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use cedar_policy::{Policy, PolicySet as CedarSet, ValidationMode};
use palyra_common::Digest;
use serde::Serialize;

use crate::annotations::Annotations;
use crate::command_cache::CommandCache;
use crate::compile::{self, Compiled, REACH, compile};
use crate::deep_stack::on_deep_stack;
use crate::error::one_line;
use crate::names::Names;
use crate::slices::{Slice, slice};
use crate::source::{MAX_FILE_BYTES, MAX_POLICIES, MAX_SET_BYTES, PolicySource, read_directory};
use crate::{ActionKind, Grant, Place, PolicyError, SHIPPED_POLICIES};

/// Where the policies of a set come from.
#[derive(Debug, Clone, Default)]
pub struct PolicySources {
    /// Texts: the shipped ones and others that hold beside the operator's.
    pub texts: Vec<PolicySource>,
    /// The operator's directory; it is read anew at each load.
    pub directory: Option<PathBuf>,
    /// Texts that stand in for files of the directory with the same stem, or beside them.
    pub overrides: Vec<PolicySource>,
    /// Grants besides those of the directory.
    pub grants: Vec<Grant>,
    /// The patterns that people agreed to.
    pub agreed: Option<PolicySource>,
}

impl PolicySources {
    /// The shipped policies.
    #[must_use]
    pub fn shipped() -> Self {
        let texts = SHIPPED_POLICIES.iter().map(|file| PolicySource::new(file.name, file.text)).collect();
        Self { texts, ..Self::default() }
    }

    /// The same with an operator's directory.
    #[must_use]
    pub fn with_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The same with a text that stands in for the directory's file of that name, if there is one.
    #[must_use]
    pub fn with_override(mut self, text: PolicySource) -> Self {
        self.overrides.push(text);
        self
    }

    /// The same with one more text.
    #[must_use]
    pub fn with_text(mut self, text: PolicySource) -> Self {
        self.texts.push(text);
        self
    }

    /// The same with more grants.
    #[must_use]
    pub fn with_grants(mut self, grants: impl IntoIterator<Item = Grant>) -> Self {
        self.grants.extend(grants);
        self
    }
}

/// What is known about one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyEntry {
    /// Its stable id.
    pub id: String,
    /// Where it stands.
    pub at: Place,
    /// Its text.
    pub text: String,
    /// What its annotations say.
    pub annotations: Annotations,
    /// The template it was made from, if it is a grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

/// A set of policies, ready to decide.
#[derive(Debug, Clone)]
pub struct PolicySet {
    pub(crate) cedar: CedarSet,
    pub(crate) entries: BTreeMap<String, PolicyEntry>,
    pub(crate) templates: BTreeMap<String, PolicyEntry>,
    pub(crate) slices: BTreeMap<ActionKind, Slice>,
    pub(crate) tests: Vec<PolicySource>,
    /// Decisions on commands that this very set made; another set has another cache.
    pub(crate) commands: Arc<CommandCache>,
    /// What the texts were compiled to, so that a set can be extended without doing it again.
    compiled: Vec<Compiled>,
    grants: Vec<Grant>,
    size: u64,
    digest: Digest,
}

impl PolicySet {
    /// Loads and validates everything, or nothing.
    ///
    /// # Errors
    /// With the first fault found; see [`PolicyError`].
    pub fn load(sources: &PolicySources) -> Result<Self, PolicyError> {
        let mut all = sources.clone();
        let mut tests = Vec::new();
        if let Some(directory) = all.directory.take() {
            let found = read_directory(&directory)?;
            let stands = |file: &PolicySource| all.overrides.iter().all(|other| other.stem != file.stem);
            let kept: Vec<PolicySource> = found.policies.into_iter().filter(stands).collect();
            all.texts.extend(kept);
            all.grants.extend(found.grants);
            tests = found.tests;
        }
        all.texts.append(&mut all.overrides);
        all.texts.extend(all.agreed.take());
        on_deep_stack(|| Self::empty(tests).and(&all.texts, all.grants))
    }

    /// The shipped policies alone.
    ///
    /// # Errors
    /// Never, unless the program was built from broken files.
    pub fn shipped() -> Result<Self, PolicyError> {
        Self::load(&PolicySources::shipped())
    }

    /// This set with more policies and grants, as it was when it was loaded.
    ///
    /// # Errors
    /// When the addition is faulty.
    pub fn extended(&self, texts: &[PolicySource], grants: Vec<Grant>) -> Result<Self, PolicyError> {
        let mut base = Self::empty(self.tests.clone());
        base.compiled.clone_from(&self.compiled);
        base.grants.clone_from(&self.grants);
        base.size = self.size;
        on_deep_stack(|| base.and(texts, grants))
    }

    fn empty(tests: Vec<PolicySource>) -> Self {
        Self {
            cedar: CedarSet::new(),
            entries: BTreeMap::new(),
            templates: BTreeMap::new(),
            slices: BTreeMap::new(),
            tests,
            commands: Arc::default(),
            compiled: Vec::new(),
            grants: Vec::new(),
            size: 0,
            digest: Digest::of(&[]),
        }
    }

    /// What was compiled before, with these texts and grants, as one set.
    fn and(mut self, texts: &[PolicySource], grants: Vec<Grant>) -> Result<Self, PolicyError> {
        let names = Names::get()?;
        self.size = check_sizes(self.size, texts)?;
        for source in texts {
            self.compiled.extend(compile(names, source)?);
        }
        self.grants.extend(grants);
        if self.compiled.len().saturating_add(self.grants.len()) > MAX_POLICIES {
            return Err(PolicyError::SetTooLarge { limit: MAX_POLICIES as u64, unit: "policies" });
        }
        for compiled in &self.compiled {
            let (Compiled::Policy(_, entry) | Compiled::Template(_, entry)) = compiled;
            if let Some(first) = self.entries.get(&entry.id).or_else(|| self.templates.get(&entry.id)) {
                let (id, at) = (entry.id.clone(), entry.at.clone());
                return Err(PolicyError::DuplicateId { id, at, first: first.at.clone() });
            }
            match compiled {
                Compiled::Policy(policy, entry) => {
                    self.cedar.add(policy.clone()).map_err(PolicyError::broken)?;
                    self.entries.insert(entry.id.clone(), entry.clone());
                }
                Compiled::Template(template, entry) => {
                    self.cedar.add_template(template.clone()).map_err(PolicyError::broken)?;
                    self.templates.insert(entry.id.clone(), entry.clone());
                }
            }
        }
        self.link_grants(names)?;
        self.slices = slice(names, &self.cedar, &self.entries)?;
        self.commands = Arc::new(CommandCache::of(&self.slices));
        self.digest = self.fingerprint();
        Ok(self)
    }

    fn link_grants(&mut self, names: &Names) -> Result<(), PolicyError> {
        if self.grants.is_empty() {
            return Ok(());
        }
        for grant in &self.grants {
            grant.link(&mut self.cedar)?;
            let template = self.templates.get(&grant.template).ok_or_else(|| PolicyError::UnknownTemplate {
                grant: grant.id.clone(),
                template: grant.template.clone(),
            })?;
            let slots = [("principal", &grant.principal), ("resource", &grant.resource)];
            let filled =
                slots.iter().filter_map(|(slot, value)| value.as_ref().map(|value| format!("?{slot} = {value}")));
            let entry = PolicyEntry {
                id: grant.policy_id(),
                text: format!("{} with {}", grant.template, filled.collect::<Vec<_>>().join(", ")),
                template: Some(grant.template.clone()),
                ..template.clone()
            };
            self.entries.insert(entry.id.clone(), entry);
        }
        let result = names.validator.validate_with_level(&self.cedar, ValidationMode::Strict, REACH);
        let Some(error) = result.validation_errors().next() else { return Ok(()) };
        let id: &str = error.policy_id().as_ref();
        match id.strip_prefix("grant.") {
            Some(grant) => Err(PolicyError::BadGrant { grant: grant.to_owned(), reason: one_line(&error.to_string()) }),
            None => Err(compile::invalid(Place { file: id.to_owned(), line: 1 }, error)),
        }
    }

    fn fingerprint(&self) -> Digest {
        let mut parts: Vec<&[u8]> = Vec::new();
        for entry in self.entries.values().chain(self.templates.values()) {
            parts.push(entry.id.as_bytes());
            parts.push(entry.text.as_bytes());
        }
        Digest::of_parts(&parts)
    }

    /// Identifies exactly this set; stored with each decision.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// All policies in force, grants included, in the order of their ids.
    pub fn entries(&self) -> impl Iterator<Item = &PolicyEntry> {
        self.entries.values()
    }

    /// All templates, in the order of their ids.
    pub fn templates(&self) -> impl Iterator<Item = &PolicyEntry> {
        self.templates.values()
    }

    /// The policies as Cedar has them, for programs that analyse them.
    #[must_use]
    pub fn cedar(&self) -> &CedarSet {
        &self.cedar
    }

    /// The policies that can matter for an action, for programs that analyse them.
    pub fn concerning(&self, action: ActionKind) -> impl Iterator<Item = (&PolicyEntry, &Policy)> {
        let slice = self.slices.get(&action);
        let policies = slice
            .into_iter()
            .flat_map(|slice| slice.rules.policies().chain(slice.guards.policies()).chain(slice.agreed.policies()));
        policies.filter_map(|policy| self.entries.get::<str>(policy.id().as_ref()).map(|entry| (entry, policy)))
    }

    /// The test files that stand in the operator's directory.
    #[must_use]
    pub fn tests(&self) -> &[PolicySource] {
        &self.tests
    }
}

fn check_sizes(before: u64, texts: &[PolicySource]) -> Result<u64, PolicyError> {
    let mut total = before;
    for source in texts {
        let size = source.text.len() as u64;
        if size > MAX_FILE_BYTES {
            return Err(PolicyError::FileTooLarge { file: source.file.clone(), limit: MAX_FILE_BYTES });
        }
        total = total.saturating_add(size);
    }
    if total > MAX_SET_BYTES {
        return Err(PolicyError::SetTooLarge { limit: MAX_SET_BYTES, unit: "bytes" });
    }
    Ok(total)
}
