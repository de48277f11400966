//! With which parameters each command of the catalogue is given when its daemon is killed, or why it is not.
//!
//! The list follows the catalogue: a command that changes something and has no entry here stops the test.

use palyra_common::AcpCommand;
use serde_json::{Value, json};

use super::commands::Waiting;

/// How a command is swept.
pub(super) enum Sweep {
    /// With these parameters; records of this kind are on the tape of the waiting run afterwards, once.
    Given { params: Value, leaves: Option<&'static str> },
    /// Not here, because.
    NotHere(&'static str),
}

/// The commands that `make test` sweeps; `make test-all` sweeps all.
pub(super) const SAMPLE: [AcpCommand; 11] = [
    AcpCommand::RunPause,
    AcpCommand::RunInput,
    AcpCommand::RunAbort,
    AcpCommand::SessionInput,
    AcpCommand::ApprovalDecide,
    AcpCommand::BindingRemove,
    AcpCommand::EventAppend,
    AcpCommand::AttachmentAdd,
    AcpCommand::CanvasSubmit,
    AcpCommand::TokenRevoke,
    AcpCommand::WorkspaceRevoke,
];

pub(super) fn sweep_of(command: AcpCommand, waiting: &Waiting) -> Sweep {
    let run_id = &waiting.run_id;
    // A run waits in the one, nothing is under way in the other.
    let (busy, idle) = (&waiting.session_id, &waiting.idle_session_id);
    let given = |params| Sweep::Given { params, leaves: None };
    let leaves = |params, kind| Sweep::Given { params, leaves: Some(kind) };
    let workspace = waiting.workspace().display().to_string();
    match command {
        AcpCommand::SessionNew => given(json!({})),
        AcpCommand::SessionResolve => given(json!({ "session_key": "k" })),
        AcpCommand::SessionRename => given(json!({ "session_id": idle, "title": "another" })),
        AcpCommand::SessionArchive => given(json!({ "session_id": idle, "archived": true })),
        AcpCommand::SessionFork => given(json!({ "session_id": idle })),
        AcpCommand::SessionModeSet => given(json!({ "session_id": idle, "mode": "strict" })),
        AcpCommand::SessionConfigSet => given(json!({ "session_id": idle })),
        AcpCommand::SessionInput => given(json!({ "session_id": busy, "text": "and then" })),
        AcpCommand::RunCreate => given(json!({ "prompt": "more", "workspace": workspace })),
        AcpCommand::RunPause => leaves(json!({ "run_id": run_id }), "run.pause"),
        AcpCommand::RunAbort => leaves(json!({ "run_id": run_id }), "run.cancel"),
        AcpCommand::RunInput => {
            leaves(json!({ "run_id": run_id, "text": "more", "mode": "follow_up" }), "run.user_message")
        }
        AcpCommand::ApprovalDecide => {
            let params = json!({ "approval_id": waiting.approval_id, "decision": "deny", "scope": "once" });
            leaves(params, "approval.decided")
        }
        AcpCommand::ApprovalRequest => given(json!({ "subject": "tool", "summary": "may I?" })),
        AcpCommand::BindingSet => given(json!({ "place": { "channel": "matrix" }, "session_id": idle })),
        AcpCommand::BindingRemove => given(json!({ "binding_id": waiting.binding_id })),
        AcpCommand::CanvasSubmit => {
            let values = json!({ "city": "Bern" });
            given(json!({ "canvas_id": waiting.canvas_id, "component_id": "trip", "values": values }))
        }
        AcpCommand::CanvasClose => given(json!({ "canvas_id": waiting.canvas_id })),
        AcpCommand::EventAppend => given(json!({ "kind": "client.test", "payload": {} })),
        AcpCommand::AttachmentAdd => given(json!({ "name": "n.txt", "data": "aGVsbG8g".repeat(1000) })),
        AcpCommand::MessageRoute => {
            given(json!({ "channel": "signal", "sender": "s", "message_id": "m", "text": "t" }))
        }
        AcpCommand::AgentSet => given(json!({ "agent_id": "helper" })),
        AcpCommand::WorkspaceGrant => given(json!({ "principal": "nobody", "path": workspace })),
        AcpCommand::FileEndorse => Sweep::NotHere("no run wrote anything untrusted; one record is all that it leaves"),
        AcpCommand::RunUndo => Sweep::NotHere("swept by `undo`"),
        AcpCommand::RunResume => Sweep::NotHere("no run is paused; the kill battery resumes"),
        AcpCommand::RunDeliver => Sweep::NotHere("no run has tools of its client"),
        AcpCommand::RunEnvelopeEdit | AcpCommand::RunCompactRevert => Sweep::NotHere("there is nothing to edit"),
        AcpCommand::SessionCompactApply | AcpCommand::SessionCompactRevert => {
            Sweep::NotHere("there is no long history")
        }
        AcpCommand::SessionInputWithdraw | AcpCommand::PatternRevoke | AcpCommand::AgentRemove => {
            Sweep::NotHere("there is nothing to take away")
        }
        AcpCommand::SessionRecall
        | AcpCommand::AuxiliaryRun
        | AcpCommand::ModelsOffered
        | AcpCommand::ModelsTest
        | AcpCommand::TokenList
        | AcpCommand::DeviceList
        | AcpCommand::WorkspaceList
        | AcpCommand::FileLabels
        | AcpCommand::JournalProve
        | AcpCommand::SkillAudit => Sweep::NotHere("it asks and changes nothing"),
        AcpCommand::CanvasLink | AcpCommand::TokenCreate | AcpCommand::TokenRotate => {
            Sweep::NotHere("an answer with a secret is not kept under a key")
        }
        AcpCommand::TokenRevoke => given(json!({ "token_id": waiting.token_id })),
        AcpCommand::WorkspaceRevoke => given(json!({ "principal": "ci", "path": waiting.granted })),
        AcpCommand::DeviceRevoke => Sweep::NotHere(
            "no device is paired; that a start completes a revocation is tested beside the device authority",
        ),
        AcpCommand::SkillUpload
        | AcpCommand::SkillInstall
        | AcpCommand::SkillRemove
        | AcpCommand::SkillEnable
        | AcpCommand::SkillDisable
        | AcpCommand::SkillQuarantine
        | AcpCommand::SkillConfigure
        | AcpCommand::SkillCall
        | AcpCommand::PublisherTrust
        | AcpCommand::PublisherUntrust
        | AcpCommand::PublisherImport
        | AcpCommand::PublisherRevokeKey
        | AcpCommand::HookSet
        | AcpCommand::HookRemove => Sweep::NotHere("no skill is installed"),
        AcpCommand::JournalBackup | AcpCommand::DaemonStop => Sweep::NotHere("it acts beside the journal"),
        command => panic!("say in command_cases.rs how {command} is swept"),
    }
}
