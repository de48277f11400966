//! The loop that follows a run: its tape, the person's answers, Ctrl-C and a clock, whichever comes first.

use std::time::Duration;

use palyra_client::api::{AbortRunParams, RunDetail, RunView};
use palyra_client::{Client, ClientError, Follow};
use palyra_common::{RunId, RunStreamBody, RunStreamEvent};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::live::Live;
use crate::commands::approvals::desk::{Desk, QuestionPolicy};
use crate::context::Context;
use crate::error::CliError;
use crate::render::question::Question;

const TICK: Duration = Duration::from_millis(500);

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

/// What Ctrl-C does.
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

/// What follows from Ctrl-C.
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
    context: &Context,
) -> Result<Ending, CliError> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|source| CliError::Runtime { source })?;
    let mut tape = client.tape(run_id, 1, Follow::UntilEnd);
    if context.console.is_text() {
        tape = tape.with_progress();
    }
    let mut clock = tokio::time::interval(TICK);
    let mut follower = Follower {
        client,
        run_id,
        context,
        live: Live::new(&context.console),
        desk: Desk::new(client, &context.console, options.questions),
        options,
        position: 0,
        cancelling: Cancelling::NotAsked,
        abort: None,
    };
    loop {
        tokio::select! {
            event = tape.next() => match event {
                Ok(Some(event)) => follower.event(event)?,
                Ok(None) => break,
                Err(error) => return Err(follower.lost(error)),
            },
            _ = interrupts.recv() => {
                if follower.interrupted()? == Interrupted::Leave {
                    return Ok(Ending::Left);
                }
            }
            step = follower.desk.next() => follower.desk.step(step)?,
            result = finished(&mut follower.abort) => follower.aborted(result)?,
            _ = clock.tick() => follower.tick(),
        }
        if follower.is_present()
            && follower.desk.is_stuck()
            && let Some(detail) = follower.unanswered().await?
        {
            return Ok(Ending::Unanswered(Box::new(detail)));
        }
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

    fn interrupted(&mut self) -> Result<Interrupted, CliError> {
        let console = &self.context.console;
        self.live.end_line()?;
        if self.options.on_interrupt == OnInterrupt::Leave {
            console.remark(&format!("detached; the run continues: palyra runs attach {}", self.run_id));
            return Ok(Interrupted::Leave);
        }
        if self.cancelling == Cancelling::Asked {
            console.remark(&format!("left; to see what became of the run: palyra runs show {}", self.run_id));
            return Ok(Interrupted::Leave);
        }
        console.remark("cancelling the run … (press Ctrl-C again to leave at once)");
        let (client, id) = (self.client.clone(), self.run_id);
        self.cancelling = Cancelling::Asked;
        let params = AbortRunParams { reason: Some("cancelled at the terminal".to_owned()) };
        self.abort = Some(tokio::spawn(async move { client.abort_run(id, &params).await }));
        Ok(Interrupted::Stay)
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
