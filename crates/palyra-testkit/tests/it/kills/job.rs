//! One piece of load: commands under idempotency keys and runs that are followed, over as many lives of the daemon as it takes.
//!
//! A job is driven from its beginning in each life. What was acknowledged is remembered and not sent again, except now and then to see that a key still gives
//! the same answer; so the code of a job reads as if the daemon never died.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use palyra_client::api::LoadSessionParams;
use palyra_client::{Client, ClientError, Follow, Reconnect};
use palyra_common::{
    AcpCommand, ApprovalId, RequestId, RunId, RunStreamBody, RunStreamEvent, SessionId, StableErrorEnvelope,
};
use palyra_testkit::Random;
use serde_json::{Value, json};

use super::servers::Ledger;
use super::work::Kind;

/// Longest silence of a run, or of something that must appear, before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(15);

/// What is wrong with a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Defect {
    /// Something acknowledged is gone, or different.
    Lost,
    /// An effect happened more often than it may.
    Twice,
    /// A run neither went on nor asked.
    Stuck,
    /// A refusal or an answer that is not true.
    Dishonest,
}

/// Why a job did not go on.
#[derive(Debug)]
pub(super) enum Stop {
    /// The daemon went away.
    Gone,
    /// It answers a question in a later life.
    Later,
    /// The daemon is in the wrong.
    Wrong(Defect, String),
}

pub(super) type Step<T> = Result<T, Stop>;

/// One life of the daemon, as a job sees it.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) client: Client,
    pub(super) number: u64,
    pub(super) ledger: Ledger,
    /// Whether jobs are to be finished: nothing is put off, and nothing is killed.
    pub(super) settling: bool,
}

/// A command that was answered.
#[derive(Debug, Clone)]
struct Acknowledged {
    command: AcpCommand,
    answer: Result<Value, StableErrorEnvelope>,
    in_life: u64,
}

/// What was seen of one run: a digest of each event, none of which may ever change.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) events: Vec<u64>,
    over: bool,
    pub(super) completed: bool,
    /// Results of calls: the tool, and the code of its error.
    pub(super) results: Vec<(String, Option<String>)>,
    /// Questions about a call whose outcome is unknown.
    pub(super) unknown_outcomes: usize,
    /// Answers to questions, by question.
    pub(super) decisions: BTreeMap<ApprovalId, usize>,
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) kind: Kind,
    pub(super) token: String,
    pub(super) workspace: PathBuf,
    pub(super) runs: BTreeMap<RunId, Seen>,
    random: Random,
    answers: BTreeMap<String, Acknowledged>,
    /// Questions that are answered from this life on.
    put_off: BTreeMap<ApprovalId, u64>,
    /// Commands that were answered for the first time, and again.
    pub(super) acknowledged: u64,
    pub(super) repeated: u64,
}

pub(super) fn digest(event: &RunStreamEvent) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(event).unwrap().hash(&mut hasher);
    hasher.finish()
}

fn wrong<T>(defect: Defect, what: impl Into<String>) -> Step<T> {
    Err(Stop::Wrong(defect, what.into()))
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        if error.is_connection_trouble() {
            return Self::Gone;
        }
        Self::Wrong(Defect::Dishonest, error.to_string())
    }
}

impl Job {
    pub(super) fn new(kind: Kind, token: String, workspace: PathBuf, seed: u64) -> Self {
        Self {
            kind,
            token,
            workspace,
            runs: BTreeMap::new(),
            random: Random::seeded(seed),
            answers: BTreeMap::new(),
            put_off: BTreeMap::new(),
            acknowledged: 0,
            repeated: 0,
        }
    }

    /// Gives a command until it is answered. A refusal is no defect here.
    pub(super) async fn attempt(
        &mut self,
        life: &Life,
        name: &str,
        command: AcpCommand,
        params: Value,
    ) -> Step<Result<Value, StableErrorEnvelope>> {
        let key = format!("{}-{name}", self.token);
        let known = self.answers.get(&key).cloned();
        if let Some(known) = &known
            && (known.in_life == life.number || self.random.below(5) > 0)
        {
            return Ok(known.answer.clone());
        }
        let envelope = json!({
            "request_id": RequestId::generate(), "command": command, "params": params, "idempotency_key": key,
        });
        let envelope =
            serde_json::from_value(envelope).map_err(|error| Stop::Wrong(Defect::Dishonest, error.to_string()))?;
        let answer = life.client.envelope(&envelope).await?.into_outcome();
        match known {
            // A refusal is not kept under its key: what was refused then may be possible now.
            Some(Acknowledged { answer: Ok(before), command, .. }) => {
                self.repeated += 1;
                if !same(command, &before, &answer) {
                    return wrong(Defect::Dishonest, format!("{key}: {command} answered {before}, then {answer:?}"));
                }
                if let Some(known) = self.answers.get_mut(&key) {
                    known.in_life = life.number;
                }
                return Ok(Ok(before));
            }
            Some(Acknowledged { answer: Err(_), .. }) => self.repeated += 1,
            None => self.acknowledged += 1,
        }
        let kept = Acknowledged { command, answer: answer.clone(), in_life: life.number };
        self.answers.insert(key, kept);
        Ok(answer)
    }

