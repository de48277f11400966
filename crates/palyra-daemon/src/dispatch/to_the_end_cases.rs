//! Parameters for every command that changes something, about things that nobody used before.
//!
//! The list follows the catalogue: a command without an entry stops the test.

#[path = "skill_cases.rs"]
mod skill_cases;

use std::path::Path;
use std::time::Duration;

use palyra_common::{AcpCommand, DeviceId, Digest};
use serde_json::{Value, json};

use self::skill_cases::{Archive, PUBLISHER, key, rotation};
use super::{Daemon, PATIENCE};

/// A canvas that is not there.
const NO_CANVAS: &str = "01JC0Q6F7Z8G9H0J1K2M3N4P5Q";

pub(super) struct Cases {
    workspace: String,
    /// Of the last publisher; each has a key of its own.
    count: u8,
    /// How many names were given.
    names: u32,
    /// The archive that was handed over last, to be installed.
    upload: Option<Value>,
}

/// A run that waits for an answer.
struct Waiting {
    run_id: Value,
    session_id: Value,
    approval_id: Value,
}

impl Cases {
    pub(super) async fn new(daemon: &Daemon, workspace: &Path) -> Self {
        let trust = json!({"publisher": PUBLISHER, "public_key": key(1).public().to_string()});
        daemon.done(AcpCommand::PublisherTrust, trust).await;
        Self { workspace: workspace.display().to_string(), count: 1, names: 0, upload: None }
    }

    /// Parameters with which a command can be given now.
    pub(super) async fn prepare(&mut self, daemon: &Daemon, command: AcpCommand) -> Value {
        self.names += 1;
        let name = format!("n{}", self.names);
        self.upload = None;
        match command {
            AcpCommand::SessionNew => json!({}),
            AcpCommand::SessionResolve => json!({ "session_key": name }),
            AcpCommand::SessionRename => json!({ "session_id": session(daemon).await, "title": "another" }),
            AcpCommand::SessionArchive => json!({ "session_id": session(daemon).await, "archived": true }),
            AcpCommand::SessionModeSet => json!({ "session_id": session(daemon).await, "mode": "strict" }),
            AcpCommand::SessionFork
            | AcpCommand::SessionConfigSet
            | AcpCommand::SessionCompactApply
            | AcpCommand::SessionCompactRevert => json!({ "session_id": session(daemon).await }),
            AcpCommand::SessionInput => json!({ "session_id": self.waiting(daemon).await.session_id, "text": "then" }),
            AcpCommand::SessionInputWithdraw => {
                let session_id = self.waiting(daemon).await.session_id;
                let queued = json!({ "session_id": session_id, "text": "then" });
                let queued = daemon.done(AcpCommand::SessionInput, queued).await;
                json!({ "session_id": session_id, "input_id": queued["input_id"] })
            }
            AcpCommand::SessionRecall => json!({ "query": "anything" }),
            AcpCommand::AuxiliaryRun => json!({ "kind": "summary", "input": { "text": "Short. And more." } }),
            AcpCommand::RunCreate => json!({ "prompt": "write it", "workspace": self.workspace }),
            AcpCommand::RunAbort
            | AcpCommand::RunPause
            | AcpCommand::RunEnvelopeEdit
            | AcpCommand::RunCompactRevert => {
                json!({ "run_id": self.waiting(daemon).await.run_id })
            }
            AcpCommand::RunResume => {
                let run_id = self.waiting(daemon).await.run_id;
                daemon.done(AcpCommand::RunPause, json!({ "run_id": run_id })).await;
                json!({ "run_id": run_id })
            }
            AcpCommand::RunInput => {
                json!({ "run_id": self.waiting(daemon).await.run_id, "text": "more", "mode": "follow_up" })
            }
            AcpCommand::RunDeliver => {
                let results = json!([{ "call_id": "none", "content": "" }]);
                json!({ "run_id": self.waiting(daemon).await.run_id, "results": results })
            }
            AcpCommand::RunUndo => {
                let waiting = self.waiting(daemon).await;
                let allow = json!({ "approval_id": waiting.approval_id, "decision": "allow", "scope": "once" });
                daemon.done(AcpCommand::ApprovalDecide, allow).await;
                until(daemon, &waiting.run_id, |run| run["phase"] == "completed").await;
                json!({ "run_id": waiting.run_id })
            }
            AcpCommand::ApprovalDecide => {
                json!({ "approval_id": self.waiting(daemon).await.approval_id, "decision": "deny", "scope": "once" })
            }
            AcpCommand::ApprovalRequest => json!({ "subject": "tool", "summary": "may I?" }),
            AcpCommand::PatternRevoke => json!({ "approval_id": self.waiting(daemon).await.approval_id }),
            AcpCommand::TokenCreate => json!({ "name": name, "role": "viewer" }),
            AcpCommand::TokenRotate | AcpCommand::TokenRevoke => {
                let made = daemon.done(AcpCommand::TokenCreate, json!({ "name": name, "role": "viewer" })).await;
                json!({ "token_id": made["token"]["token_id"] })
            }
            AcpCommand::DeviceRevoke => json!({ "device_id": DeviceId::from_u128(7) }),
            AcpCommand::WorkspaceGrant => json!({ "principal": name, "path": self.workspace }),
            AcpCommand::WorkspaceRevoke => {
                let granted = json!({ "principal": name, "path": self.workspace });
                daemon.done(AcpCommand::WorkspaceGrant, granted.clone()).await;
                granted
            }
            AcpCommand::BindingSet => self.binding(daemon, &name).await,
            AcpCommand::BindingRemove => {
                let binding = self.binding(daemon, &name).await;
                let bound = daemon.done(AcpCommand::BindingSet, binding).await;
                json!({ "binding_id": bound["binding_id"] })
            }
            // Nothing here draws one; refused is an outcome too.
            AcpCommand::CanvasLink | AcpCommand::CanvasClose => json!({ "canvas_id": NO_CANVAS }),
            AcpCommand::CanvasSubmit => json!({ "canvas_id": NO_CANVAS, "component_id": "none" }),
            AcpCommand::AgentSet => json!({ "agent_id": name }),
            AcpCommand::AgentRemove => {
                daemon.done(AcpCommand::AgentSet, json!({ "agent_id": name })).await;
                json!({ "agent_id": name })
            }
            AcpCommand::EventAppend => json!({ "kind": "client.test", "payload": {} }),
            AcpCommand::MessageRoute => json!({ "channel": "signal", "sender": "s", "message_id": name, "text": "t" }),
            AcpCommand::AttachmentAdd => json!({ "name": "n.txt", "data": "bg==" }),
            AcpCommand::JournalBackup => json!({ "dest": format!("{}/backup-{name}", self.workspace) }),
            AcpCommand::SkillUpload => Archive::of(&format!("{PUBLISHER}.{name}")).upload(),
            AcpCommand::SkillInstall => {
                let archive = Archive::of(&format!("{PUBLISHER}.{name}"));
                daemon.done(AcpCommand::SkillUpload, archive.upload()).await;
                self.upload = Some(archive.upload());
                json!({ "archive": archive.digest })
            }
            AcpCommand::SkillRemove
            | AcpCommand::SkillDisable
            | AcpCommand::SkillAudit
            | AcpCommand::SkillConfigure => {
                json!({ "skill_id": installed(daemon, &name).await })
            }
            AcpCommand::SkillQuarantine => json!({ "skill_id": installed(daemon, &name).await, "reason": "for now" }),
            AcpCommand::SkillEnable => {
                let skill = json!({ "skill_id": installed(daemon, &name).await });
                daemon.done(AcpCommand::SkillDisable, skill.clone()).await;
                skill
            }
            AcpCommand::SkillCall => {
                json!({ "skill_id": installed(daemon, &name).await, "tool": "echo", "input": { "text": "x" } })
            }
            AcpCommand::PublisherTrust => {
                self.count += 1;
                json!({ "publisher": name, "public_key": key(self.count).public().to_string() })
            }
            AcpCommand::PublisherUntrust => json!({ "publisher": self.trusted(daemon, &name).await }),
            AcpCommand::PublisherImport => {
                self.trusted(daemon, &name).await;
                json!({ "statement": rotation(&name, self.count, 255 - self.count) })
            }
            AcpCommand::PublisherRevokeKey => {
                self.trusted(daemon, &name).await;
                json!({ "key_id": key(self.count).public().id().to_string(), "reason": "leaked" })
            }
            // No skill here has a hook.
            AcpCommand::HookSet => json!({ "event": "gateway:startup", "plugin_id": "none" }),
            AcpCommand::HookRemove => json!({ "hook_id": "none" }),
            AcpCommand::ModelsOffered => json!({ "provider": "nobody" }),
            AcpCommand::ModelsTest => json!({}),
            // Read by those who manage them alone.
            AcpCommand::TokenList | AcpCommand::DeviceList | AcpCommand::WorkspaceList => json!({}),
            AcpCommand::JournalProve => json!({ "seq": 1 }),
            AcpCommand::FileLabels => json!({}),
            // Nothing that was read here is untrusted, so there is nothing to endorse.
            AcpCommand::FileEndorse => {
                json!({ "workspace": self.workspace, "path": "none", "digest": Digest::of(b"none") })
            }
            command => panic!("say in to_the_end_cases.rs how {command} is given"),
        }
    }

