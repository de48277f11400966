//! What the jobs do: each kind of command and effect that must survive a kill, and what must hold when a job is over.

use base64::Engine as _;
use palyra_client::api::{ListCanvasesParams, ListCanvasesResponse, SessionQueueResponse};
use palyra_client::command::{About, Command};
use palyra_common::{AcpCommand, RunId};
use serde_json::{Value, json};

use super::job::{Defect, Job, Life, Seen, Step, Stop};

/// The kinds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Writes a file.
    Files,
    /// Calls a program that may not be called twice.
    Stdio,
    /// Calls a web service that may not be called twice.
    Http,
    /// The same, once a person has agreed, which they do after a restart.
    Asked,
    /// Writes to a session while a run is at work in it.
    Queued,
    /// Stores a file and attaches it to a run.
    Attached,
    /// Draws a form, which is filled in and submitted.
    Canvas,
    /// Is paused and resumed.
    Steered,
}

impl Kind {
    pub(super) const ALL: [Self; 8] =
        [Self::Files, Self::Stdio, Self::Http, Self::Asked, Self::Queued, Self::Attached, Self::Canvas, Self::Steered];
}

fn call(tool: &str, arguments: Value, delay_ms: u64) -> Value {
    let mut call = json!({ "tool": tool });
    call["arguments"] = arguments;
    json!({ "call": [call], "delay_ms": delay_ms })
}

/// Longer than what a row of the journal holds, so that it is kept as an artifact.
fn attached(token: &str) -> String {
    format!("{token} ").repeat(800)
}

fn wrong<T>(defect: Defect, what: String) -> Step<T> {
    Err(Stop::Wrong(defect, what))
}

impl Job {
    /// What the model says in the runs of this job.
    pub(super) fn scenes(&self) -> Vec<Value> {
        let token = &self.token;
        let write = |name: &str, delay| call("palyra.fs.write", json!({ "path": name, "content": token }), delay);
        let done = || json!({ "text": ["all ", "done"], "delay_ms": 5 });
        let scene = |part: &str, turns: Value| json!({ "when": format!("{token}{part}"), "turn": turns });
        let made = |part: &str| scene(part, json!([write(part, 10), done()]));
        match self.kind {
            Kind::Files => vec![scene(
                "a",
                json!([write("a", 5), call("palyra.fs.read", json!({ "path": "a" }), 0), write("b", 0), done()]),
            )],
            Kind::Stdio => {
                vec![scene("a", json!([call("mcp.ledger.record", json!({ "entry": format!("{token}a") }), 0), done()]))]
            }
            Kind::Http => {
                vec![scene("a", json!([call("mcp.web.record", json!({ "entry": format!("{token}a") }), 0), done()]))]
            }
            Kind::Asked => {
                // Nobody but the model chose the note, so a person is asked.
                let arguments = json!({ "entry": format!("{token}a"), "note": "chosen by the model" });
                vec![scene("a", json!([call("mcp.ledger.record", arguments, 0), done()]))]
            }
            Kind::Queued => vec![scene("a", json!([write("a", 60), done()])), made("b"), made("c")],
            Kind::Attached => vec![scene("a", json!([{ "echo": "user" }]))],
            Kind::Canvas => {
                let fields = json!([{ "type": "text", "name": "city", "label": "City", "required": true }]);
                let root = json!({ "type": "form", "id": "trip", "title": "Where to?", "fields": fields });
                let page = json!({ "title": "A trip", "document": { "root": root } });
                vec![scene("a", json!([call("palyra.a2ui.render", page, 0), done()])), made("b")]
            }
            Kind::Steered => vec![scene("a", json!([write("a", 20), write("b", 40), done()]))],
        }
    }

    /// Goes on with the job, to its end if the daemon lives long enough.
    pub(super) async fn drive(&mut self, life: &Life) -> Step<()> {
        match self.kind {
            Kind::Files => {
                let (run_id, _) = self.create(life, "a", json!([])).await?;
                self.completed(life, run_id).await?;
                self.written(&["a", "b"])
            }
            Kind::Stdio => self.recorded(life, "mcp.ledger.record").await,
            Kind::Http => self.recorded(life, "mcp.web.record").await,
            Kind::Asked => self.recorded(life, "mcp.ledger.record").await,
            Kind::Queued => self.queued(life).await,
            Kind::Attached => self.attached(life).await,
            Kind::Canvas => self.canvas(life).await,
            Kind::Steered => self.steered(life).await,
        }
    }

    async fn completed(&mut self, life: &Life, run_id: RunId) -> Step<Seen> {
        let seen = self.follow(life, run_id).await?;
        self.ended_well(seen)
    }

