//! Modules against the manifest: what they import, what they export, how large they are.

use std::collections::{BTreeMap, BTreeSet};

use palyra_plugins::{ABI_VERSION, HostInterface, classify_import};

use super::AuditPolicy;
use super::module::{self, ModuleFacts, ModuleKind};
use super::report::{AuditCode, Findings};
use crate::error::shown;
use crate::manifest::SecretUse;
use crate::{SkillArchive, SkillManifest};

/// The export by which a core module is called.
const CORE_EXPORT: &str = "run";

/// What an entry point needs of its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Tool,
    Hook,
}

impl Need {
    fn interface(self) -> String {
        let name = match self {
            Self::Tool => "tool",
            Self::Hook => "hook",
        };
        format!("palyra:plugin/{name}@{ABI_VERSION}")
    }
}

/// The powers that modules really import.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) http: bool,
    reveal: bool,
    storage: bool,
    channel: bool,
    config: bool,
}

/// Checks every module and says which powers they use together.
pub(super) fn check(archive: &SkillArchive, policy: &AuditPolicy, found: &mut Findings) -> Used {
    let needs = needs_of(archive);
    let mut used = Used::default();
    for (path, wasm) in archive.modules() {
        if wasm.len() as u64 > policy.max_module_bytes {
            found.fail(
                AuditCode::ModuleTooLarge,
                Some(path),
                format!("`{path}` has {} bytes; the limit is {}", wasm.len(), policy.max_module_bytes),
            );
            continue;
        }
        let wanted = needs.get(path);
        if wanted.is_none() {
            found.warn(AuditCode::ModuleUnused, Some(path), format!("no entry point uses `{path}`"));
        }
        match module::read(wasm) {
            Err(reason) => {
                found.fail(
                    AuditCode::ModuleMalformed,
                    Some(path),
                    format!("`{path}` is not valid WebAssembly: {reason}"),
                );
            }
            Ok(facts) => {
                check_imports(path, &facts, archive.manifest(), policy, &mut used, found);
                check_exports(path, &facts, wanted, policy, found);
                check_memory(path, &facts, archive.manifest(), found);
            }
        }
    }
    check_unused(archive.manifest(), &used, found);
    used
}

/// Which entry points each module serves.
fn needs_of(archive: &SkillArchive) -> BTreeMap<String, BTreeSet<Need>> {
    let manifest = archive.manifest();
    let mut needs: BTreeMap<String, BTreeSet<Need>> = BTreeMap::new();
    let tools = manifest.tools.iter().map(|tool| (Need::Tool, &tool.id, tool.module.as_deref()));
    let hooks = manifest.hooks.iter().map(|hook| (Need::Hook, &hook.id, hook.module.as_deref()));
    for (need, id, named) in tools.chain(hooks) {
        if let Ok((path, _)) = archive.module_of(id, named) {
            needs.entry(path.to_owned()).or_default().insert(need);
        }
    }
    needs
}

