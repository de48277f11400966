//! Hooks: an event in, an answer out that the event allows.

use palyra_common::{HookDecision, HookEvent, Timestamp};
use palyra_plugins_runtime::{CallOptions, HookAnswer, HookCall, Plugin, PluginError, allows};

use crate::harness::{RUNTIME, hook, prepare, tool};

fn event(event: HookEvent, payload: &str) -> HookCall {
    HookCall {
        event,
        at: Timestamp(1000),
        run_id: Some("run-1".to_owned()),
        payload: payload.to_owned(),
        options: CallOptions::default(),
    }
}

/// Answers with the verdict whose number is the payload's first byte, the event's name as reason and the run as text.
fn parrot() -> std::sync::Arc<Plugin> {
    prepare(&hook(
        "(i32.store8 (i32.const 512) (i32.const 0))
        (i32.store8 (i32.const 516) (i32.sub (i32.load8_u (local.get $payload)) (i32.const 48)))
        (i32.store (i32.const 520) (local.get $name)) (i32.store (i32.const 524) (local.get $name_len))
        (i32.store8 (i32.const 528) (local.get $has_run))
        (i32.store (i32.const 532) (local.get $run)) (i32.store (i32.const 536) (local.get $run_len))
        (i32.const 512)",
    ))
}

#[tokio::test]
async fn every_answer_is_understood_and_held_against_its_event() {
    let plugin = parrot();
    assert!(plugin.exports_hook() && !plugin.exports_tool());
    for hook_event in HookEvent::ALL {
        for (number, decision) in HookDecision::ALL.iter().enumerate() {
            let call = event(*hook_event, &number.to_string());
            let answered = RUNTIME.call_hook(&plugin, call).await;
            if allows(*hook_event, *decision) {
                let text = (*decision == HookDecision::TransformPreview).then(|| "run-1".to_owned());
                let expected = HookAnswer { verdict: *decision, reason: hook_event.to_string(), text };
                assert_eq!(answered.unwrap().value, expected);
            } else {
                let error = answered.unwrap_err().error;
                assert!(matches!(error, PluginError::OutOfPhase { .. }), "{hook_event} {decision}: {error:?}");
            }
        }
    }
}

#[test]
fn effects_are_stopped_only_before_they_happen() {
    use HookDecision::{Block, Continue, FailRun, RequestApproval, TransformPreview};
    for (hook_event, decision, allowed) in [
        (HookEvent::RunBeforeTool, Block, true),
        (HookEvent::RunBeforeRun, RequestApproval, true),
        (HookEvent::RunBeforeDelivery, Block, true),
        (HookEvent::RunAfterTool, Block, false),
        (HookEvent::RunAfterRun, RequestApproval, false),
        (HookEvent::GatewayStartup, Block, false),
        (HookEvent::RunBeforeDelivery, TransformPreview, true),
        (HookEvent::RunBeforeTool, TransformPreview, false),
        (HookEvent::RunAfterTool, FailRun, true),
        (HookEvent::SkillEnabled, FailRun, false),
        (HookEvent::SkillEnabled, Continue, true),
    ] {
        assert_eq!(allows(hook_event, decision), allowed, "{hook_event} {decision}");
    }
}

#[tokio::test]
async fn what_a_hook_may_not_do() {
    let failing = prepare(&hook(
        "(i32.store8 (i32.const 512) (i32.const 1)) (i32.store (i32.const 516) (local.get $name)) (i32.store (i32.const 520) (local.get $name_len)) (i32.const 512)",
    ));
    let failed = RUNTIME.call_hook(&failing, event(HookEvent::RunBeforeTool, "{}")).await.unwrap_err();
    assert!(matches!(&failed.error, PluginError::GuestFailed(reason) if reason == "run:before_tool"), "{failed}");
    let unknown = RUNTIME.call_hook(&parrot(), event(HookEvent::RunBeforeTool, "9")).await.unwrap_err();
    assert!(matches!(unknown.error, PluginError::MalformedValue { .. }), "{unknown}");
    let mut textless = event(HookEvent::RunBeforeDelivery, "2");
    textless.run_id = None;
    let failed = RUNTIME.call_hook(&parrot(), textless).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::GuestFailed(_)), "a proposal without a text: {failed}");
    let plain_tool = prepare(&tool("", "unreachable"));
    let failed = RUNTIME.call_hook(&plain_tool, event(HookEvent::RunBeforeTool, "{}")).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::WrongExport { .. }), "{failed}");
}