    fn ended_well(&self, seen: Seen) -> Step<Seen> {
        if !seen.completed {
            return wrong(Defect::Lost, format!("a run of {} did not complete: {seen:?}", self.token));
        }
        if let Some((approval, times)) = seen.decisions.iter().find(|(_, times)| **times > 1) {
            return wrong(Defect::Twice, format!("question {approval} of {} was answered {times} times", self.token));
        }
        Ok(seen)
    }

    fn written(&self, names: &[&str]) -> Step<()> {
        for name in names {
            let found = std::fs::read_to_string(self.workspace.join(name)).unwrap_or_default();
            if found != self.token {
                return wrong(Defect::Lost, format!("the file {name} of {} holds `{found}`", self.token));
            }
        }
        Ok(())
    }

    /// One call that may happen once: it did, or somebody was asked whether it had.
    async fn recorded(&mut self, life: &Life, tool: &str) -> Step<()> {
        let (run_id, _) = self.create(life, "a", json!([])).await?;
        let seen = self.completed(life, run_id).await?;
        let entry = format!("{}a", self.token);
        let arrived = life.ledger.count(&entry);
        let succeeded = seen.results.iter().any(|(name, error)| name == tool && error.is_none());
        match (arrived, succeeded) {
            (1, true) => Ok(()),
            (0 | 1, false) if seen.unknown_outcomes > 0 => Ok(()),
            (0 | 1, _) => wrong(Defect::Lost, format!("{entry} arrived {arrived} times: {:?}", seen.results)),
            (times, _) => wrong(Defect::Twice, format!("{entry} arrived {times} times")),
        }
    }

    async fn queued(&mut self, life: &Life) -> Step<()> {
        let (run_id, session_id) = self.create(life, "a", json!([])).await?;
        for part in ["b", "c"] {
            let text = format!("and then {}{part}", self.token);
            let params = json!({ "session_id": session_id, "text": text });
            self.once(life, &format!("input-{part}"), AcpCommand::SessionInput, params).await?;
        }
        self.completed(life, run_id).await?;
        for part in ["b", "c"] {
            let seen = self.follow_in_session(life, session_id, part).await?;
            self.ended_well(seen)?;
        }
        let queue = Command::SessionQueue(About::only(session_id));
        let queue: SessionQueueResponse = life.client.execute(&queue).await?;
        if !queue.inputs.is_empty() {
            return wrong(Defect::Twice, format!("inputs of {} had their run and still wait: {queue:?}", self.token));
        }
        self.written(&["a", "b", "c"])
    }

    async fn attached(&mut self, life: &Life) -> Step<()> {
        let content = attached(&self.token);
        let data = base64::engine::general_purpose::STANDARD.encode(&content);
        let params = json!({ "name": "notes.txt", "data": data });
        let stored = self.once(life, "attach", AcpCommand::AttachmentAdd, params).await?;
        let (run_id, _) = self.create(life, "a", json!([stored])).await?;
        self.completed(life, run_id).await?;
        let answer = life.client.run(run_id).await?.answer.unwrap_or_default();
        if !answer.contains(content.trim()) {
            return wrong(Defect::Lost, format!("the model was not told what was attached to {}", self.token));
        }
        Ok(())
    }

    async fn canvas(&mut self, life: &Life) -> Step<()> {
        let (run_id, session_id) = self.create(life, "a", json!([])).await?;
        self.completed(life, run_id).await?;
        let params = ListCanvasesParams { session_id: Some(session_id), ..ListCanvasesParams::default() };
        let listed: ListCanvasesResponse = life.client.execute(&Command::CanvasList(params)).await?;
        let canvas_id = match listed.canvases.as_slice() {
            [only] => only.canvas_id,
            [] => return wrong(Defect::Lost, format!("the canvas of {} is gone", self.token)),
            _ => return wrong(Defect::Twice, format!("{} has several canvases", self.token)),
        };
        let params = json!({
            "canvas_id": canvas_id, "component_id": "trip", "values": { "city": format!("{}b", self.token) },
        });
        self.once(life, "submit", AcpCommand::CanvasSubmit, params).await?;
        let seen = self.follow_in_session(life, session_id, "b").await?;
        self.ended_well(seen)?;
        self.written(&["b"])
    }

    async fn steered(&mut self, life: &Life) -> Step<()> {
        let (run_id, _) = self.create(life, "a", json!([])).await?;
        let over = async |life: &Life| Step::Ok(life.client.run(run_id).await?.run.phase.is_terminal());
        for command in [AcpCommand::RunPause, AcpCommand::RunResume] {
            let name = format!("steer-{command}");
            let answer = self.attempt(life, &name, command, json!({ "run_id": run_id })).await?;
            // Whoever comes too late is told so.
            if let Err(refused) = answer
                && !over(life).await?
            {
                return wrong(Defect::Dishonest, format!("{command} of {}: {refused:?}", self.token));
            }
        }
        self.completed(life, run_id).await?;
        self.written(&["a", "b"])
    }
}
