//! One thing of each kind that commands are about, and parameters with which every command can be given.

use std::time::Duration;

use palyra_client::command;
use palyra_common::AcpCommand;
use serde_json::{Value, json};

use crate::raw::unix;
use crate::support::{Daemon, Place};

const SCRIPT: &str = r#"
[[turn]]
[[turn.call]]
tool = "palyra.a2ui.render"
arguments = { title = "t", document = { root = { type = "text", text = "x" } } }
[[turn]]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
[[turn]]
echo = "last_result"
"#;

/// What the commands are about; all of it belongs to the owner.
pub(crate) struct Things {
    session: String,
    run: String,
    pub(crate) approval: String,
    workspace: String,
    pub(crate) spare_token: String,
    binding: String,
    canvas: String,
    task: String,
}

/// A daemon whose first run draws a canvas and then asks for approval.
pub(crate) fn place() -> Place {
    // Most callers here are one principal, and a refusal for its haste would look like a permission.
    Place::new().with_script(SCRIPT).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write").with("PALYRA_RATE_BURST", "10000")
}

impl Things {
    pub(crate) async fn of(place: &Place, daemon: &Daemon) -> Self {
        let run = daemon.create("write it").await;
        let approval = loop {
            let asked = daemon.client.run(run.run_id).await.unwrap().pending_approvals;
            if let Some(approval) = asked.first() {
                break approval.approval_id;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let summary = br#"{"kind":"summary","input":{"text":"Short. And more."}}"#;
        let task = unix(daemon, "POST /api/v1/auxiliary", summary).json();
        let canvases = unix(daemon, "GET /api/v1/canvases", b"").json();
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{task} {canvases}")).to_owned();
        let mut things = Self {
            canvas: text(&canvases["canvases"][0]["canvas_id"]),
            binding: String::new(),
            task: text(&task["task_id"]),
            session: run.session_id.to_string(),
            run: run.run_id.to_string(),
            approval: approval.to_string(),
            workspace: place.workspace().display().to_string(),
            spare_token: token(daemon, &json!({"name": "spare", "role": "viewer"})).1,
        };
        things.binding = things.bind(daemon);
        things
    }

    /// Makes the binding, or finds it made.
    pub(crate) fn bind(&self, daemon: &Daemon) -> String {
        let place = json!({"channel": "matrix", "conversation": "room"});
        let params = json!({"place": place, "session_id": self.session}).to_string();
        let bound = unix(daemon, "POST /api/v1/bindings", params.as_bytes()).json();
        bound["binding_id"].as_str().unwrap_or_else(|| panic!("{bound}")).to_owned()
    }

    /// Parameters with which each command is read; whether it then succeeds does not matter here.
    pub(crate) fn params(&self, command: AcpCommand) -> Value {
        let mut params = match command {
            AcpCommand::SessionResolve => json!({"session_key": "k"}),
            AcpCommand::SessionRename => json!({"title": "t"}),
            AcpCommand::SessionArchive => json!({"archived": false}),
            AcpCommand::SessionInput => json!({"text": "more"}),
            AcpCommand::SessionInputWithdraw => json!({"input_id": "none"}),
            AcpCommand::RunCreate => json!({"prompt": "p", "workspace": self.workspace}),
            AcpCommand::ModelsOffered => json!({"provider": "nobody"}),
            AcpCommand::SessionRecall => json!({"query": "anything"}),
            AcpCommand::AuxiliaryRun => json!({"kind": "summary", "input": {"text": "Short. And more."}}),
            AcpCommand::WorkspaceGrant | AcpCommand::WorkspaceRevoke => {
                json!({"principal": "nobody", "path": self.workspace})
            }
            AcpCommand::FileEndorse => {
                let digest = format!("sha256:{}", "00".repeat(32));
                json!({"workspace": self.workspace, "path": "none", "digest": digest})
            }
            AcpCommand::RunInput => json!({"text": "more", "mode": "follow_up"}),
            AcpCommand::RunDeliver => json!({"results": [{"call_id": "none", "content": ""}]}),
            AcpCommand::ApprovalDecide => json!({"decision": "deny", "scope": "once"}),
            AcpCommand::ApprovalRequest => json!({"subject": "tool", "summary": "may I?"}),
            AcpCommand::BindingSet => json!({"place": {"channel": "editor"}, "session_id": self.session}),
            AcpCommand::CanvasSubmit => json!({"component_id": "none"}),
            AcpCommand::EventAppend => json!({"kind": "client.test", "payload": {}}),
            AcpCommand::MessageRoute => json!({"channel": "signal", "sender": "s", "message_id": "m", "text": "t"}),
            AcpCommand::AttachmentAdd => json!({"name": "n.txt", "data": "bg=="}),
            AcpCommand::AgentSet => json!({"agent_id": "helper"}),
            AcpCommand::JournalBackup => json!({"dest": format!("{}/backup", self.workspace)}),
            AcpCommand::SkillUpload => {
                json!({"digest": format!("sha256:{}", "00".repeat(32)), "size": 1, "offset": 0, "data": ""})
            }
            AcpCommand::SkillInstall => json!({"archive": format!("sha256:{}", "00".repeat(32))}),
            AcpCommand::SkillCall => json!({"tool": "t"}),
            AcpCommand::PublisherTrust => json!({"publisher": "nobody", "public_key": "none"}),
            AcpCommand::PublisherImport => json!({"statement": "{}"}),
            AcpCommand::PublisherRevokeKey => json!({"key_id": "none", "reason": "r"}),
            AcpCommand::HookSet => json!({"event": "gateway:startup", "plugin_id": "none"}),
            AcpCommand::TokenCreate => json!({"name": "n", "role": "viewer"}),
            _ => json!({}),
        };
        let target = match command::spec(command).and_then(|spec| spec.target) {
            Some("session_id") => json!(self.session),
            Some("skill_id" | "publisher" | "hook_id" | "agent_id") => json!("none"),
            Some("run_id") => json!(self.run),
            Some("approval_id") => json!(self.approval),
            Some("task_id") => json!(self.task),
            Some("token_id") => json!(self.spare_token),
            Some("binding_id") => json!(self.binding),
            Some("canvas_id") => json!(self.canvas),
            Some("device_id") => json!(palyra_common::DeviceId::from_u128(7)),
            Some("seq") => json!(1),
            Some(other) => panic!("what is a {other}?"),
            None => return params,
        };
        params[command::spec(command).unwrap().target.unwrap()] = target;
        params
    }
}

/// A new token and its id.
pub(crate) fn token(daemon: &Daemon, params: &Value) -> (String, String) {
    let answer = unix(daemon, "POST /api/v1/tokens", params.to_string().as_bytes()).json();
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    (text(&answer["secret"]), text(&answer["token"]["token_id"]))
}
