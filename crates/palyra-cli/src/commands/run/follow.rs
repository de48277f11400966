//! The loop that follows a run: its tape, the person's answers, Ctrl-C and a clock, whichever comes first.

use std::time::Duration;

use palyra_client::api::{AbortRunParams, RunView};
use palyra_client::{Client, ClientError, Follow};
use palyra_common::{RunId, RunStreamBody, RunStreamEvent};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::live::Live;
use crate::commands::approvals::desk::Desk;
use crate::context::Context;
use crate::error::CliError;
use crate::render::question::Question;

const TICK: Duration = Duration::from_millis(500);

/// How following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The run is over.
    Over,
    /// The person left; the run may go on.
    Left,
}

/// A request that is under way beside the tape, so that the loop never waits for it.
type Request = JoinHandle<Result<RunView, ClientError>>;

struct Follower<'a> {
    client: &'a Client,
    run_id: RunId,
    context: &'a Context,
    live: Live<'a>,
    desk: Desk<'a>,
    cancelling: Cancelling,
    abort: Option<Request>,
}

/// Whether the person has asked for the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancelling {
    NotAsked,
    Asked,
}

/// Follows a run until it is over or the person leaves.
///
/// Gives back what the model wrote last, as it was shown.
pub(super) async fn to_the_end(
    client: &Client,
    run_id: RunId,
    context: &Context,
) -> Result<(Ending, String), CliError> {
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
        desk: Desk::new(client, &context.console),
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
                if follower.interrupted()? == Ending::Left {
                    return Ok((Ending::Left, String::new()));
                }
            }
            step = follower.desk.next() => follower.desk.step(step)?,
            result = finished(&mut follower.abort) => follower.aborted(result)?,
            _ = clock.tick() => follower.tick(),
        }
    }
    follower.live.end_line()?;
    follower.desk.settle().await?;
    Ok((Ending::Over, follower.live.into_said()))
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
        match event.body {
            RunStreamBody::ToolApprovalRequest(request) => self.desk.asked(Question::on_tape(self.run_id, request)),
            RunStreamBody::ToolApprovalResponse(response) => self.desk.answered(response.approval_id),
            _ => return Ok(()),
        }
        if self.desk.has_news() {
            self.live.end_line()?;
        }
        self.desk.present();
        Ok(())
    }

    /// The first Ctrl-C aborts the run, the second leaves.
    fn interrupted(&mut self) -> Result<Ending, CliError> {
        let console = &self.context.console;
        self.live.end_line()?;
        if self.cancelling == Cancelling::Asked {
            console.remark(&format!("left; see what became of the run: palyra runs show {}", self.run_id));
            return Ok(Ending::Left);
        }
        console.remark("cancelling the run … (Ctrl-C again leaves at once)");
        let (client, id) = (self.client.clone(), self.run_id);
        self.cancelling = Cancelling::Asked;
        let params = AbortRunParams { reason: Some("cancelled at the terminal".to_owned()) };
        self.abort = Some(tokio::spawn(async move { client.abort_run(id, &params).await }));
        Ok(Ending::Over)
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
                "the run is not lost, it goes on when the daemon does: palyra daemon start; palyra runs tape {id} --follow"
            ));
        }
        error.into()
    }

    fn tick(&self) {
        if self.desk.is_empty() {
            self.live.tick();
        }
    }
}