fn check_imports(
    path: &str,
    facts: &ModuleFacts,
    manifest: &SkillManifest,
    policy: &AuditPolicy,
    used: &mut Used,
    found: &mut Findings,
) {
    let count = facts.imports.len() + facts.odd_imports.len();
    if count > policy.max_imports {
        found.fail(
            AuditCode::ImportsTooMany,
            Some(path),
            format!("`{path}` has {count} imports; the limit is {}", policy.max_imports),
        );
    }
    for import in facts.odd_imports.iter().take(policy.max_imports) {
        found.fail(
            AuditCode::ImportForeign,
            Some(path),
            format!("`{path}` imports `{}`, which is not a whole interface", shown(import)),
        );
    }
    let capabilities = &manifest.capabilities;
    for import in facts.imports.iter().take(policy.max_imports) {
        let interface = match classify_import(import) {
            // A core module has no types to pass more than numbers with.
            Ok(Some(interface)) if facts.kind == ModuleKind::Component || interface == HostInterface::Capabilities => {
                Some(interface)
            }
            Ok(None) if facts.kind == ModuleKind::Component => None,
            _ => {
                found.fail(
                    AuditCode::ImportForeign,
                    Some(path),
                    format!("`{path}` imports `{}`, which Palyra does not provide", shown(import)),
                );
                continue;
            }
        };
        let (declared, power) = match interface {
            // `wasi:io` and `wasi:clocks` come along with any guest that was built for WASI; only the two of HTTP are a power.
            None if import.starts_with("wasi:http/") => {
                used.http = true;
                (!capabilities.http.is_empty(), "requests")
            }
            Some(HostInterface::Http) => {
                used.http = true;
                (!capabilities.http.is_empty(), "requests")
            }
            Some(HostInterface::SecretReveal) => {
                used.reveal = true;
                (capabilities.secrets.iter().any(|secret| secret.usage == SecretUse::Reveal), "the values of secrets")
            }
            Some(HostInterface::Storage) => {
                used.storage = true;
                (!capabilities.storage.is_empty(), "storage")
            }
            Some(HostInterface::Channel) => {
                used.channel = true;
                (!capabilities.channels.is_empty(), "messages to channels")
            }
            Some(HostInterface::Config) => {
                used.config = true;
                (true, "settings")
            }
            None
            | Some(
                HostInterface::Capabilities
                | HostInterface::Failures
                | HostInterface::Log
                | HostInterface::Progress
                | HostInterface::Clock
                | HostInterface::Random,
            ) => (true, ""),
        };
        if !declared {
            found.fail(
                AuditCode::ImportUndeclared,
                Some(path),
                format!("`{path}` imports `{import}`, but the manifest does not ask for {power}"),
            );
        }
    }
}

fn check_exports(
    path: &str,
    facts: &ModuleFacts,
    wanted: Option<&BTreeSet<Need>>,
    policy: &AuditPolicy,
    found: &mut Findings,
) {
    if facts.exports.len() > policy.max_exports {
        found.fail(
            AuditCode::ExportsTooMany,
            Some(path),
            format!("`{path}` has {} exports; the limit is {}", facts.exports.len(), policy.max_exports),
        );
    }
    for need in wanted.into_iter().flatten() {
        let export = match (facts.kind, need) {
            (ModuleKind::Component, need) => need.interface(),
            (ModuleKind::Core, Need::Tool) => CORE_EXPORT.to_owned(),
            (ModuleKind::Core, Need::Hook) => {
                found.fail(
                    AuditCode::ExportMissing,
                    Some(path),
                    format!("`{path}` is a core module; hooks need a component"),
                );
                continue;
            }
        };
        if !facts.exports.contains(&export) {
            found.fail(AuditCode::ExportMissing, Some(path), format!("`{path}` does not export `{export}`"));
        }
    }
    if facts.kind == ModuleKind::Component {
        let known = [Need::Tool.interface(), Need::Hook.interface()];
        for export in facts.exports.iter().filter(|export| !known.contains(export)).take(8) {
            found.warn(
                AuditCode::ExportUnknown,
                Some(path),
                format!("`{path}` exports `{}`, which nothing uses", shown(export)),
            );
        }
    }
}

fn check_memory(path: &str, facts: &ModuleFacts, manifest: &SkillManifest, found: &mut Findings) {
    let quota = manifest.quotas.max_memory_bytes;
    if facts.initial_memory > quota {
        found.fail(
            AuditCode::MemoryOverQuota,
            Some(path),
            format!("`{path}` starts with {} bytes of memory; its quota is {quota}", facts.initial_memory),
        );
    }
}

fn check_unused(manifest: &SkillManifest, used: &Used, found: &mut Findings) {
    let asked = &manifest.capabilities;
    // A secret that is put into requests needs no import of its own.
    let secrets_unused = !asked.secrets.is_empty() && !used.http && !used.reveal;
    for (unused, what) in [
        (!asked.http.is_empty() && !used.http, "requests"),
        (!asked.storage.is_empty() && !used.storage, "storage"),
        (!asked.channels.is_empty() && !used.channel, "channels"),
        (secrets_unused, "secrets"),
    ] {
        if unused {
            found.warn(
                AuditCode::CapabilityUnused,
                None,
                format!("the manifest asks for {what}, but no module uses it"),
            );
        }
    }
    if !manifest.config.is_empty() && !used.config {
        found.note(AuditCode::CapabilityUnused, None, "the manifest has settings, but no module reads any");
    }
}
