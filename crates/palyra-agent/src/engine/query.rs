//! Looking at runs, sessions and approvals.

use std::collections::{BTreeSet, HashMap};

use palyra_budget::{Account, MicroUsd};
use palyra_common::{ApprovalId, RunId, RunMode, SandboxTier, StableErrorEnvelope, Timestamp};
use palyra_flow::Standing;
use palyra_journal::{Reader, StoredRecord};
use palyra_tools::FileChange;
use serde_json::Value;

use super::{Engine, UnavailableSource};
use crate::error::AgentError;
use crate::machine::{Action, Input};
use crate::own_tools::Plan;
use crate::projections::{self, ApprovalFilter, ApprovalPage, ApprovalRow, RunFilter, RunRow};
use crate::replay::{Replayed, replay};
use crate::tape::{Note, TapeEntry};

/// A run with what only its tape knows.
#[derive(Debug, Clone)]
pub struct RunDetails {
    /// The run.
    pub row: RunRow,
    /// Its task, whole.
    pub prompt: String,
    /// Position of its newest event.
    pub last_seq: u64,
    /// Files it changed, in order.
    pub changes: Vec<FileChange>,
    /// What it did itself, before it was over, to take back changes that nobody accepted.
    pub taken_back: Vec<FileChange>,
    /// Files that undoing it, as a whole or in part, has dealt with.
    pub undone_files: BTreeSet<String>,
    /// How often it was undone, as a whole or in part.
    pub undos: u32,
    /// Calls that it proposed and that were not made, in order.
    pub not_run: Vec<CallNotRun>,
    /// Calls whose programs ran with less isolation than asked for, in order.
    pub reduced_isolation: Vec<ReducedIsolation>,
    /// Sources of tools that offered nothing when it began or was last resumed.
    pub unavailable_tools: Vec<UnavailableSource>,
    /// Tokens read and written.
    pub input_tokens: u64,
    /// See `input_tokens`.
    pub output_tokens: u64,
    /// What its model calls cost, those of auxiliary tasks included; absent before the first.
    pub cost: Option<RunCost>,
    /// Where its time went.
    pub timings: Timings,
    /// What waits for a person.
    pub open_approvals: Vec<ApprovalRow>,
    /// How untrusted results are treated.
    pub mode: RunMode,
    /// What the run set out to do.
    pub envelope: Vec<Standing>,
    /// The planner's list of steps, as it stands now.
    pub plan: Option<Plan>,
    /// The agent that carries it out, by name.
    pub agent: String,
    /// The version of the agent that it took; absent if nobody had set it up.
    pub agent_version: Option<u64>,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCost {
    /// How much.
    pub micro_usd: MicroUsd,
    /// Whether a price or a count was not known and the worst was assumed.
    pub assumed: bool,
}

/// A call that was proposed and not made.
#[derive(Debug, Clone, PartialEq)]
pub struct CallNotRun {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments; nothing if they could not be read.
    pub arguments: Option<Value>,
    /// Why.
    pub error: StableErrorEnvelope,
}

/// A call whose program ran with less isolation than asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ReducedIsolation {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Option<Value>,
    /// The tier it ran in.
    pub tier: SandboxTier,
    /// Why the tier asked for was not available.
    pub reasons: Vec<String>,
}

/// Where the time of a run went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// From acceptance to end, or to the newest record.
    pub total_ms: u64,
    /// Model calls.
    pub model_ms: u64,
    /// Tool calls; calls that ran together count once.
    pub tools_ms: u64,
    /// Approvals, from question to answer.
    pub waiting_ms: u64,
}

