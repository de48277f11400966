//! The picture of a run while it goes on: text of the model as it comes, one line per finished tool call, and what is going on
//! when nothing has come for a while.

use std::time::{Duration, Instant};

use palyra_common::{MODEL_CALL, RunLifecyclePhase, RunStatus, RunStreamBody, RunStreamEvent};

use super::open_calls::{FinishedCall, OpenCalls, latest};
use crate::console::{Console, OutputFormat, Style, plain};
use crate::error::CliError;
use crate::render::model_call::Attempts;
use crate::render::text::shortened;
use crate::render::{calls, compaction, intents, model_call, plan, unavailable_tools, verdict, withheld_instructions};

/// Silence after which the person is told what is being waited for.
const QUIET: Duration = Duration::from_secs(1);
/// How often that is said where it cannot be replaced by what comes next, as in a log.
const REPORT_EVERY: Duration = Duration::from_secs(30);

/// What has been seen of a run, as far as later lines need it.
pub(super) struct Live<'a> {
    console: &'a Console,
    calls: OpenCalls,
    /// Whether the last piece of model text ended in the middle of a line.
    open_line: bool,
    /// What the model wrote in its newest turn.
    said: (u32, String),
    /// Up to this position the tape is history.
    history_until: u64,
    /// What the model wrote in a turn that is history and not known to be whole: it may have been begun again.
    held: String,
    activity: Activity,
    /// Whether attempts of the model call under way were told as they failed.
    told_attempts: bool,
    /// When anything was printed last.
    last_shown: Instant,
}

/// What is going on.
struct Activity {
    /// In words.
    what: String,
    /// What it says of itself, such as the last line that a program printed.
    latest: String,
    since: Instant,
}

impl Activity {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), latest: String::new(), since: Instant::now() }
    }

    /// `run cargo test … 12 s  Compiling foo`.
    fn line(&self) -> String {
        let seconds = self.since.elapsed().as_secs();
        format!("{} … {seconds} s  {}", self.what, self.latest).trim_end().to_owned()
    }
}

impl<'a> Live<'a> {
    pub(super) fn new(console: &'a Console, history_until: u64) -> Self {
        Self {
            console,
            calls: OpenCalls::default(),
            open_line: false,
            said: (0, String::new()),
            history_until,
            held: String::new(),
            activity: Activity::new("starting"),
            told_attempts: false,
            last_shown: Instant::now(),
        }
    }

    /// What the model wrote in its newest turn, as it was shown.
    pub(super) fn into_said(self) -> String {
        self.said.1
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &RunStreamEvent) -> Result<(), CliError> {
        match self.console.output() {
            OutputFormat::Ndjson => return self.console.document(event),
            OutputFormat::Json => return Ok(()),
            OutputFormat::Text => {}
        }
        self.settle_held(event)?;
        match &event.body {
            RunStreamBody::ModelToken(token) => {
                if self.said.0 != token.turn {
                    self.said = (token.turn, String::new());
                }
                self.said.1.push_str(&token.text);
                if event.seq < self.history_until {
                    self.held.push_str(&token.text);
                } else {
                    self.write(&token.text)?;
                }
                self.enter("the model is writing");
                self.last_shown = Instant::now();
            }
            RunStreamBody::ToolProposal(_) => {
                self.calls.observe(event);
                self.enter_calls_or("the model is thinking");
            }
            RunStreamBody::ToolResult(result) => {
                self.end_line()?;
                let FinishedCall { subject, intents, took } = self.calls.finish(&result.call_id, event.at);
                match intents {
                    // What the run is meant to do is for the person to read, so it does not stand back.
                    Some(intents) => {
                        for line in intents::outcome(&intents, result) {
                            let line = if result.ok { line } else { self.console.styled(Style::Bad, &line) };
                            self.remark(&line);
                        }
                    }
                    None => {
                        let style = if result.ok { Style::Dim } else { Style::Bad };
                        self.remark(&self.console.styled(style, &calls::line(result, &subject, took)));
                    }
                }
                self.enter_calls_or("the model is thinking");
            }
            RunStreamBody::Status(RunStatus { progress: Some(progress), .. }) if progress.call_id == MODEL_CALL => {
                // Rare, and the reason for a long silence: worth a line of its own, in a log too.
                self.end_line()?;
                let line = format!("model: {}", shortened(&progress.message, 240));
                self.remark(&self.console.styled(Style::Dim, &line));
                self.told_attempts = true;
                self.enter("waiting to ask the model again");
            }
            RunStreamBody::Status(RunStatus { progress: Some(progress), .. }) => {
                self.enter_calls_or("working");
                self.activity.latest = latest(progress);
                self.tick();
            }
            RunStreamBody::Status(status) => {
                self.end_line()?;
                match status.phase {
                    RunLifecyclePhase::Queued => self.enter("waiting for its turn"),
                    RunLifecyclePhase::WaitingForApproval => self.enter("waiting for an answer"),
                    RunLifecyclePhase::Paused => {
                        self.remark(&format!("paused; to go on: palyra runs resume {}", event.run_id));
                        self.enter("paused");
                    }
                    _ => self.enter("the model is thinking"),
                }
            }
            RunStreamBody::ToolAttestation(_)
            | RunStreamBody::ToolApprovalRequest(_)
            | RunStreamBody::ToolApprovalResponse(_) => self.calls.observe(event),
            RunStreamBody::JournalEvent(record) => {
                let line = compaction::line(event.run_id, record).or_else(|| verdict::line(record));
                let told = if model_call::is_one(record) { std::mem::take(&mut self.told_attempts) } else { false };
                let attempts = if told { Attempts::Told } else { Attempts::Untold };
                for line in line
                    .into_iter()
                    .chain(model_call::lines(record, attempts))
                    .chain(plan::changed(record))
                    .chain(unavailable_tools::lines(record))
                    .chain(withheld_instructions::lines(record))
                {
                    self.end_line()?;
                    self.remark(&self.console.styled(Style::Dim, &line));
                }
            }
            RunStreamBody::A2uiUpdate(update) => {
                let text = |name: &str| update.payload.get(name).and_then(serde_json::Value::as_str);
                // Changes of a page that is known need no word of their own.
                if let (Some(canvas), Some(title)) = (text("canvas_id"), text("title")) {
                    self.end_line()?;
                    let line = format!("shows a page, \"{}\": palyra canvas open {canvas}", shortened(title, 60));
                    self.remark(&self.console.styled(Style::Dim, &line));
                }
            }
            RunStreamBody::ToolDecision(_) => {}
        }
        Ok(())
    }

