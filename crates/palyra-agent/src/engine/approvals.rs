//! Answering questions, and what the answers agree to for longer than once.
//!
//! An answer is checked against the policies first: who may answer, and how far. What reaches beyond one call is the pattern that was
//! shown, and becomes a policy as soon as the answer is on the journal; taking it back is a record too.

use palyra_common::{ApprovalDecision, ApprovalId, ApprovalScope, RunId, Timestamp, ToolVerdict};
use palyra_journal::NewRecord;

use super::Engine;
use crate::decide::AnswerProposal;
use crate::error::AgentError;
use crate::machine::Input;
use crate::projections::{self, ApprovalRow, PatternRow, Revoked};
use crate::tape::{Note, TapeEntry, kind};

/// Somebody's answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The decision.
    pub decision: ApprovalDecision,
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// When a timeboxed answer ends.
    pub until: Option<Timestamp>,
    /// Who answers.
    pub by: String,
    /// What they answer with, if a program holds it; see [`StartedWith::program`](crate::StartedWith::program).
    pub program: Option<String>,
    /// Where they answer.
    pub via: Option<String>,
    /// Why. The model is told why a call was denied.
    pub reason: Option<String>,
}

impl Engine {
    /// Answers an approval; returns the run that asked.
    ///
    /// # Errors
    /// When there is no such approval, it is closed, or this person may not answer it in this way.
    pub async fn decide_approval(&self, approval_id: ApprovalId, answer: Answer) -> Result<RunId, AgentError> {
        let not_open = || AgentError::ApprovalNotFound(approval_id.to_string());
        let approval = self.approval(approval_id).await?.ok_or_else(not_open)?;
        if approval.closed_at.is_some() {
            return Err(not_open());
        }
        self.may_answer(&approval, &answer).await?;
        let reaches_further = answer.decision == ApprovalDecision::Allow && answer.scope != ApprovalScope::Once;
        if reaches_further && approval.offer.is_none() {
            return Err(AgentError::NothingOffered(approval_id.to_string()));
        }
        let input = Input::ApprovalDecided {
            approval_id,
            decision: answer.decision,
            scope: answer.scope,
            until: answer.until.filter(|_| answer.scope == ApprovalScope::Timeboxed),
            by: answer.by,
            via: answer.via,
            reason: answer.reason,
        };
        match self.send(approval.run_id, input).await {
            Err(AgentError::WrongPhase { .. }) => return Err(not_open()),
            other => other?,
        }
        if reaches_further {
            self.read_patiently(|| self.put_patterns_in_force()).await?;
        }
        Ok(approval.run_id)
    }

    /// What was agreed to: what counts now, or all of it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn patterns(&self, which: PatternFilter) -> Result<Vec<PatternRow>, AgentError> {
        let counting_at = match which {
            PatternFilter::Counting => Some(self.shared.options.clock.now()),
            PatternFilter::All => None,
        };
        self.query(move |reader| projections::patterns(reader.connection(), counting_at)).await
    }

    /// Takes back what was agreed to.
    ///
    /// # Errors
    /// When there is no such pattern, or this person may not.
    pub async fn revoke_pattern(&self, approval_id: ApprovalId, by: &str) -> Result<(), AgentError> {
        let missing = || AgentError::PatternNotFound(approval_id.to_string());
        let found = self.query(move |reader| projections::pattern(reader.connection(), approval_id)).await?;
        let pattern = found.filter(|pattern| pattern.revoked_at.is_none()).ok_or_else(missing)?;
        if pattern.owner != by {
            let reason = "the pattern belongs to another user".to_owned();
            return Err(AgentError::AnswerRefused { by: by.to_owned(), reason });
        }
        let revoked = Revoked { approval_id, by: by.to_owned() };
        let payload = serde_json::to_vec(&revoked).map_err(|error| AgentError::Internal(error.to_string()))?;
        let record = NewRecord::new(kind::APPROVAL_REVOKED, self.shared.options.clock.now(), payload);
        self.shared.options.journal.append(vec![record.in_session(pattern.session_id)]).await?;
        self.read_patiently(|| self.put_patterns_in_force()).await
    }

    /// Tells the decider what people agreed to.
    pub(super) async fn put_patterns_in_force(&self) -> Result<(), AgentError> {
        let _agreeing = self.shared.agreeing.lock().await;
        let patterns = self.patterns(PatternFilter::Counting).await?;
        let grants = patterns.iter().map(PatternRow::grant).collect();
        self.shared.options.decider.agreed(grants).map_err(AgentError::Patterns)
    }

    /// Whether a program's credential started a run or gave it something to go by since: its messages, its tool results, its plan or its money.
    async fn has_steered(&self, run_id: RunId, program: &str) -> Result<bool, AgentError> {
        for record in self.whole_tape(run_id).await? {
            if !matches!(record.kind.as_ref(), kind::RUN_ACCEPTED | kind::RUN_STEERED) {
                continue;
            }
            let with = match TapeEntry::from_record(&record)? {
                TapeEntry::Input(Input::Accepted(spec)) => spec.started_with,
                TapeEntry::Note(Note::Steered(actor)) => actor.with,
                _ => continue,
            };
            if with.program.as_deref() == Some(program) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn may_answer(&self, approval: &ApprovalRow, answer: &Answer) -> Result<(), AgentError> {
        let options = &self.shared.options;
        let refused = |reason: String| AgentError::AnswerRefused { by: answer.by.clone(), reason };
        let run_id = approval.run_id;
        let agent = self.query(move |reader| projections::agent_of(reader.connection(), run_id)).await?;
        let agent = agent.ok_or_else(|| refused("the run has no known owner".to_owned()))?;
        if let Some(program) = &answer.program
            && self.has_steered(run_id, program).await?
        {
            return Err(refused(
                "the credential that started or steered the run may not answer its approvals".to_owned(),
            ));
        }
        let proposal = AnswerProposal {
            by: &answer.by,
            run_id,
            session_id: approval.session_id,
            agent: &agent,
            owner: &approval.owner,
            tool: &approval.tool,
            risk: approval.risk,
            scope: answer.scope,
            at: options.clock.now(),
        };
        match options.decider.decide_answer(proposal).await {
            Ok(verdict) if verdict.verdict == ToolVerdict::Permit => Ok(()),
            Ok(verdict) => Err(refused(verdict.reasons.join("; "))),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

/// Which patterns to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternFilter {
    /// Those that count now.
    Counting,
    /// Those that were taken back or have ended, too.
    All,
}
