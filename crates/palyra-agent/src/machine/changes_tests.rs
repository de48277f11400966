use palyra_common::{ChangeAttribution, Confidentiality, InputMode, Label, TerminationReason, ToolVerdict};
use palyra_tools::{Concurrency, EntryFacts, LaterExecuted, Repeatability, Standing};

use super::*;
use crate::machine::ApprovalRequest;
use crate::machine::Input;
use crate::machine::tests::{AT, decided, finished, started, turn};

fn change(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> FileChange {
    FileChange {
        path: path.into(),
        before: before.map(Digest::of),
        after: after.map(Digest::of),
        before_mode: None,
        directories: Vec::new(),
        attribution: ChangeAttribution::Observed,
        entry: EntryFacts::default(),
    }
}

fn later(path: &str, standing: Standing) -> LaterChange {
    let (path, difference) = (path.into(), "+evil\n".into());
    LaterChange { path, by: LaterExecuted::Hook, standing, executed_as: None, difference, not_shown: None }
}

/// A machine whose call number `number` changed something; its context has this label.
fn changed(machine: &mut Machine, number: u32, label: Label, change: FileChange, standing: Option<Standing>) {
    machine.step(turn(number, 1, "", &["tool"]), AT).unwrap();
    let call = format!("t{number}c1");
    let permitted = decided(&call, ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable);
    machine.step(permitted, AT).unwrap();
    let Input::ToolFinished { call_id, tool, mut result } = finished(&call, &format!("content {number}")) else {
        panic!()
    };
    result.label = label;
    result.later = standing.map(|standing| later(&change.path, standing)).into_iter().collect();
    result.changes = vec![change];
    machine.step(Input::ToolFinished { call_id, tool, result }, AT).unwrap();
}

fn hook() -> FileChange {
    change(".git/hooks/pre-commit", None, Some(b"evil"))
}

/// A machine that waits for a person to accept a hook.
fn asking() -> (Machine, ApprovalRequest) {
    let mut machine = started();
    changed(&mut machine, 1, Label::system(), hook(), Some(Standing::Always));
    let actions = machine.step(turn(2, 1, "done", &[]), AT).unwrap();
    let [Action::RequestApproval(asked), Action::Status(_)] = &actions[..] else { panic!("{actions:?}") };
    (machine, (**asked).clone())
}

fn answer(asked: &ApprovalRequest, decision: ApprovalDecision) -> Input {
    Input::ApprovalDecided {
        approval_id: asked.approval_id,
        decision,
        scope: palyra_common::ApprovalScope::Once,
        until: None,
        by: "ada".into(),
        via: None,
        reason: None,
    }
}

fn took_back(number: u32) -> Input {
    Input::TookBack(Box::new(TookBack { number, remaining: Vec::new(), error: None }))
}

#[test]
fn what_is_accepted_ends_the_run_at_once_and_what_is_refused_is_taken_back_first() {
    let (mut machine, asked) = asking();
    assert_eq!((asked.question, asked.tool.as_str()), (Question::AcceptChanges, TOOL));
    assert_eq!(machine.phase(), RunLifecyclePhase::WaitingForApproval);
    machine.step(answer(&asked, ApprovalDecision::Allow), AT).unwrap();
    assert_eq!((machine.phase(), machine.change_set().count()), (RunLifecyclePhase::Completed, 0));
    for decision in [ApprovalDecision::Deny, ApprovalDecision::Timeout, ApprovalDecision::Error] {
        let (mut machine, asked) = asking();
        let actions = machine.step(answer(&asked, decision), AT).unwrap();
        let expected = Action::TakeBack { number: 1, paths: vec![".git/hooks/pre-commit".into()] };
        assert!(actions.contains(&expected), "{actions:?}");
        assert_eq!(machine.phase(), RunLifecyclePhase::Running);
        // Nothing stops it, and nobody waits for a deadline.
        for input in [
            Input::Cancel { by: "ada".into(), reason: None },
            Input::Pause { by: "ada".into() },
            Input::UserMessage { text: "wait".into(), mode: InputMode::Steer },
        ] {
            machine.step(input, AT).unwrap_err();
        }
        assert_eq!(machine.next_deadline(), None);
        assert!(machine.step(Input::Recovered, AT).unwrap().contains(&expected), "a restart begins it again");
        machine.step(took_back(2), AT).unwrap_err();
        machine.step(took_back(1), AT).unwrap();
        let Phase::Completed(ending) = machine.state() else { panic!("{:?}", machine.state()) };
        assert_eq!(ending.detail.as_ref().unwrap().code, TAKEN_BACK);
        assert_eq!(ending.answer.as_ref().unwrap().0, "done");
    }
}

/// What its steps did is all that the answer of the offline planner says, so a step that was taken back leaves the task undone. Runs of older versions end as
/// they did.
#[test]
fn a_planner_that_knows_what_it_did_has_not_done_what_was_taken_back() {
    for (provider, version, phase, code, said) in [
        (palyra_models::OFFLINE, 7, RunLifecyclePhase::Failed, TASK_NOT_DONE, "; it was removed"),
        ("work", 7, RunLifecyclePhase::Completed, TAKEN_BACK, "; it was removed"),
        (palyra_models::OFFLINE, 6, RunLifecyclePhase::Completed, TAKEN_BACK, "; these files were restored"),
    ] {
        let mut machine = started();
        machine.spec.model.provider = provider.to_owned();
        machine.spec.machine_version = version;
        changed(&mut machine, 1, Label::system(), hook(), Some(Standing::Always));
        let actions = machine.step(turn(2, 1, "Created it", &[]), AT).unwrap();
        let [Action::RequestApproval(asked), Action::Status(_)] = &actions[..] else { panic!("{actions:?}") };
        let refusing = if version < SAYS_WHAT_BECAME { "refusing restores them" } else { "refusing removes it" };
        assert!(asked.summary.ends_with(refusing), "{}", asked.summary);
        machine.step(answer(asked, ApprovalDecision::Deny), AT).unwrap();
        machine.step(took_back(1), AT).unwrap();
        let ending = match machine.state() {
            Phase::Completed(ending) | Phase::Failed(ending) => ending,
            other => panic!("{other:?}"),
        };
        let detail = ending.detail.as_ref().unwrap();
        assert_eq!((machine.phase(), detail.code.as_str()), (phase, code));
        assert!(detail.message.ends_with(said), "{}", detail.message);
        assert_eq!(ending.answer.as_ref().unwrap().0, "Created it");
    }
}

#[test]
fn a_run_that_ends_otherwise_has_its_changes_taken_back() {
    let (mut machine, asked) = asking();
    let actions = machine.step(Input::Cancel { by: "ada".into(), reason: None }, AT).unwrap();
    assert!(actions.contains(&Action::WithdrawApproval { approval_id: asked.approval_id }), "{actions:?}");
    assert!(actions.iter().any(|action| matches!(action, Action::TakeBack { .. })), "{actions:?}");
    let remaining = vec![RemainingFile {
        path: ".git/hooks/pre-commit".into(),
        obstacle: palyra_common::UndoObstacle::ChangedSince,
    }];
    machine.step(Input::TookBack(Box::new(TookBack { number: 1, remaining, error: None })), AT).unwrap();
    let Phase::Aborted(ending) = machine.state() else { panic!("{:?}", machine.state()) };
    assert_eq!(ending.reason, TerminationReason::Cancellation);
    assert_eq!(ending.detail.as_ref().unwrap().code, NOT_TAKEN_BACK);
}

#[test]
fn only_what_is_still_different_and_that_nobody_wanted_is_asked_about() {
    let untrusted = Label::new(Integrity::Untrusted, Confidentiality::Private);
    // The net of it is nothing.
    let mut machine = started();
    changed(&mut machine, 1, Label::system(), hook(), Some(Standing::Always));
    changed(&mut machine, 2, Label::system(), change(".git/hooks/pre-commit", Some(b"evil"), None), None);
    machine.step(turn(3, 1, "done", &[]), AT).unwrap();
    assert_eq!(machine.phase(), RunLifecyclePhase::Completed);
    // What a file tool wrote before anything untrusted was read, and after.
    let written = |path: &str| FileChange { attribution: ChangeAttribution::Written, ..change(path, None, Some(b"x")) };
    let mut machine = started();
    machine.spec.mode = palyra_common::RunMode::Open;
    changed(&mut machine, 1, untrusted.clone(), written("build.rs"), Some(Standing::IfSteered));
    assert_eq!(machine.change_set().count(), 0, "what the call gave did not make it");
    changed(&mut machine, 2, untrusted, written("sub/build.rs"), Some(Standing::IfSteered));
    assert_eq!(machine.change_set().collect::<Vec<_>>(), ["sub/build.rs"]);
}

/// A planner that was shown numbers of what anyone may have written, and no text, can have been told by them what to write; one that was shown nothing cannot.
#[test]
fn what_a_planner_wrote_that_knew_numbers_of_others_is_asked_about() {
    let (untrusted, build) = (Label::new(Integrity::Untrusted, Confidentiality::Private), "build.rs");
    for (mode, data, held) in [
        (palyra_common::RunMode::Guarded, Some(serde_json::json!({"n": 991})), 1),
        (palyra_common::RunMode::Guarded, None, 0),
        (palyra_common::RunMode::Strict, Some(serde_json::json!({"n": 991})), 0),
    ] {
        let mut machine = started();
        machine.spec.mode = mode;
        machine.step(turn(1, 1, "", &["tool"]), AT).unwrap();
        let permitted = decided("t1c1", ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable);
        machine.step(permitted, AT).unwrap();
        let Input::ToolFinished { call_id, tool, mut result } = finished("t1c1", "a result") else { panic!() };
        result.label = untrusted.clone();
        result.server = Some("desk".into());
        let field = palyra_common::FieldClass { field: "n".into(), role: palyra_common::FieldRole::Assigned };
        result.class =
            Some(palyra_common::OutputClass { fields: vec![field], ..palyra_common::OutputClass::whole(&untrusted) });
        result.data.clone_from(&data);
        machine.step(Input::ToolFinished { call_id, tool, result }, AT).unwrap();
        assert_eq!(machine.planner(), palyra_flow::Planner::Blind, "{mode} {data:?}");
        let written =
            FileChange { attribution: ChangeAttribution::Written, ..change(build, None, Some(b"fn main() {}")) };
        changed(&mut machine, 2, Label::system(), written, Some(Standing::IfSteered));
        assert_eq!(machine.change_set().count(), held, "{mode} {data:?}");
    }
}

#[test]
fn a_question_says_first_what_it_does_not_show() {
    let asked_about = |later: Vec<LaterChange>| {
        let mut machine = started();
        let mut last = 1;
        for (number, later) in (1..).zip(later) {
            last = number + 1;
            machine.step(turn(number, 1, "", &["tool"]), AT).unwrap();
            let call = format!("t{number}c1");
            let permitted = decided(&call, ToolVerdict::Permit, Concurrency::Shared, Repeatability::Repeatable);
            machine.step(permitted, AT).unwrap();
            let Input::ToolFinished { call_id, tool, mut result } = finished(&call, "") else { panic!() };
            let content = number.to_be_bytes();
            result.changes = vec![change(&later.path, None, Some(&content))];
            result.later = vec![later];
            machine.step(Input::ToolFinished { call_id, tool, result }, AT).unwrap();
        }
        let actions = machine.step(turn(last, 1, "done", &[]), AT).unwrap();
        let [Action::RequestApproval(asked), Action::Status(_)] = &actions[..] else { panic!("{actions:?}") };
        (**asked).clone()
    };
    let hidden = |path: &str| LaterChange { not_shown: Some("12 bytes".into()), ..later(path, Standing::Always) };
    let asked = asked_about(vec![later("a", Standing::Always), later("b", Standing::Always)]);
    assert_eq!(asked.summary, "keep what this run left in `a`, `b`; refusing removes them");
    let asked = asked_about(vec![later("a", Standing::Always), hidden("z")]);
    assert!(asked.summary.starts_with("not all of this is shown, so read `z` (12 bytes)"), "{}", asked.summary);
    assert_eq!(asked.arguments["files"][1]["not_shown"], "12 bytes");
    // What an earlier call hid is not forgotten when a later one writes the same file in the open.
    let asked = asked_about(vec![hidden("a"), later("a", Standing::Always)]);
    assert!(asked.summary.starts_with("not all of this"), "{}", asked.summary);
    // A long name does not push the others out of the line.
    let asked = asked_about(vec![later(&"x".repeat(4_000), Standing::Always), later("z", Standing::Always)]);
    assert!(asked.summary.len() < 200 && asked.summary.contains("`z`"), "{}", asked.summary);
}
