//! Tables over phases, answers and failures.

use palyra_common::{HookDecision, HookEvent, RunLifecycleHookPhase, ToStableError as _};

use super::rules::event_of;
use super::*;

fn result(hook: &str, said: HookSaid, on_failure: HookFailureMode) -> HookResult {
    HookResult { hook: hook.into(), plugin: "p".into(), on_failure, said, duration_ms: 1 }
}

fn answered(hook: &str, decision: HookDecision) -> HookResult {
    let text = (decision == HookDecision::TransformPreview).then(|| "other".to_owned());
    let said = HookSaid::Answered(HookAnswer { decision, reason: format!("{hook} says so"), text });
    result(hook, said, HookFailureMode::FailClosed)
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_event_allows_exactly_what_it_can_carry_out() {
    use HookDecision::{Block, FailRun, RequestApproval, TransformPreview};
    let strong = [TransformPreview, RequestApproval, Block, FailRun];
    for event in HookEvent::ALL {
        assert!(allows(*event, HookDecision::Continue) && allows(*event, HookDecision::Annotate));
        let allowed: Vec<HookDecision> = strong.into_iter().filter(|decision| allows(*event, *decision)).collect();
        let expected: &[HookDecision] = match event {
            HookEvent::RunBeforeRun | HookEvent::RunBeforeTool => &[RequestApproval, Block, FailRun],
            HookEvent::RunAfterTool => &[FailRun],
            HookEvent::RunBeforeDelivery => &strong,
            _ => &[],
        };
        assert_eq!(allowed, expected, "{event}");
    }
}

#[test]
fn the_strongest_answer_counts_wherever_it_stands() {
    let phase = RunLifecycleHookPhase::BeforeDelivery;
    for strongest in HookDecision::ALL {
        for place in 0..3 {
            let mut results = vec![answered("a", HookDecision::Continue), answered("b", HookDecision::Continue)];
            results.insert(place, answered("s", *strongest));
            let ruling = judge(phase, &names(&["a", "b", "s"]), &results);
            assert_eq!(ruling.decision, *strongest);
            assert!(ruling.hooks.contains(&"s".to_owned()), "{ruling:?}");
            assert_eq!(ruling.text.is_some(), *strongest == HookDecision::TransformPreview);
        }
    }
    assert_eq!(judge(phase, &[], &[]).decision, HookDecision::Continue);
}

#[test]
fn a_failure_refuses_before_an_effect_unless_the_binding_says_otherwise() {
    let failures = [
        HookSaid::Failed(HookFailure::TimedOut),
        HookSaid::Failed(HookFailure::Failed("trap".into())),
        HookSaid::Failed(HookFailure::Unavailable("quarantined".into())),
        HookSaid::Failed(HookFailure::Unanswered),
    ];
    for phase in RunLifecycleHookPhase::ALL {
        let before = allows(event_of(*phase), HookDecision::Block);
        for said in &failures {
            let closed = judge(*phase, &names(&["h"]), &[result("h", said.clone(), HookFailureMode::FailClosed)]);
            let open = judge(*phase, &names(&["h"]), &[result("h", said.clone(), HookFailureMode::FailOpen)]);
            let expected = if before { HookDecision::Block } else { HookDecision::Continue };
            assert_eq!((closed.decision, open.decision), (expected, HookDecision::Continue), "{phase} {said:?}");
        }
        // Somebody who should have been asked and was not cannot have agreed.
        let missing = judge(*phase, &names(&["h", "lost"]), &[answered("h", HookDecision::Continue)]);
        assert_eq!(missing.decision == HookDecision::Block, before);
    }
}

#[test]
fn an_answer_out_of_phase_is_a_failure() {
    for phase in RunLifecycleHookPhase::ALL {
        for decision in HookDecision::ALL {
            let ruling = judge(*phase, &names(&["h"]), &[answered("h", *decision)]);
            if allows(event_of(*phase), *decision) {
                assert_eq!(ruling.decision, *decision);
            } else if allows(event_of(*phase), HookDecision::Block) {
                assert_eq!(ruling.decision, HookDecision::Block, "{phase} {decision}");
                assert!(ruling.reasons[0].contains(decision.as_str()), "{ruling:?}");
            } else {
                assert_eq!(ruling.decision, HookDecision::Continue, "{phase} {decision}");
            }
        }
    }
}

#[test]
fn a_proposal_without_a_text_or_with_too_much_of_it_is_none() {
    let propose = |text: Option<String>| {
        let answer = HookAnswer { decision: HookDecision::TransformPreview, reason: String::new(), text };
        checked(HookEvent::RunBeforeDelivery, answer)
    };
    for text in [None, Some(" \n".to_owned()), Some("x".repeat((256 << 10) + 1))] {
        assert!(matches!(propose(text), HookSaid::Failed(HookFailure::Failed(_))));
    }
    assert!(matches!(propose(Some("fine".into())), HookSaid::Answered(_)));
}

#[test]
fn reasons_are_one_line_and_bounded() {
    let answer = HookAnswer::new(HookDecision::Annotate, format!("a\n\u{1b}[31mb {}", "x".repeat(9_000)));
    let HookSaid::Answered(kept) = checked(HookEvent::RunAfterRun, answer) else { panic!("it is allowed") };
    assert!(kept.reason.starts_with("a [31mb x") && kept.reason.chars().count() == 2_000, "{}", kept.reason);
}

#[test]
fn bindings_that_make_no_sense_are_refused() {
    let good = HookBindingRecord::new("guard", HookEvent::RunBeforeTool, "acme.guard#writes");
    good.check().unwrap();
    assert_eq!(good.on_failure, HookFailureMode::FailClosed);
    type Change = Box<dyn Fn(&mut HookBindingRecord)>;
    let wrong: Vec<Change> = vec![
        Box::new(|binding| binding.id = String::new()),
        Box::new(|binding| binding.id = "Not this".into()),
        Box::new(|binding| binding.plugin_id = "a#b#c".into()),
        Box::new(|binding| binding.plugin_id = "../x".into()),
        Box::new(|binding| binding.deadline_ms = 0),
        Box::new(|binding| binding.deadline_ms = 30_001),
        Box::new(|binding| binding.tools = vec!["a*b".into()]),
        Box::new(|binding| binding.tools = vec![String::new()]),
        Box::new(|binding| binding.tools = vec!["t".into(); 65]),
        Box::new(|binding| {
            binding.event = HookEvent::RunAfterRun;
            binding.on_failure = HookFailureMode::FailOpen;
            binding.tools = vec!["t".into()];
        }),
        Box::new(|binding| binding.event = HookEvent::GatewayStartup),
    ];
    for (index, change) in wrong.iter().enumerate() {
        let mut binding = good.clone();
        change(&mut binding);
        let error = binding.check().expect_err(&format!("case {index}"));
        assert_eq!(error.to_stable().code, "hook_binding_invalid");
    }
}

#[test]
fn bindings_apply_to_their_tools_and_are_asked_in_order() {
    let mut binding = HookBindingRecord::new("b", HookEvent::RunBeforeTool, "p");
    binding.tools = vec!["palyra.fs.*".into(), "mcp.web.read".into()];
    let applies = |binding: &HookBindingRecord, tool| binding.applies(RunLifecycleHookPhase::BeforeTool, Some(tool));
    assert!(applies(&binding, "palyra.fs.write") && applies(&binding, "mcp.web.read"));
    assert!(!applies(&binding, "palyra.process.run") && !applies(&binding, "mcp.web.read2"));
    assert!(!binding.applies(RunLifecycleHookPhase::AfterTool, Some("palyra.fs.write")));
    binding.enabled = false;
    assert!(!applies(&binding, "palyra.fs.write"));

    let ordered = |id: &str, order| {
        let mut binding = HookBindingRecord::new(id, HookEvent::RunBeforeRun, "p");
        binding.order = order;
        binding
    };
    let mut bindings = vec![ordered("z", -1), ordered("c", 1), ordered("b", 0), ordered("a", 1)];
    HookBindingRecord::sort(&mut bindings);
    assert_eq!(bindings.iter().map(|binding| binding.id.as_str()).collect::<Vec<_>>(), ["z", "b", "a", "c"]);
}
