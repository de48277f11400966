//! Calls outside a run: an operator tries a skill's tool, with the skill's own grants and limits.

use std::sync::Arc;

use palyra_client::api::CallSkillResponse;
use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError as _};
use palyra_executors::{SkillHost, output_invalid};
use palyra_plugins_runtime::{CallOptions, Finished, ToolCall};
use palyra_skills::{SkillError, SkillId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Skills;
use crate::dispatch::{Refusal, Result};

/// Where the module of a call comes from.
pub(crate) enum ModuleSource {
    /// It is the installed one.
    Installed,
    /// It came with the call. It gets the limits of the daemon and no grants at all.
    Inline(Vec<u8>),
}

impl Skills {
    /// Runs a tool once and says what it took.
    pub(crate) async fn run_wasm_plugin(
        self: &Arc<Self>,
        skill_id: &SkillId,
        tool: &str,
        input: Value,
        source: ModuleSource,
    ) -> Result<CallSkillResponse> {
        let cancel = CancellationToken::new();
        let _stop = cancel.clone().drop_guard();
        let runtime = self.runtime().map_err(|error| Refusal::from(error.to_stable()))?.runtime;
        let (plugin, options, output) = match source {
            ModuleSource::Installed => {
                self.opened.get_or_init(|| self.bind_all()).await;
                // Says why it may not run, if it may not.
                self.with_index(|index| index.runnable(skill_id).map(drop))?;
                let Some(bound) = self.bindings().get(skill_id.as_str()).cloned() else {
                    return Err(self.not_bound(skill_id).await);
                };
                let callable = bound.callable.get(tool).ok_or_else(|| no_tool(skill_id, tool))?;
                if let Err(errors) = callable.schemas.input.check(&input) {
                    return Err(Refusal::field("input", errors.join("; ")));
                }
                let settings = Arc::clone(&callable.plugin.settings);
                let host = SkillHost::new(skill_id.as_str(), "a call outside a run", self.services.clone(), settings);
                let options = callable.plugin.options(host, cancel);
                (Arc::clone(&callable.plugin.plugin), options, Some(Arc::clone(&callable.schemas)))
            }
            ModuleSource::Inline(_) if !self.policy.allow_inline_modules => return Err(inline_refused()),
            ModuleSource::Inline(wasm) => {
                let preparing = runtime.clone();
                let prepared = tokio::task::spawn_blocking(move || preparing.prepare(&wasm)).await;
                let prepared = prepared.map_err(|error| Refusal::internal(error.to_string()))?;
                let plugin = prepared.map_err(|error| Refusal::from(error.to_stable()))?;
                let options = CallOptions { limits: self.policy.ceiling.clone(), cancel, ..CallOptions::default() };
                (plugin, options, None)
            }
        };
        let call = ToolCall { tool: tool.to_owned(), input: input.to_string(), options };
        let Finished { value, usage } =
            runtime.call_tool(&plugin, call).await.map_err(|failed| Refusal::from(failed.to_stable()))?;
        let given: std::result::Result<Value, String> = match output {
            Some(schemas) => schemas.read_output(&value),
            None => serde_json::from_str(&value).map_err(|error| error.to_string()),
        };
        let given = given.map_err(|why| Refusal::from(output_invalid(&format!("{skill_id}.{tool}"), &why)))?;
        Ok(CallSkillResponse {
            output: given,
            fuel: usage.fuel,
            memory_bytes: usage.memory_bytes,
            micros: u64::try_from(usage.wall.as_micros()).unwrap_or(u64::MAX),
            host_calls: usage.host_calls,
        })
    }

    /// Why a skill that may run is not bound: its archive says it, or else the log.
    async fn not_bound(self: &Arc<Self>, skill_id: &SkillId) -> Refusal {
        let (skills, skill_id) = (Arc::clone(self), skill_id.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let record = skills.with_index(|index| index.runnable(&skill_id).cloned())?;
            skills.load(&record)?;
            Ok::<_, SkillError>(skill_id)
        });
        match looked.await {
            Ok(Err(error)) => error.into(),
            Ok(Ok(skill_id)) => {
                let message = format!("the skill `{skill_id}` cannot run at the moment");
                StableErrorEnvelope::new("skill_not_bound", ErrorCategory::Availability, message)
                    .hint("see the daemon's log for the reason")
                    .into()
            }
            Err(error) => Refusal::internal(error.to_string()),
        }
    }
}

fn no_tool(skill_id: &SkillId, tool: &str) -> Refusal {
    let message = format!("the skill `{skill_id}` has no tool `{tool}`");
    StableErrorEnvelope::new("skill_tool_missing", ErrorCategory::NotFound, message)
        .hint(format!("`palyra skills info {skill_id}` lists its tools"))
        .into()
}

fn inline_refused() -> Refusal {
    let message = "a call may not carry its own module";
    StableErrorEnvelope::new("inline_module_refused", ErrorCategory::Policy, message)
        .hint("pack and install it as a skill, or set `plugins.allow_inline_modules` in palyra.toml")
        .into()
}
