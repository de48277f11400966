//! A place of its own for each test (state, configuration, workspace), the program, and a played daemon.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use palyra_common::{
    ApprovalId, ApprovalSubject, Confidentiality, Integrity, Label, LimitsUsed, ModelToken, Risk, RunId,
    RunLifecyclePhase, RunStatus, RunStreamBody, RunStreamEvent, SessionId, TerminationReason, Timestamp,
    ToolApprovalRequest, ToolAttestation, ToolProposal, ToolResult,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A test's own place. The program is linked into it, so that nothing that was built elsewhere is found beside it.
pub(crate) struct Place {
    pub(crate) root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["bin", "state", "workspace", "home"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        std::fs::copy(env!("CARGO_BIN_EXE_palyra"), root.path().join("bin/palyra")).unwrap();
        Self { root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/palyra"));
        command
            .args(arguments)
            .current_dir(self.path("workspace"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .env("PALYRA_STATE_ROOT", self.path("state"))
            .env("PALYRA_CONFIG", self.path("palyra.toml"))
            .stdin(Stdio::null());
        std::fs::OpenOptions::new().create(true).append(true).open(self.path("palyra.toml")).unwrap();
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Puts a program in place of the daemon.
    pub(crate) fn install_daemon(&self, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path("bin/palyrad");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// What the program did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// What the played daemon knows about its one run.
#[derive(Default)]
struct Known {
    requests: Vec<(String, String)>,
    aborted: bool,
    decided: bool,
}

/// How the played run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Story {
    /// Reads a file, answers, changes a file.
    Completes,
    /// Fails at a limit.
    Fails,
    /// Runs until it is aborted.
    UntilAborted,
    /// Runs on whatever it is told.
    IgnoresAbort,
    /// Waits for a decision and then completes.
    Asks,
}

/// A daemon that plays one run.
pub(crate) struct FakeDaemon {
    known: Arc<(Mutex<Known>, Condvar)>,
}

impl FakeDaemon {
    pub(crate) fn start(place: &Place, story: Story) -> Self {
        let listener = UnixListener::bind(place.path("state/palyrad.sock")).unwrap();
        let known = Arc::new((Mutex::new(Known::default()), Condvar::new()));
        let (shared, state_root) = (Arc::clone(&known), place.path("state"));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, state_root) = (Arc::clone(&shared), state_root.clone());
                std::thread::spawn(move || serve(stream.unwrap(), story, &shared, &state_root));
            }
        });
        Self { known }
    }

    /// The requests so far, as method and path with body.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.known.0.lock().unwrap().requests.clone()
    }

    /// Waits until a request that contains this text has come.
    pub(crate) fn wait_for(&self, text: &str) {
        let (lock, changed) = &*self.known;
        let known = lock.lock().unwrap();
        let found = |known: &mut Known| !known.requests.iter().any(|(line, _)| line.contains(text));
        drop(changed.wait_while(known, found).unwrap());
    }
}

fn serve(mut stream: UnixStream, story: Story, known: &(Mutex<Known>, Condvar), state_root: &Path) {
    let Some((line, body)) = read_request(&mut stream) else { return };
    {
        let mut known = known.0.lock().unwrap();
        known.requests.push((line.clone(), body));
        known.aborted |= line.contains("/abort");
        known.decided |= line.contains("/decide");
    }
    known.1.notify_all();
    let path = line.split(' ').nth(1).unwrap().to_owned();
    if path.contains("/tape") {
        let _ = tape(&mut stream, story, known);
        return;
    }
    let answer = match path.split('?').next().unwrap() {
        "/healthz" => health(state_root),
        "/api/v1/runs" if line.starts_with("GET") => json!({ "runs": [view(story)] }),
        path if line.starts_with("GET") && path.starts_with("/api/v1/runs/") => detail(story),
        "/api/v1/daemon/stop" => json!({ "pid": 4_000_000_000_u32, "unfinished_runs": 1 }),
        path if path.ends_with("/undo") => json!({ "files": [{ "path": "notes.md", "action": "restored" }] }),
        path if path.ends_with("/replay") => json!({ "steps": 9, "actions": 7, "identical": false,
            "first_difference": { "seq": 4, "recorded": "execute a", "replayed": "execute b" } }),
        _ => view(story),
    };
    let answer = answer.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
        answer.len()
    );
}

fn read_request(stream: &mut UnixStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let n = stream.read(&mut chunk).ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&chunk[..n]);
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned))
            .map_or(0, |length| length.parse::<usize>().unwrap());
        if body.len() >= length {
            return Some((head.lines().next().unwrap().to_owned(), body.to_owned()));
        }
    }
}

pub(crate) fn run_id() -> RunId {
    RunId::from_u128(0x0190_1234_5678_9abc_def0_1234_5678_9abc)
}

