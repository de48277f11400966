//! Commands about hooks: which plugins are told of which events.

use palyra_agent::{HookBindingRecord, HookBindingRow, HookFailureMode};
use palyra_client::api::{HookView, ListHooksResponse, SetHookParams};

use super::refusal::{Refusal, Result};
use crate::app::App;

pub(super) async fn list(app: &App) -> Result<ListHooksResponse> {
    let rows = app.engine.hook_bindings().await?;
    Ok(ListHooksResponse { hooks: rows.into_iter().map(view).collect() })
}

/// Binds an event; the skill has to be there and to have such a hook.
pub(super) async fn set(app: &App, by: &str, params: SetHookParams) -> Result<HookView> {
    app.skills.check_hook(&params.plugin_id, params.event)?;
    let id = params.hook_id.unwrap_or_else(|| {
        let event = params.event.as_str().replace([':', '_'], "-");
        format!("{}-{event}", params.plugin_id.replace('#', "-"))
    });
    let mut binding = HookBindingRecord::new(id, params.event, params.plugin_id);
    binding.order = params.order;
    if let Some(deadline_ms) = params.deadline_ms {
        binding.deadline_ms = deadline_ms;
    }
    match params.fail_open {
        Some(true) => binding.on_failure = HookFailureMode::FailOpen,
        Some(false) => binding.on_failure = HookFailureMode::FailClosed,
        None => {}
    }
    binding.enabled = params.enabled.unwrap_or(true);
    binding.tools = params.tools;
    Ok(view(app.engine.bind_hook(binding, by).await?))
}

pub(super) async fn remove(app: &App, by: &str, id: &str) -> Result<HookView> {
    app.engine.unbind_hook(id, by).await.map(view).map_err(Refusal::from)
}

fn view(row: HookBindingRow) -> HookView {
    let binding = row.binding;
    HookView {
        hook_id: binding.id,
        event: binding.event,
        plugin_id: binding.plugin_id,
        order: binding.order,
        deadline_ms: binding.deadline_ms,
        fail_open: binding.on_failure == HookFailureMode::FailOpen,
        enabled: binding.enabled,
        tools: binding.tools,
    }
}