    /// What a daemon that knows nothing of it has to be handed over again.
    pub(super) fn uploaded(&self) -> Option<Value> {
        self.upload.clone()
    }

    async fn waiting(&self, daemon: &Daemon) -> Waiting {
        let params = json!({ "prompt": "write it", "workspace": self.workspace });
        let run = daemon.done(AcpCommand::RunCreate, params).await;
        let run_id = run["run_id"].clone();
        let run = until(daemon, &run_id, |run| run["pending_approvals"].get(0).is_some()).await;
        let approval_id = run["pending_approvals"][0]["approval_id"].clone();
        Waiting { run_id, session_id: run["session_id"].clone(), approval_id }
    }

    async fn binding(&self, daemon: &Daemon, conversation: &str) -> Value {
        let place = json!({ "channel": "matrix", "conversation": conversation });
        json!({ "place": place, "session_id": session(daemon).await })
    }

    async fn trusted(&mut self, daemon: &Daemon, publisher: &str) -> String {
        self.count += 1;
        let trust = json!({ "publisher": publisher, "public_key": key(self.count).public().to_string() });
        daemon.done(AcpCommand::PublisherTrust, trust).await;
        publisher.to_owned()
    }
}

async fn session(daemon: &Daemon) -> Value {
    daemon.done(AcpCommand::SessionNew, json!({})).await["session_id"].clone()
}

async fn installed(daemon: &Daemon, name: &str) -> String {
    let skill_id = format!("{PUBLISHER}.{name}");
    let archive = Archive::of(&skill_id);
    daemon.done(AcpCommand::SkillUpload, archive.upload()).await;
    daemon.done(AcpCommand::SkillInstall, json!({ "archive": archive.digest })).await;
    skill_id
}

/// Waits until a run is as it shall be.
async fn until(daemon: &Daemon, run_id: &Value, is: impl Fn(&Value) -> bool) -> Value {
    let waited = async {
        loop {
            let detail = daemon.done(AcpCommand::RunGet, json!({ "run_id": run_id })).await;
            if is(&detail) {
                return detail;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.expect("a run does not get there")
}
