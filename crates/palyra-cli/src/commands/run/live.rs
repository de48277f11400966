//! The picture of a run while it goes on: text of the model as it comes, one line per finished tool call, and what is going on
//! when nothing has come for a while.

use std::time::{Duration, Instant};

use palyra_common::{RunLifecyclePhase, RunStatus, RunStreamBody, RunStreamEvent};

use super::open_calls::OpenCalls;
use crate::console::{Console, OutputFormat, Style, plain};
use crate::error::CliError;
use crate::render::text::shortened;
use crate::render::{calls, compaction, model_call, plan, verdict};

/// Silence after which the person is told what is being waited for.
const QUIET: Duration = Duration::from_secs(1);

/// What has been seen of a run, as far as later lines need it.
pub(super) struct Live<'a> {
    console: &'a Console,
    calls: OpenCalls,
    /// Whether the last piece of model text ended in the middle of a line.
    open_line: bool,
    /// What the model wrote in its newest turn.
    said: (u32, String),
    activity: String,
    last_event: Instant,
}

impl<'a> Live<'a> {
    pub(super) fn new(console: &'a Console) -> Self {
        let activity = "starting".to_owned();
        Self {
            console,
            calls: OpenCalls::default(),
            open_line: false,
            said: (0, String::new()),
            activity,
            last_event: Instant::now(),
        }
    }

    /// What the model wrote in its newest turn, as it was shown.
    pub(super) fn into_said(self) -> String {
        self.said.1
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &RunStreamEvent) -> Result<(), CliError> {
        self.last_event = Instant::now();
        match self.console.output() {
            OutputFormat::Ndjson => return self.console.document(event),
            OutputFormat::Json => return Ok(()),
            OutputFormat::Text => {}
        }
        match &event.body {
            RunStreamBody::ModelToken(token) => {
                if self.said.0 != token.turn {
                    self.said = (token.turn, String::new());
                }
                self.said.1.push_str(&token.text);
                let text = plain(&token.text);
                if !text.is_empty() {
                    self.open_line = !text.ends_with('\n');
                    self.console.piece(&text)?;
                }
                self.activity = "the model is writing".to_owned();
            }
            RunStreamBody::ToolProposal(_) => {
                self.calls.observe(event);
                self.activity = self.calls.activity().unwrap_or_default();
            }
            RunStreamBody::ToolResult(result) => {
                self.end_line()?;
                let (subject, took) = self.calls.finish(&result.call_id, event.at);
                let line = calls::line(result, &subject, took);
                let style = if result.ok { Style::Dim } else { Style::Bad };
                self.console.remark(&self.console.styled(style, &line));
                self.activity = self.calls.activity().unwrap_or_else(|| "the model is thinking".to_owned());
            }
            RunStreamBody::Status(RunStatus { progress: Some(progress), .. }) => {
                self.activity = self.calls.getting_on(progress);
                if !self.open_line {
                    self.console.progress(&self.activity);
                }
            }
            RunStreamBody::Status(status) => {
                self.end_line()?;
                self.activity = match status.phase {
                    RunLifecyclePhase::Queued => "waiting for its turn".to_owned(),
                    RunLifecyclePhase::WaitingForApproval => "waiting for a decision".to_owned(),
                    RunLifecyclePhase::Paused => {
                        self.console.remark("the run is paused; go on with: palyra runs resume last");
                        "paused".to_owned()
                    }
                    _ => "the model is thinking".to_owned(),
                };
            }
            RunStreamBody::ToolAttestation(_)
            | RunStreamBody::ToolApprovalRequest(_)
            | RunStreamBody::ToolApprovalResponse(_) => self.calls.observe(event),
            RunStreamBody::JournalEvent(record) => {
                let line = compaction::line(event.run_id, record).or_else(|| verdict::line(record));
                for line in line.into_iter().chain(model_call::lines(record)).chain(plan::changed(record)) {
                    self.end_line()?;
                    self.console.remark(&self.console.styled(Style::Dim, &line));
                }
            }
            RunStreamBody::A2uiUpdate(update) => {
                let text = |name: &str| update.payload.get(name).and_then(serde_json::Value::as_str);
                // Changes of a page that is known need no word of their own.
                if let (Some(canvas), Some(title)) = (text("canvas_id"), text("title")) {
                    self.end_line()?;
                    let line = format!("shows a page, \"{}\": palyra canvas open {canvas}", shortened(title, 60));
                    self.console.remark(&self.console.styled(Style::Dim, &line));
                }
            }
            RunStreamBody::ToolDecision(_) => {}
        }
        Ok(())
    }

    /// Called now and then: says what is going on when nothing else was said for a while.
    pub(super) fn tick(&self) {
        // In the middle of a line of model text the cursor is where the next piece has to go.
        if self.last_event.elapsed() >= QUIET && !self.open_line {
            self.console.progress(&format!("{} … {} s", self.activity, self.last_event.elapsed().as_secs()));
        }
    }

    /// Ends a line of model text, so that what follows starts on its own.
    pub(super) fn end_line(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.open_line) { self.console.piece("\n") } else { Ok(()) }
    }
}
