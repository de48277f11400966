//! The loop that follows a run: its tape, the person's answers, signals and a clock, whichever comes first.

use std::time::Duration;

use palyra_client::api::{AbortRunParams, RunDetail, RunView};
use palyra_client::{Client, ClientError, Follow, TapeStream};
use palyra_common::{RunId, RunStreamBody, RunStreamEvent};
use tokio::task::JoinHandle;

use super::live::Live;
use super::signals::{Received, Signals};
use crate::commands::approvals::desk::{Desk, QuestionPolicy};
use crate::context::Context;
use crate::error::CliError;
use crate::render::question::Question;

const TICK: Duration = Duration::from_millis(500);
/// How long a command that fails waits until the daemon knows that the run is cancelled.
const ABORT_PATIENCE: Duration = Duration::from_secs(5);
/// How long after its terminal the signal of a closed terminal may come.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(50);

/// How following ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The run is over; this is what the model wrote last, as it was shown.
    Over(String),
    /// The person left; the run may go on.
    Left,
    /// The run waits for answers that nobody gives here.
    Unanswered(Box<RunDetail>),
}

/// What Ctrl-C and the other signals that end a command do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// The first one cancels the run, the second leaves: whoever started a run stops it with the command.
    Cancel,
    /// It leaves, and the run goes on: whoever looks at a run only stops looking.
    Leave,
}

/// A request that is under way beside the tape, so that the loop never waits for it.
type Request = JoinHandle<Result<RunView, ClientError>>;

struct Follower<'a> {
    client: &'a Client,
    run_id: RunId,
    context: &'a Context,
    live: Live<'a>,
    desk: Desk<'a>,
    options: FollowOptions,
    position: u64,
    cancelling: Cancelling,
    abort: Option<Request>,
}

/// What follows from a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interrupted {
    Stay,
    Leave,
}

/// Whether the person has asked for the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancelling {
    NotAsked,
    Asked,
}

/// How a run is followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FollowOptions {
    pub(crate) questions: QuestionPolicy,
    pub(crate) on_interrupt: OnInterrupt,
    /// Up to this position the tape is history: what was asked there may have been answered long ago.
    pub(crate) history_until: u64,
}

/// Follows a run until it is over, the person leaves, or it asks something that nobody answers here.
pub(crate) async fn to_the_end(
    client: &Client,
    run_id: RunId,
    options: FollowOptions,
    mut signals: Signals,
    context: &Context,
) -> Result<Ending, CliError> {
    let mut tape = client.tape(run_id, 1, Follow::UntilEnd);
    if context.console.is_text() {
        tape = tape.with_progress();
    }
    let mut follower = Follower {
        client,
        run_id,
        context,
        live: Live::new(&context.console, options.history_until),
        desk: Desk::new(client, &context.console, options.questions),
        options,
        position: 0,
        cancelling: Cancelling::NotAsked,
        abort: None,
    };
    let followed = follower.follow(&mut tape, &mut signals).await;
    if let Err(error) = &followed {
        follower.settle_abort(error, &mut signals).await;
    }
    if let Some(ending) = followed? {
        return Ok(ending);
    }
    follower.live.end_line()?;
    follower.desk.settle().await?;
    Ok(Ending::Over(follower.live.into_said()))
}

/// Waits for a request if there is one; otherwise for ever, which leaves the choice to the other branches.
async fn finished(request: &mut Option<Request>) -> Result<RunView, ClientError> {
    let Some(running) = request else { return std::future::pending().await };
    let result = running.await;
    *request = None;
    result.unwrap_or_else(|error| Err(ClientError::Disconnected { doing: "steering a run", source: Box::new(error) }))
}