    /// Decides what becomes of text that was held: it is shown, unless the call that gave it was made again. What was shown already cannot be
    /// taken back; then it is said that the answer begins again.
    fn settle_held(&mut self, event: &RunStreamEvent) -> Result<(), CliError> {
        if let RunStreamBody::JournalEvent(record) = &event.body {
            if model_call::begins(record) == Some(self.said.0) && !self.said.1.is_empty() {
                let was_shown = std::mem::take(&mut self.held).is_empty();
                self.said.1.clear();
                if was_shown {
                    self.end_line()?;
                    self.remark(&self.console.styled(Style::Dim, "the model is asked again; the answer starts over"));
                }
                return Ok(());
            }
            // What leads to another attempt says nothing of the first.
            if !model_call::is_one(record) && event.seq < self.history_until {
                return Ok(());
            }
        }
        let is_text = matches!(event.body, RunStreamBody::ModelToken(_));
        // What is told of calls under way has no position of its own.
        let has_position = event.progress().is_none();
        if self.held.is_empty() || (event.seq < self.history_until && (is_text || !has_position)) {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        self.write(&held)
    }

    /// Writes a piece of the model's text.
    fn write(&mut self, text: &str) -> Result<(), CliError> {
        let text = plain(text);
        if !text.is_empty() {
            self.open_line = !text.ends_with('\n');
            self.console.piece(&text)?;
        }
        Ok(())
    }

    /// Called now and then: says what is going on when nothing else was said for a while. A terminal shows it in place, a log once in
    /// a while.
    pub(super) fn tick(&mut self) {
        // In the middle of a line of model text the cursor is where the next piece has to go.
        if self.open_line || !self.console.is_text() {
            return;
        }
        if self.console.shows_progress() {
            if self.activity.since.elapsed() >= QUIET {
                self.console.progress(&self.activity.line());
            }
        } else if self.last_shown.elapsed() >= REPORT_EVERY {
            self.remark(&self.activity.line());
        }
    }

    /// Something else is going on from now on.
    fn enter(&mut self, what: &str) {
        if self.activity.what != what {
            self.activity = Activity::new(what);
        }
    }

    /// Calls are at work, or else this goes on.
    fn enter_calls_or(&mut self, otherwise: &str) {
        let what = self.calls.activity();
        self.enter(what.as_deref().unwrap_or(otherwise));
    }

    fn remark(&mut self, text: &str) {
        self.console.remark(text);
        self.last_shown = Instant::now();
    }

    /// Ends a line of model text, so that what follows starts on its own.
    pub(super) fn end_line(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.open_line) { self.console.piece("\n") } else { Ok(()) }
    }
}