impl Engine {
    /// One run.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn run(&self, run_id: RunId) -> Result<RunRow, AgentError> {
        self.query(move |reader| projections::run(reader.connection(), run_id))
            .await?
            .ok_or(AgentError::RunNotFound(run_id))
    }

    /// The run that somebody created with this key, if any.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn run_of_key(&self, owner: &str, key: &str) -> Result<Option<RunId>, AgentError> {
        let (owner, key) = (owner.to_owned(), key.to_owned());
        let found = self.query(move |reader| projections::idempotent_run(reader.connection(), &owner, &key)).await?;
        Ok(found.map(|(run_id, _)| run_id))
    }

    /// Runs, newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, AgentError> {
        self.query(move |reader| projections::runs(reader.connection(), &filter)).await
    }

    /// Position of a run's newest event.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn last_seq(&self, run_id: RunId) -> Result<u64, AgentError> {
        Ok(self.shared.options.journal.read(move |reader| reader.last_run_seq(run_id)).await?)
    }

    /// Approvals, oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn approvals(&self, filter: ApprovalFilter) -> Result<Vec<ApprovalRow>, AgentError> {
        self.approvals_page(filter, ApprovalPage::WHOLE).await
    }

    /// A page of approvals, oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn approvals_page(
        &self,
        filter: ApprovalFilter,
        page: ApprovalPage,
    ) -> Result<Vec<ApprovalRow>, AgentError> {
        self.query(move |reader| projections::approvals(reader.connection(), filter, page)).await
    }

    /// One approval.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn approval(&self, id: ApprovalId) -> Result<Option<ApprovalRow>, AgentError> {
        self.query(move |reader| projections::approval(reader.connection(), id)).await
    }

    /// A run with what only its tape knows.
    ///
    /// # Errors
    /// When there is none of that id or its tape cannot be read.
    pub async fn run_details(&self, run_id: RunId) -> Result<RunDetails, AgentError> {
        let row = self.run(run_id).await?;
        let filter = ApprovalFilter { run_id: Some(run_id), open: Some(true) };
        let open_approvals = self.approvals(filter).await?;
        let records = self.whole_tape(run_id).await?;
        let mut details = RunDetails {
            prompt: row.prompt.clone(),
            last_seq: records.last().and_then(|record| record.run_seq).unwrap_or_default(),
            row,
            changes: Vec::new(),
            taken_back: Vec::new(),
            undone_files: BTreeSet::new(),
            undos: 0,
            not_run: Vec::new(),
            reduced_isolation: Vec::new(),
            unavailable_tools: Vec::new(),
            input_tokens: 0,
            output_tokens: 0,
            cost: None,
            timings: Timings::default(),
            open_approvals,
            mode: RunMode::Guarded,
            envelope: Vec::new(),
            plan: None,
            agent: String::new(),
            agent_version: None,
        };
        details.read(&records)?;
        let accounts = vec![Account::Run(run_id)];
        let spent = self.query(move |reader| projections::spent_by(reader.connection(), accounts)).await?;
        let spent: MicroUsd = spent.iter().map(|row| row.spent).sum();
        match &mut details.cost {
            Some(cost) => cost.micro_usd = spent,
            // Its only calls were given up in the middle and counted in full.
            None if !spent.is_zero() => details.cost = Some(RunCost { micro_usd: spent, assumed: true }),
            None => {}
        }
        // A tape of an older machine does not replay; it had no envelope either.
        if let Ok(replayed) = replay(&records) {
            details.envelope =
                replayed.machine.mandates().all().iter().filter(|standing| !standing.revoked).cloned().collect();
        }
        Ok(details)
    }

    /// Feeds a run's tape to a fresh machine and compares every action.
    ///
    /// # Errors
    /// When a record is missing or unreadable.
    pub async fn replay(&self, run_id: RunId) -> Result<Replayed, AgentError> {
        self.run(run_id).await?;
        replay(&self.whole_tape(run_id).await?)
    }

    pub(super) async fn whole_tape(&self, run_id: RunId) -> Result<Vec<StoredRecord>, AgentError> {
        Ok(self.shared.options.journal.read(move |reader| reader.run_tape(run_id, 1, usize::MAX)).await?)
    }

    pub(super) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Reader) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, AgentError> {
        Ok(self.shared.options.journal.read(move |reader| query(reader).map_err(Into::into)).await?)
    }
}