impl Follower<'_> {
    /// Follows the tape to its end, unless something else ends the command first.
    async fn follow(&mut self, tape: &mut TapeStream, signals: &mut Signals) -> Result<Option<Ending>, CliError> {
        let mut clock = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                event = tape.next() => match event {
                    Ok(Some(event)) => self.event(event)?,
                    Ok(None) => return Ok(None),
                    Err(error) => return Err(self.lost(error)),
                },
                received = signals.next() => {
                    if self.interrupted(received)? == Interrupted::Leave {
                        return Ok(Some(Ending::Left));
                    }
                }
                step = self.desk.next() => self.desk.step(step)?,
                result = finished(&mut self.abort) => self.aborted(result)?,
                _ = clock.tick() => self.tick(),
            }
            if self.is_present()
                && self.desk.is_stuck()
                && let Some(detail) = self.unanswered().await?
            {
                return Ok(Some(Ending::Unanswered(Box::new(detail))));
            }
        }
    }

    /// Sees to it that a run which is to be cancelled is, although the command fails. A terminal that is closed takes no output any more, and
    /// that may be noticed before its signal is.
    async fn settle_abort(&mut self, error: &CliError, signals: &mut Signals) {
        if matches!(error, CliError::Output { .. })
            && self.options.on_interrupt == OnInterrupt::Cancel
            && self.cancelling == Cancelling::NotAsked
            && let Ok(received) = tokio::time::timeout(SIGNAL_PATIENCE, signals.next()).await
        {
            self.cancel(received);
        }
        if self.abort.is_some() {
            let _ = tokio::time::timeout(ABORT_PATIENCE, finished(&mut self.abort)).await;
        }
    }

    fn event(&mut self, event: RunStreamEvent) -> Result<(), CliError> {
        self.live.show(&event)?;
        self.position = event.seq;
        match event.body {
            RunStreamBody::ToolApprovalRequest(request) => self.desk.asked(Question::on_tape(self.run_id, request)),
            RunStreamBody::ToolApprovalResponse(response) => self.desk.answered(response.approval_id),
            _ => {}
        }
        if self.is_present() && self.desk.has_news() {
            self.live.end_line()?;
            self.desk.present();
        }
        Ok(())
    }

    /// Whether what was asked and not answered so far is open now.
    fn is_present(&self) -> bool {
        self.position >= self.options.history_until
    }

    /// The run with what it waits for, unless somebody has answered meanwhile.
    async fn unanswered(&mut self) -> Result<Option<RunDetail>, CliError> {
        self.live.end_line()?;
        let detail = self.client.run(self.run_id).await?;
        if detail.pending_approvals.is_empty() {
            self.desk.clear();
            return Ok(None);
        }
        Ok(Some(detail))
    }

    fn interrupted(&mut self, received: Received) -> Result<Interrupted, CliError> {
        let (console, id) = (&self.context.console, self.run_id);
        match (self.options.on_interrupt, self.cancelling) {
            (OnInterrupt::Leave, _) => {
                self.live.end_line()?;
                console.remark(&format!("detached; the run continues: palyra runs attach {id}"));
                Ok(Interrupted::Leave)
            }
            (OnInterrupt::Cancel, Cancelling::Asked) => {
                self.live.end_line()?;
                console.remark(&format!("left; to see what became of the run: palyra runs show {id}"));
                Ok(Interrupted::Leave)
            }
            (OnInterrupt::Cancel, Cancelling::NotAsked) => {
                // First of all: nothing can be printed to a terminal that is closed.
                self.cancel(received);
                self.live.end_line()?;
                let again = match received {
                    Received::Interrupt => " (press Ctrl-C again to leave at once)",
                    Received::Terminate | Received::Hangup => "",
                };
                console.remark(&format!("cancelling the run …{again}"));
                Ok(Interrupted::Stay)
            }
        }
    }

    fn cancel(&mut self, received: Received) {
        let (client, id) = (self.client.clone(), self.run_id);
        self.cancelling = Cancelling::Asked;
        let params = AbortRunParams { reason: Some(received.reason().to_owned()) };
        self.abort = Some(tokio::spawn(async move { client.abort_run(id, &params).await }));
    }

    fn aborted(&mut self, result: Result<RunView, ClientError>) -> Result<(), CliError> {
        match result {
            // The tape brings the end. A further Ctrl-C still leaves at once.
            Ok(_) => Ok(()),
            // It may just have ended by itself; then the tape says so.
            Err(ClientError::Refused(envelope)) => {
                self.context.console.remark(&format!("not cancelled: {} [{}]", envelope.message, envelope.code));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The daemon is gone for longer than a restart takes. It is not started again from here: somebody may have stopped it.
    fn lost(&mut self, error: ClientError) -> CliError {
        if error.is_connection_trouble() {
            if let Err(error) = self.live.end_line() {
                return error;
            }
            let id = self.run_id;
            self.context.console.remark(&format!(
                "the run is not lost; it continues when the daemon runs again: palyra runs attach {id}"
            ));
        }
        error.into()
    }

    fn tick(&mut self) {
        if self.desk.is_empty() {
            self.live.tick();
        }
    }
}
