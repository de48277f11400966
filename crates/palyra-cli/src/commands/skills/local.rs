//! A skill of a folder or an archive, ready to be called here and now, without a daemon.
//!
//! A call gets what its manifest asks for, as if it were all granted. What goes in and comes out is held against the manifest's schemas, as the daemon does.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use palyra_common::{HookEvent, SystemClock, ToStableError as _};
use palyra_executors::{ToolSchemas, grant_set};
use palyra_plugins_build::{Case, CaseFailure, GuestTools, Reuse};
use palyra_plugins_runtime::{
    CacheKey, CacheOptions, CallOptions, HookCall, HostServices, Plugin, PluginRuntime, RuntimeLimits, RuntimeOptions,
    ToolCall,
};
use palyra_skills::{ArchiveInput, ArchiveLimits, SkillArchive, SkillManifest, ToolEntrypoint, pack};

use super::cases::CaseHost;
use super::make;
use crate::error::CliError;

/// A skill in a folder or an archive, ready to be called.
pub(super) struct LocalSkill {
    archive: SkillArchive,
    pub(super) runtime: PluginRuntime,
}

impl LocalSkill {
    /// Reads an archive, or builds and packs a folder in memory.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let bytes = if path.is_dir() {
            make::built(path, Reuse::Cached)?;
            pack(ArchiveInput::from_folder(path, &ArchiveLimits::default())?)?
        } else {
            super::pack::archive_bytes(path)?
        };
        let runtime = PluginRuntime::new(RuntimeOptions {
            allocation: palyra_plugins_runtime::Allocation::OnDemand { calls: 1 },
            cache: kept(),
            ..RuntimeOptions::default()
        });
        let runtime = runtime.map_err(|error| CliError::Plugin(Box::new(error.to_stable())))?;
        Ok(Self { archive: SkillArchive::read(&bytes)?, runtime })
    }

    pub(super) fn manifest(&self) -> &SkillManifest {
        self.archive.manifest()
    }

    /// A tool of the manifest, by its id.
    pub(super) fn tool(&self, id: &str) -> Option<&ToolEntrypoint> {
        self.manifest().tools.iter().find(|tool| tool.id == id)
    }

    pub(super) fn plugin(&self, entrypoint: &str, module: Option<&str>) -> Result<Arc<Plugin>, CliError> {
        let (_, wasm) = self.archive.module_of(entrypoint, module)?;
        self.runtime.prepare(wasm).map_err(|error| CliError::Plugin(Box::new(error.to_stable())))
    }

    /// What the manifest asks for, as if it were all granted.
    pub(super) fn options(&self, services: Arc<dyn HostServices>) -> CallOptions {
        let manifest = self.archive.manifest();
        let limits = RuntimeLimits {
            fuel_budget: manifest.quotas.fuel_budget,
            max_memory_bytes: manifest.quotas.max_memory_bytes,
            wall_clock: std::time::Duration::from_millis(manifest.quotas.wall_clock_timeout_ms),
            ..RuntimeLimits::default()
        };
        CallOptions { limits, grants: grant_set(&manifest.capabilities), services, ..CallOptions::default() }
    }

    /// Runs one case: what it gave as a JSON text, or the error in words.
    pub(super) async fn case(&self, case: &Case, host: Arc<CaseHost>) -> Result<Result<String, String>, CliError> {
        let manifest = self.archive.manifest();
        let options = self.options(host);
        if let Some(tool) = &case.tool {
            let plugin = self.plugin(tool, self.tool(tool).and_then(|entry| entry.module.as_deref()))?;
            let call = ToolCall { tool: tool.clone(), input: case.input_text(), options };
            let ended = self.runtime.call_tool(&plugin, call).await;
            return Ok(ended.map(|finished| finished.value).map_err(|failed| failed.to_string()));
        }
        let Some(hook) = &case.hook else { return Ok(Err("the case names neither tool nor hook".to_owned())) };
        let event: HookEvent = match hook.event.parse() {
            Ok(event) => event,
            Err(error) => return Ok(Err(format!("{error}"))),
        };
        let entry = manifest.hooks.iter().find(|entry| entry.events.contains(&event));
        let plugin = self.plugin(&hook.event, entry.and_then(|entry| entry.module.as_deref()))?;
        let asked = HookCall {
            event,
            at: palyra_common::Clock::now(&SystemClock),
            run_id: hook.run_id.clone(),
            payload: hook.payload.to_string(),
            options,
        };
        let ended = self.runtime.call_hook(&plugin, asked).await;
        Ok(ended
            .map(|finished| {
                let answer = finished.value;
                serde_json::json!({"verdict": answer.verdict, "reason": answer.reason, "text": answer.text}).to_string()
            })
            .map_err(|failed| failed.to_string()))
    }

    /// Whether what a case puts in and gets out is what the manifest says: otherwise the daemon would refuse it. A case that ends in an error may well begin
    /// with what nobody should send.
    pub(super) fn keeps_to_schemas(&self, case: &Case, told: Result<&str, &str>) -> Result<(), CaseFailure> {
        let (Some(tool), Ok(output)) = (case.tool.as_deref().and_then(|id| self.tool(id)), told) else {
            return Ok(());
        };
        let fails = |what: &str, why: &str| CaseFailure(format!("the {what} does not match the manifest: {why}"));
        let schemas = schemas(tool).map_err(|reason| fails("schema", &reason))?;
        let input = case.input.clone().unwrap_or_else(|| serde_json::json!({}));
        schemas.input.check(&input).map_err(|errors| fails("input", &errors.join("; ")))?;
        schemas.read_output(output).map(drop).map_err(|why| fails("output", &why))
    }
}

/// The schemas of a tool, or what is wrong with them.
pub(super) fn schemas(tool: &ToolEntrypoint) -> Result<ToolSchemas, String> {
    ToolSchemas::compile(&tool.input_schema, &tool.output_schema)
}

/// Compiled code is kept beside the guest compilers: an interpreter takes a minute to compile, and an author calls it again and again. Without a place for it
/// everything works, only slower.
fn kept() -> Option<CacheOptions> {
    let folder = GuestTools::of_user().ok()?.root().join("compiled");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    let key = CacheKey::load_or_create(&folder.join("key")).ok()?;
    Some(CacheOptions { dir: folder.join("code"), key })
}
