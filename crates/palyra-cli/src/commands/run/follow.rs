//! The loop that follows a run: its tape, the person's answers, Ctrl-C and a clock, whichever comes first.

use std::time::Duration;

use palyra_client::api::{AbortRunParams, DecideApprovalParams, RunView};
use palyra_client::{Client, ClientError, Follow};
use palyra_common::{ApprovalId, ApprovalScope, RunId, RunStreamBody, RunStreamEvent};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::approval::{self, OpenQuestions, Typed};
use super::keyboard::Keyboard;
use super::live::Live;
use crate::console::Input;
use crate::context::Context;
use crate::error::CliError;

const TICK: Duration = Duration::from_millis(500);

/// How following ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The run is over.
    Over,
    /// The person left; the run may go on.
    Left,
}

/// Requests that are under way beside the tape, so that the loop never waits for them.
type Request = JoinHandle<Result<RunView, ClientError>>;

struct Follower<'a> {
    client: &'a Client,
    run_id: RunId,
    context: &'a Context,
    live: Live<'a>,
    questions: OpenQuestions,
    /// The question that is on the screen.
    shown: Option<ApprovalId>,
    answering: Input,
    cancelling: Cancelling,
    abort: Option<Request>,
    /// The question whose answer is under way.
    deciding: Option<ApprovalId>,
    decision: Option<Request>,
}

/// Whether the person has asked for the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancelling {
    NotAsked,
    Asked,
}

/// Follows a run until it is over or the person leaves.
pub(super) async fn to_the_end(client: &Client, run_id: RunId, context: &Context) -> Result<Ending, CliError> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|source| CliError::Runtime { source })?;
    let mut tape = client.tape(run_id, 1, Follow::UntilEnd);
    let mut keyboard = Keyboard::new();
    let mut clock = tokio::time::interval(TICK);
    let mut follower = Follower {
        client,
        run_id,
        context,
        live: Live::new(&context.console),
        questions: OpenQuestions::default(),
        shown: None,
        // A program that reads JSON does not answer questions on the terminal.
        answering: if context.console.is_text() { context.console.input() } else { Input::Piped },
        cancelling: Cancelling::NotAsked,
        abort: None,
        deciding: None,
        decision: None,
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
                    return Ok(Ending::Left);
                }
            }
            line = keyboard.line(), if follower.listens() => follower.typed(line.as_deref()),
            result = finished(&mut follower.abort) => follower.aborted(result)?,
            result = finished(&mut follower.decision) => follower.decided(result)?,
            _ = clock.tick() => follower.tick(),
        }
    }
    follower.live.end_line()?;
    Ok(Ending::Over)
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
            RunStreamBody::ToolApprovalRequest(request) => self.questions.asked(request),
            RunStreamBody::ToolApprovalResponse(response) => self.questions.answered(response.approval_id),
            _ => return Ok(()),
        }
        self.ask()
    }

    /// Puts the oldest open question on the screen, unless it is there already.
    fn ask(&mut self) -> Result<(), CliError> {
        let Some(request) = self.questions.first() else {
            self.shown = None;
            return Ok(());
        };
        if self.shown == Some(request.approval_id) {
            return Ok(());
        }
        self.shown = Some(request.approval_id);
        self.live.end_line()?;
        let console = &self.context.console;
        match self.answering {
            Input::Terminal => {
                console.prompt(&format!("{}{}", approval::question(request, console), approval::CHOICES));
            }
            Input::Piped => console.remark(&approval::elsewhere(request, self.run_id)),
        }
        Ok(())
    }

    /// Whether a typed line would mean something now.
    fn listens(&self) -> bool {
        self.answering == Input::Terminal && self.questions.first().is_some() && self.decision.is_none()
    }

    fn typed(&mut self, line: Option<&str>) {
        let Some(request) = self.questions.first() else { return };
        let console = &self.context.console;
        match line.map(approval::understand) {
            Some(Typed::Decision(decision)) => {
                let (client, id) = (self.client.clone(), request.approval_id);
                self.deciding = Some(id);
                let params = DecideApprovalParams { decision, scope: ApprovalScope::Once };
                self.decision = Some(tokio::spawn(async move { client.decide_approval(id, &params).await }));
            }
            Some(Typed::Show) => console.prompt(&format!("{}{}", approval::whole(request), approval::CHOICES)),
            Some(Typed::Unclear) => console.prompt(approval::CHOICES),
            None => {
                // The keyboard is gone, and silence is no consent.
                self.answering = Input::Piped;
                console.remark(&format!("\n{}", approval::elsewhere(request, self.run_id)));
            }
        }
    }

    fn decided(&mut self, result: Result<RunView, ClientError>) -> Result<(), CliError> {
        let id = self.deciding.take();
        match result {
            // The tape will say the same; until then the question must not be asked again.
            Ok(_) => {
                if let Some(id) = id {
                    self.questions.answered(id);
                }
            }
            // Somebody else may have been quicker: then the tape says how it was answered.
            Err(ClientError::Refused(envelope)) => {
                self.context.console.remark(&format!("not accepted: {} [{}]", envelope.message, envelope.code));
                self.shown = None;
            }
            Err(error) => return Err(error.into()),
        }
        self.ask()
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
        if self.questions.first().is_none() {
            self.live.tick();
        }
    }
}
