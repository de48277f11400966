//! Somebody at the console: follows a run, answers its questions, remembers everything that was shown.

use std::time::Duration;

use anyhow::{Result, bail};
use palyra_client::api::{ApprovalState, DecideApprovalParams, ListApprovalsParams};
use palyra_client::{Client, ClientError, Follow, Reconnect};
use palyra_common::{ApprovalDecision, ApprovalScope, RunId, RunStreamBody, RunStreamEvent};

/// Longest silence of a run before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);
/// How a question about a call whose outcome is unknown begins.
const RUN_AGAIN: &str = "run again,";

/// How a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answers {
    /// May this call happen?
    pub may_it_run: ApprovalDecision,
    /// It may have happened already: run it again?
    pub run_again: ApprovalDecision,
}

impl Default for Answers {
    /// Allows what is asked for, and never risks a second effect.
    fn default() -> Self {
        Self { may_it_run: ApprovalDecision::Allow, run_again: ApprovalDecision::Deny }
    }
}

/// How following a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// The run is over.
    ToItsEnd,
    /// The daemon went away.
    UntilItBroke,
}

/// What a person saw of one run, in order. Events here were acknowledged: the daemon may never take them back.
#[derive(Debug, Clone)]
pub struct Person {
    run_id: RunId,
    answers: Answers,
    seen: Vec<RunStreamEvent>,
}

impl Person {
    /// Somebody who has not looked yet.
    #[must_use]
    pub fn new(run_id: RunId) -> Self {
        Self { run_id, answers: Answers::default(), seen: Vec::new() }
    }

    /// The same person with other answers.
    #[must_use]
    pub fn answering(mut self, answers: Answers) -> Self {
        self.answers = answers;
        self
    }

    /// Everything seen so far.
    #[must_use]
    pub fn seen(&self) -> &[RunStreamEvent] {
        &self.seen
    }

    /// Follows from the first event not yet seen and answers questions, until the run is over or the daemon goes away.
    ///
    /// # Errors
    /// When the daemon answers wrongly, or the run stays silent for too long.
    pub async fn follow(&mut self, client: &Client) -> Result<Followed> {
        let next = self.seen.last().map_or(1, |event| event.seq + 1);
        let once = Reconnect { attempts: 1, ..Reconnect::default() };
        let mut tape = client.tape(self.run_id, next, Follow::UntilEnd).reconnecting(once);
        // Questions that were shown before the daemon went away are still open, but are not on the rest of the tape.
        if let Err(error) = self.answer_all(client).await {
            return broke(error);
        }
        loop {
            let event = match tokio::time::timeout(PATIENCE, tape.next()).await {
                Err(_) => bail!("run {} was silent for {PATIENCE:?}; seen: {:#?}", self.run_id, self.seen),
                Ok(Err(error)) => return broke(error),
                Ok(Ok(None)) => return Ok(Followed::ToItsEnd),
                Ok(Ok(Some(event))) => event,
            };
            let asked = matches!(event.body, RunStreamBody::ToolApprovalRequest(_));
            let over = event.is_terminal();
            self.seen.push(event);
            if over {
                return Ok(Followed::ToItsEnd);
            }
            if asked && let Err(error) = self.answer_all(client).await {
                return broke(error);
            }
        }
    }

    /// Answers every open question of the run.
    async fn answer_all(&self, client: &Client) -> Result<(), ClientError> {
        let open = ListApprovalsParams {
            run_id: Some(self.run_id),
            state: Some(ApprovalState::Pending),
            ..Default::default()
        };
        for approval in client.approvals(&open).await?.approvals {
            let again = approval.summary.starts_with(RUN_AGAIN) || approval.reason.contains("outcome is unknown");
            let decision = if again { self.answers.run_again } else { self.answers.may_it_run };
            let params = DecideApprovalParams { decision, scope: ApprovalScope::Once, minutes: None, reason: None };
            match client.decide_approval(approval.approval_id, &params).await {
                Ok(_) => {}
                // Asked and answered, or withdrawn, between the list and now.
                Err(ClientError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn broke(error: ClientError) -> Result<Followed> {
    if error.is_connection_trouble() { Ok(Followed::UntilItBroke) } else { Err(error.into()) }
}