pub(crate) fn approval_id() -> ApprovalId {
    ApprovalId::from_u128(5)
}

fn tape(stream: &mut UnixStream, story: Story, known: &(Mutex<Known>, Condvar)) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let mut seq = 0_u64;
    let mut send = |body: RunStreamBody| {
        seq += 1;
        let event = RunStreamEvent { run_id: run_id(), seq, at: Timestamp(1_000), body };
        let line = serde_json::to_string(&event).unwrap() + "\n";
        write!(stream, "{:x}\r\n{line}\r\n", line.len())
    };
    send(status(RunLifecyclePhase::Running, None))?;
    let token = |text: &str| RunStreamBody::ModelToken(ModelToken { turn: 1, text: text.to_owned() });
    match story {
        Story::Completes | Story::Fails => {
            for body in tool_call() {
                send(body)?;
            }
            send(token("The answer "))?;
            send(token("is \u{1b}[31m42."))?;
        }
        Story::UntilAborted => drop(known.1.wait_while(known.0.lock().unwrap(), |known| !known.aborted).unwrap()),
        Story::IgnoresAbort => loop {
            std::thread::park();
        },
        Story::Asks => {
            send(status(RunLifecyclePhase::WaitingForApproval, None))?;
            send(RunStreamBody::ToolApprovalRequest(ToolApprovalRequest {
                approval_id: approval_id(),
                call_id: None,
                subject: ApprovalSubject::Tool,
                risk: Risk::High,
                summary: "write notes.md".to_owned(),
                tool: Some("palyra.fs.write".to_owned()),
                arguments: Some(json!({ "path": "notes.md" })),
                reason: "listed in run.ask_before".to_owned(),
            }))?;
            drop(known.1.wait_while(known.0.lock().unwrap(), |known| !known.decided).unwrap());
        }
    }
    let (phase, reason) = end(story);
    send(status(phase, Some(reason)))?;
    write!(stream, "0\r\n\r\n")
}

fn status(phase: RunLifecyclePhase, reason: Option<TerminationReason>) -> RunStreamBody {
    RunStreamBody::Status(RunStatus { phase, reason, detail: None })
}

fn tool_call() -> [RunStreamBody; 3] {
    let (call_id, tool) = ("c1".to_owned(), "palyra.fs.read".to_owned());
    [
        RunStreamBody::ToolProposal(ToolProposal {
            call_id: call_id.clone(),
            tool: tool.clone(),
            arguments: json!({ "path": "notes.md" }),
        }),
        RunStreamBody::ToolAttestation(ToolAttestation {
            call_id: call_id.clone(),
            execution_sha256: palyra_common::Digest::of(b"x"),
            executor: "builtin".to_owned(),
            tier: None,
            limits_used: LimitsUsed { wall_ms: 12, ..LimitsUsed::default() },
            timed_out: false,
        }),
        RunStreamBody::ToolResult(ToolResult {
            call_id,
            tool,
            ok: true,
            content: "hello".to_owned(),
            truncated: false,
            artifact: None,
            error: None,
            label: Label::new(Integrity::ToolTrusted, Confidentiality::Private),
        }),
    ]
}

fn end(story: Story) -> (RunLifecyclePhase, TerminationReason) {
    match story {
        Story::Completes | Story::Asks => (RunLifecyclePhase::Completed, TerminationReason::FinalAnswer),
        Story::Fails => (RunLifecyclePhase::Failed, TerminationReason::MaxTurns),
        Story::UntilAborted | Story::IgnoresAbort => (RunLifecyclePhase::Aborted, TerminationReason::Cancellation),
    }
}

fn view(story: Story) -> Value {
    let (phase, reason) = end(story);
    json!({
        "run_id": run_id(), "session_id": SessionId::from_u128(1), "phase": phase, "reason": reason,
        "prompt": "read notes.md", "workspace": "/w", "created_at": 1_794_700_000_123_i64, "turns": 1, "tool_calls": 1,
        "last_seq": 7, "model": "offline", "undone": false,
    })
}

fn detail(story: Story) -> Value {
    let mut view = view(story);
    let more = json!({
        "answer": "The answer is 42.", "changes": [{ "path": "notes.md", "kind": "modified" }], "pending_approvals": [],
        "usage": { "input_tokens": 1, "output_tokens": 2 },
        "timings": { "total_ms": 120, "model_ms": 100, "tools_ms": 12, "waiting_ms": 0 },
    });
    view.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    view
}

fn health(state_root: &Path) -> Value {
    json!({
        "status": "ok", "version": "0.1.0", "pid": std::process::id(), "state_root": state_root,
        "provider": { "name": "offline", "model": "offline", "reason": "no model is configured" }, "uptime_ms": 5,
        "components": [{ "component": "journal", "status": "ok", "summary": "7 records" }],
    })
}