    /// Gives a command that must be carried out.
    pub(super) async fn once(&mut self, life: &Life, name: &str, command: AcpCommand, params: Value) -> Step<Value> {
        match self.attempt(life, name, command, params).await? {
            Ok(value) => Ok(value),
            Err(refused) => wrong(Defect::Dishonest, format!("{command} {name} of {}: {refused:?}", self.token)),
        }
    }

    /// Creates a run about one of the job's names.
    pub(super) async fn create(&mut self, life: &Life, part: &str, attachments: Value) -> Step<(RunId, SessionId)> {
        let prompt = format!("please take care of {}{part}", self.token);
        let params = json!({
            "prompt": prompt, "workspace": self.workspace.display().to_string(), "attachments": attachments,
        });
        let run = self.once(life, &format!("create-{part}"), AcpCommand::RunCreate, params).await?;
        let id = |field: &str| run[field].as_str().unwrap_or_default().to_owned();
        let (Ok(run_id), Ok(session_id)) = (id("run_id").parse(), id("session_id").parse()) else {
            return wrong(Defect::Dishonest, format!("a run without ids: {run}"));
        };
        Ok((run_id, session_id))
    }

    /// Follows a run to its end and answers its questions.
    pub(super) async fn follow(&mut self, life: &Life, run_id: RunId) -> Step<Seen> {
        loop {
            if let Some(seen) = self.runs.get(&run_id)
                && seen.over
            {
                return Ok(seen.clone());
            }
            self.answer_questions(life, run_id).await?;
            let seen = self.runs.entry(run_id).or_default();
            let once = Reconnect { attempts: 1, ..Reconnect::default() };
            let next = seen.events.len() as u64 + 1;
            let mut tape = life.client.tape(run_id, next, Follow::UntilEnd).reconnecting(once);
            loop {
                let Ok(event) = tokio::time::timeout(PATIENCE, tape.next()).await else {
                    return wrong(Defect::Stuck, format!("run {run_id} of {} is silent: {seen:?}", self.token));
                };
                let Some(event) = event? else { break };
                let asks = matches!(event.body, RunStreamBody::ToolApprovalRequest(_));
                seen.note(&event);
                if asks || seen.over {
                    break;
                }
            }
        }
    }

    /// Answers every open question of a run: now, or in a later life. A call that may have happened is never allowed again.
    async fn answer_questions(&mut self, life: &Life, run_id: RunId) -> Step<()> {
        let open = life.client.run(run_id).await?.pending_approvals;
        for approval in &open {
            if self.kind == Kind::Asked && !self.put_off.contains_key(&approval.approval_id) {
                let later = life.number + 1 + self.random.below(2);
                self.put_off.insert(approval.approval_id, later);
            }
        }
        for approval in open {
            let from = self.put_off.get(&approval.approval_id).copied().unwrap_or_default();
            if !life.settling && life.number < from {
                return Err(Stop::Later);
            }
            let again = approval.reason.contains("outcome is unknown");
            let decision = if again { "deny" } else { "allow" };
            let params = json!({ "approval_id": approval.approval_id, "decision": decision, "scope": "once" });
            let name = format!("answer-{}", approval.approval_id);
            self.once(life, &name, AcpCommand::ApprovalDecide, params).await?;
        }
        Ok(())
    }

    /// Waits until exactly one run of a session is about one of the job's names, and follows it.
    pub(super) async fn follow_in_session(&mut self, life: &Life, session_id: SessionId, part: &str) -> Step<Seen> {
        let wanted = format!("{}{part}", self.token);
        let began = Instant::now();
        loop {
            let runs = life.client.session(session_id, &LoadSessionParams::default()).await?.runs;
            let about: Vec<RunId> =
                runs.iter().filter(|run| run.prompt.contains(&wanted)).map(|run| run.run_id).collect();
            match about.as_slice() {
                [] if began.elapsed() > PATIENCE => {
                    return wrong(Defect::Lost, format!("the input {wanted} never became a run: {runs:?}"));
                }
                [] => tokio::time::sleep(POLL).await,
                [only] => return self.follow(life, *only).await,
                several => return wrong(Defect::Twice, format!("{wanted} became the runs {several:?}")),
            }
        }
    }
}

impl Seen {
    fn note(&mut self, event: &RunStreamEvent) {
        self.events.push(digest(event));
        self.over = event.is_terminal();
        match &event.body {
            RunStreamBody::Status(status) => {
                self.completed = status.phase == palyra_common::RunLifecyclePhase::Completed;
            }
            RunStreamBody::ToolResult(result) => {
                let error = result.error.as_ref().map(|error| error.code.clone());
                self.results.push((result.tool.clone(), error));
            }
            RunStreamBody::ToolApprovalRequest(request) => {
                self.unknown_outcomes += usize::from(request.reason.contains("outcome is unknown"));
            }
            RunStreamBody::ToolApprovalResponse(response) => {
                *self.decisions.entry(response.approval_id).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// Whether a command given again got the answer of the first time. Creating a run answers with the run as it stands now.
fn same(command: AcpCommand, before: &Value, now: &Result<Value, StableErrorEnvelope>) -> bool {
    let Ok(now) = now else { return false };
    match command {
        AcpCommand::RunCreate => before["run_id"] == now["run_id"],
        _ => before == now,
    }
}