impl RunDetails {
    fn read(&mut self, records: &[StoredRecord]) -> Result<(), AgentError> {
        let mut asked: Vec<(ApprovalId, Timestamp)> = Vec::new();
        let mut proposed: HashMap<String, Value> = HashMap::new();
        let mut tools_busy_until = self.row.created_at;
        let mut is_over = false;
        for record in records {
            match TapeEntry::from_record(record)? {
                TapeEntry::Input(Input::Accepted(spec)) => {
                    self.prompt = spec.prompt;
                    self.mode = spec.mode;
                    self.agent_version = spec.profile.as_ref().map(|agent| agent.version);
                    self.agent = spec.agent;
                }
                TapeEntry::Input(Input::ModelTurnFinished(turn)) => {
                    self.timings.model_ms = self.timings.model_ms.saturating_add(turn.duration_ms);
                    self.input_tokens = self.input_tokens.saturating_add(turn.usage.input_tokens);
                    self.output_tokens = self.output_tokens.saturating_add(turn.usage.output_tokens);
                    self.cost.get_or_insert_default().assumed |= turn.cost.assumed;
                }
                TapeEntry::Input(Input::ModelFailed(failure)) => {
                    self.cost.get_or_insert_default().assumed |= failure.cost.assumed;
                }
                TapeEntry::Input(Input::ToolFinished { call_id, tool, result }) => {
                    // Outcomes are in the order of their ends, so an earlier call can only overlap at the beginning.
                    let since_last = millis(record.at, tools_busy_until);
                    self.timings.tools_ms += result.duration_ms.min(since_last);
                    tools_busy_until = tools_busy_until.max(record.at);
                    self.changes.extend(result.changes);
                    let (tier, reasons) = (result.attestation.tier, result.attestation.fallback_reasons);
                    if let Some(tier) = tier.filter(|_| !reasons.is_empty()) {
                        let arguments = proposed.get(&call_id).cloned();
                        self.reduced_isolation.push(ReducedIsolation { call_id, tool, arguments, tier, reasons });
                    }
                }
                TapeEntry::Action(Action::UpdatePlan(plan)) => self.plan = Some(*plan),
                TapeEntry::Action(Action::Decide { call_id, arguments, .. }) => {
                    proposed.insert(call_id, arguments);
                }
                TapeEntry::Action(Action::NotRun { call_id, tool, error, .. }) => {
                    let arguments = proposed.remove(&call_id);
                    self.not_run.push(CallNotRun { call_id, tool, arguments, error: *error });
                }
                TapeEntry::Note(Note::ToolsUnavailable { sources }) => self.unavailable_tools = sources,
                TapeEntry::Action(Action::Status(change)) => is_over = change.phase.is_terminal(),
                TapeEntry::Note(Note::Undone { changes, .. }) => {
                    self.undos = self.undos.saturating_add(1);
                    if !is_over {
                        self.taken_back.extend(changes.iter().cloned());
                    }
                    self.undone_files.extend(changes.into_iter().map(|change| change.path));
                }
                TapeEntry::Action(Action::RequestApproval(request)) => asked.push((request.approval_id, record.at)),
                TapeEntry::Input(Input::ApprovalDecided { approval_id, .. }) => {
                    if let Some((_, since)) = asked.iter().find(|(id, _)| *id == approval_id) {
                        self.timings.waiting_ms += millis(record.at, *since);
                    }
                }
                _ => {}
            }
        }
        let end = self.row.ended_at.or(records.last().map(|record| record.at)).unwrap_or(self.row.created_at);
        self.timings.total_ms = millis(end, self.row.created_at);
        Ok(())
    }
}

fn millis(later: Timestamp, earlier: Timestamp) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}
