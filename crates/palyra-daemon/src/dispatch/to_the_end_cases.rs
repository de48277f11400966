//! Parameters for every command that changes something, about things that nobody used before. Each command succeeds with them, but for those that say why not.
//!
//! The list follows the catalogue: a command without an entry stops the test.

#[path = "skill_cases.rs"]
mod skill_cases;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use palyra_common::{AcpCommand, DeviceId, Digest, PrincipalRole};
use palyra_identity::{ClientRequest, PrincipalId};
use serde_json::{Value, json};

use self::skill_cases::{Archive, PUBLISHER, key, rotation};
use super::{Daemon, PATIENCE};
use crate::state::HTTP_ADDRESS;

/// Every run asks before it writes, unless its task is something else.
pub(super) const SCRIPT: &str = r#"
[[script]]
when = "draw it"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.a2ui.render"
arguments = { title = "t", document = { root = { type = "form", id = "trip", fields = [{ type = "text", name = "city", label = "City" }] } } }
[[script.turn]]
text = "drawn"
[[script]]
when = "look it up"
[[script.turn]]
[[script.turn.call]]
tool = "client.look_up"
arguments = {}
[[script.turn]]
text = "looked up"
[[script]]
when = "list it"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.process.run"
arguments = { argv = ["ls", "-a"] }
[[script.turn]]
text = "listed"
[[script]]
when = "say it"
[[script.turn]]
text = "said"
[[script]]
[[script.turn]]
[[script.turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
[[script.turn]]
text = "done"
"#;

/// Runs of a session of which some can be summarised: the newest four are always kept whole.
const LONG_SESSION: usize = 6;

/// What a command is refused with here, for those whose success nobody can set up.
pub(super) fn refusal(command: AcpCommand) -> Option<&'static str> {
    match command {
        // A run summarises itself when its context is full, which takes a long run.
        AcpCommand::RunCompactRevert => Some("run_wrong_phase"),
        _ => None,
    }
}

pub(super) struct Cases {
    workspace: String,
    /// Of the last publisher; each has a key of its own.
    count: u8,
    /// How many names were given.
    names: u32,
    /// The archive that was handed over last, to be installed.
    upload: Option<Value>,
    /// Sessions with a long history, each for one command.
    long: BTreeMap<&'static str, Value>,
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
        // Links need an address, although nobody listens there.
        std::fs::write(daemon.app.state_root.join(HTTP_ADDRESS), "127.0.0.1:7070").unwrap();
        Self { workspace: workspace.display().to_string(), count: 1, names: 0, upload: None, long: BTreeMap::new() }
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
            AcpCommand::SessionFork | AcpCommand::SessionConfigSet => json!({ "session_id": session(daemon).await }),
            AcpCommand::SessionCompactApply => {
                let session = json!({ "session_id": self.long_session(daemon, command).await });
                // Unless the summary of the time before was taken back already, there is nothing more to summarise.
                daemon.request(AcpCommand::SessionCompactRevert, &session, None).await;
                session
            }
            AcpCommand::SessionCompactRevert => {
                let session = json!({ "session_id": self.long_session(daemon, command).await });
                daemon.request(AcpCommand::SessionCompactApply, &session, None).await;
                session
            }
            AcpCommand::SessionInput => json!({ "session_id": self.waiting(daemon).await.session_id, "text": "then" }),
            AcpCommand::SessionInputWithdraw => {
                let session_id = self.waiting(daemon).await.session_id;
                let queued = json!({ "session_id": session_id, "text": "then" });
                let queued = daemon.done(AcpCommand::SessionInput, queued).await;
                json!({ "session_id": session_id, "input_id": queued["input_id"] })
            }
            AcpCommand::SessionRecall => json!({ "query": "anything" }),
            AcpCommand::AuxiliaryRun => json!({ "kind": "summary", "input": { "text": "Short. And more." } }),
            AcpCommand::RunCreate => self.task("write it"),
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
                let tools = json!([{ "name": "look_up", "description": "d", "input_schema": { "type": "object" } }]);
                let mut task = self.task("look it up");
                task["client_tools"] = tools;
                let run_id = daemon.done(AcpCommand::RunCreate, task).await["run_id"].clone();
                until(daemon, &run_id, |run| run["phase"] == "paused").await;
                json!({ "run_id": run_id, "results": [{ "call_id": "t1c1", "content": "found" }] })
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
            AcpCommand::PatternRevoke => {
                let approval_id = self.asking(daemon, "list it").await.approval_id;
                let allow = json!({ "approval_id": approval_id, "decision": "allow", "scope": "session" });
                daemon.done(AcpCommand::ApprovalDecide, allow).await;
                json!({ "approval_id": approval_id })
            }
            AcpCommand::TokenCreate => json!({ "name": name, "role": "viewer" }),
            AcpCommand::TokenRotate | AcpCommand::TokenRevoke => {
                let made = daemon.done(AcpCommand::TokenCreate, json!({ "name": name, "role": "viewer" })).await;
                json!({ "token_id": made["token"]["token_id"] })
            }
            AcpCommand::DeviceRevoke => json!({ "device_id": paired(daemon, self.names).await }),
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
            AcpCommand::CanvasLink | AcpCommand::CanvasClose => json!({ "canvas_id": self.canvas(daemon).await }),
            AcpCommand::CanvasSubmit => {
                let canvas_id = self.canvas(daemon).await;
                json!({ "canvas_id": canvas_id, "component_id": "trip", "values": { "city": "Bern" } })
            }
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
            AcpCommand::HookSet => hook(daemon, &name).await,
            AcpCommand::HookRemove => {
                let hook = hook(daemon, &name).await;
                json!({ "hook_id": daemon.done(AcpCommand::HookSet, hook).await["hook_id"] })
            }
            AcpCommand::ModelsTest => json!({}),
            // Read by those who manage them alone.
            AcpCommand::TokenList | AcpCommand::DeviceList | AcpCommand::WorkspaceList => json!({}),
            AcpCommand::JournalProve => json!({ "seq": 1 }),
            AcpCommand::FileLabels => json!({}),
            AcpCommand::FileEndorse => {
                std::fs::write(Path::new(&self.workspace).join(&name), &name).unwrap();
                json!({ "workspace": self.workspace, "path": name, "digest": Digest::of(name.as_bytes()) })
            }
            command => panic!("say in to_the_end_cases.rs how {command} is given"),
        }
    }

    /// What a daemon that knows nothing of it has to be handed over again.
    pub(super) fn uploaded(&self) -> Option<Value> {
        self.upload.clone()
    }

    fn task(&self, prompt: &str) -> Value {
        json!({ "prompt": prompt, "workspace": self.workspace })
    }

    async fn waiting(&self, daemon: &Daemon) -> Waiting {
        self.asking(daemon, "write it").await
    }

    /// A run with a task that it has to ask about.
    async fn asking(&self, daemon: &Daemon, prompt: &str) -> Waiting {
        let run = daemon.done(AcpCommand::RunCreate, self.task(prompt)).await;
        let run_id = run["run_id"].clone();
        let run = until(daemon, &run_id, |run| run["pending_approvals"].get(0).is_some()).await;
        let approval_id = run["pending_approvals"][0]["approval_id"].clone();
        Waiting { run_id, session_id: run["session_id"].clone(), approval_id }
    }

    /// A session that is long enough to be summarised.
    async fn long_session(&mut self, daemon: &Daemon, command: AcpCommand) -> Value {
        if let Some(session_id) = self.long.get(command.as_str()) {
            return session_id.clone();
        }
        let session_id = session(daemon).await;
        for _ in 0..LONG_SESSION {
            let mut task = self.task("say it");
            task["session_id"] = session_id.clone();
            let run = daemon.done(AcpCommand::RunCreate, task).await;
            until(daemon, &run["run_id"], |run| run["phase"] == "completed").await;
        }
        self.long.insert(command.as_str(), session_id.clone());
        session_id
    }

    /// A canvas with a form.
    async fn canvas(&self, daemon: &Daemon) -> Value {
        let run = daemon.done(AcpCommand::RunCreate, self.task("draw it")).await;
        until(daemon, &run["run_id"], |run| run["phase"] == "completed").await;
        let listed = daemon.done(AcpCommand::CanvasList, json!({ "session_id": run["session_id"] })).await;
        listed["canvases"][0]["canvas_id"].clone()
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
    install(daemon, &Archive::of(&skill_id)).await;
    skill_id
}

async fn install(daemon: &Daemon, archive: &Archive) {
    daemon.done(AcpCommand::SkillUpload, archive.upload()).await;
    daemon.done(AcpCommand::SkillInstall, json!({ "archive": archive.digest })).await;
}

/// A binding of an event to a skill that has such a hook. It is not enabled: what hooks do is no matter here.
async fn hook(daemon: &Daemon, name: &str) -> Value {
    let skill_id = format!("{PUBLISHER}.{name}");
    install(daemon, &Archive::with_hook(&skill_id)).await;
    json!({ "event": "gateway:startup", "plugin_id": skill_id, "enabled": false })
}

/// A device with a certificate.
async fn paired(daemon: &Daemon, number: u32) -> DeviceId {
    let device = DeviceId::from_u128(number.into());
    let authority = daemon.app.gate.identity().authority().await.unwrap();
    let life = Duration::from_secs(24 * 3600);
    let request = ClientRequest { device, principal: PrincipalId::uid(1), role: PrincipalRole::Viewer, life };
    authority.issue_client(&request).unwrap();
    device
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
