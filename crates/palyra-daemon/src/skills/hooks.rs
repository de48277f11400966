//! Hooks of skills, behind the engine's port.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use palyra_agent::{HookAnswer, HookBindingRecord, HookFailure, HookOccurrence, HookRunner};
use palyra_executors::SkillHost;
use palyra_plugins_runtime::{HookCall, PluginError};
use tokio_util::sync::CancellationToken;

use super::Skills;

/// The skills as the engine's hooks.
pub(crate) struct SkillHooks(pub(crate) Arc<Skills>);

#[async_trait]
impl HookRunner for SkillHooks {
    async fn run(
        &self,
        binding: &HookBindingRecord,
        occurrence: &HookOccurrence,
        deadline: Duration,
    ) -> Result<HookAnswer, HookFailure> {
        let skills = &self.0;
        skills.opened.get_or_init(|| skills.bind_all()).await;
        let (skill_id, hook) = binding
            .plugin_id
            .split_once('#')
            .map_or((binding.plugin_id.as_str(), None), |(skill, id)| (skill, Some(id)));
        let bindings = skills.bindings();
        let unavailable = |why: String| HookFailure::Unavailable(why);
        let bound = bindings.get(skill_id).ok_or_else(|| unavailable(format!("`{skill_id}` is not enabled")))?;
        let (_, hook) = bound
            .hooks
            .iter()
            .find(|(id, bound)| hook.is_none_or(|hook| hook == *id) && bound.events.contains(&binding.event))
            .ok_or_else(|| unavailable(format!("`{}` has no hook for {}", binding.plugin_id, binding.event)))?;
        let call = format!("hook {} at {}", binding.id, occurrence.id);
        let settings = Arc::clone(&hook.plugin.settings);
        let host = SkillHost::new(skill_id, &call, skills.services.clone(), settings);
        let cancel = CancellationToken::new();
        // The engine drops this future when the deadline passes; the guest must not go on without it.
        let _stop = cancel.clone().drop_guard();
        let mut options = hook.plugin.options(host, cancel);
        options.limits.wall_clock = options.limits.wall_clock.min(deadline);
        let mut payload = occurrence.payload.clone();
        if let Some(members) = payload.as_object_mut() {
            // The same when it is told again after a crash, so that a hook can recognise it.
            members.insert("occurrence_id".to_owned(), occurrence.id.clone().into());
        }
        let asked = HookCall {
            event: occurrence.event,
            at: occurrence.at,
            run_id: occurrence.run_id.map(|id| id.to_string()),
            payload: payload.to_string(),
            options,
        };
        let runtime = skills.runtime().map_err(|error| unavailable(error.to_string()))?;
        let answer =
            runtime.runtime.call_hook(&hook.plugin.plugin, asked).await.map_err(|failed| match failed.error {
                PluginError::DeadlineExceeded { .. } => HookFailure::TimedOut,
                error => HookFailure::Failed(error.to_string()),
            })?;
        Ok(HookAnswer { decision: answer.value.verdict, reason: answer.value.reason, text: answer.value.text })
    }
}
