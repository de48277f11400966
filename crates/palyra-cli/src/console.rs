//! Everything that is printed: results to standard output, remarks and progress to standard error.
//!
//! INVARIANT: text that comes from a model, a tool or a file passes through [`plain`] before it reaches a terminal, so that it
//! can neither move the cursor nor hide what a person is asked to agree to.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use palyra_common::StableErrorEnvelope;
use rustix::fs::{FileType, fstat};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use serde::Serialize;

use crate::error::CliError;
use crate::render::text::{fitted, shortened};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON document per line
    Ndjson,
}

/// What standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardInput {
    /// A terminal.
    Terminal,
    /// A pipe, a file or a socket: something may have been given with it.
    Data,
    /// Another device, such as `/dev/null`, or nothing at all.
    Nothing,
}

/// Where a person types.
#[derive(Debug, Clone)]
pub(crate) enum TerminalInput {
    /// Standard input is the terminal.
    StandardInput,
    /// Standard input is something else; this is the controlling terminal.
    Device(Arc<File>),
    /// There is nobody.
    Absent,
}

/// Emphasis, where the terminal shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Less important.
    Dim,
    /// It went well.
    Good,
    /// It did not.
    Bad,
    /// Somebody has to act.
    Ask,
}

/// The process's standard streams and how to use them.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    output: OutputFormat,
    input: StandardInput,
    terminal_input: TerminalInput,
    /// The terminal, for questions that standard error would not show to anybody.
    question_screen: Option<Arc<File>>,
    progress: Progress,
    colour: Colour,
    /// Whether the last line of standard error is a progress line that has to be wiped first.
    progress_shown: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Shown,
    Hidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Used,
    Avoided,
}

impl Console {
    /// The streams of this process.
    pub(crate) fn of_process(output: OutputFormat) -> Self {
        let terminal = io::stderr().is_terminal();
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let able = std::env::var_os("TERM").is_none_or(|value| value != "dumb");
        let input = StandardInput::of_process();
        let device = if terminal && input == StandardInput::Terminal { None } else { controlling_terminal() };
        let terminal_input = match (input, &device) {
            (StandardInput::Terminal, _) => TerminalInput::StandardInput,
            (StandardInput::Data, Some(device)) => TerminalInput::Device(Arc::clone(device)),
            // Whoever redirects from `/dev/null` says that nobody is there.
            (StandardInput::Data, None) | (StandardInput::Nothing, _) => TerminalInput::Absent,
        };
        Self {
            output,
            input,
            terminal_input,
            question_screen: device.filter(|_| !terminal),
            progress: if terminal { Progress::Shown } else { Progress::Hidden },
            colour: if terminal && io::stdout().is_terminal() && wanted && able {
                Colour::Used
            } else {
                Colour::Avoided
            },
            progress_shown: Arc::new(AtomicBool::new(false)),
        }
    }

    pub(crate) fn output(&self) -> OutputFormat {
        self.output
    }

    pub(crate) fn is_text(&self) -> bool {
        self.output == OutputFormat::Text
    }

    /// What standard input is.
    pub(crate) fn input(&self) -> StandardInput {
        self.input
    }

    /// Where a person can answer a question. A program that reads JSON does not answer on the terminal.
    pub(crate) fn terminal_input(&self) -> TerminalInput {
        if self.is_text() { self.terminal_input.clone() } else { TerminalInput::Absent }
    }

    /// A line of the result.
    pub(crate) fn line(&self, text: &str) -> Result<(), CliError> {
        self.wipe_progress();
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").map_err(|source| CliError::Output { source })
    }

    /// A line of the result, broken between words where the terminal is too narrow for it.
    pub(crate) fn prose(&self, text: &str) -> Result<(), CliError> {
        fitted(text, columns()).iter().try_for_each(|line| self.line(line))
    }

    /// A piece of the result that appears at once.
    pub(crate) fn piece(&self, text: &str) -> Result<(), CliError> {
        self.wipe_progress();
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|source| CliError::Output { source })
    }

    /// A document as the result: indented for `json`, on one line for `ndjson`.
    pub(crate) fn document(&self, document: &impl Serialize) -> Result<(), CliError> {
        let text = match self.output {
            OutputFormat::Ndjson => serde_json::to_string(document),
            OutputFormat::Text | OutputFormat::Json => serde_json::to_string_pretty(document),
        };
        self.line(&text.map_err(|source| CliError::Output { source: source.into() })?)
    }

    /// A list as the result: `whole` as one document, or each of `items` on its own line.
    pub(crate) fn list(&self, whole: &impl Serialize, items: &[impl Serialize]) -> Result<(), CliError> {
        if self.output == OutputFormat::Ndjson {
            items.iter().try_for_each(|item| self.document(item))
        } else {
            self.document(whole)
        }
    }

    /// A remark. If standard error is gone there is nobody to tell.
    pub(crate) fn remark(&self, text: &str) {
        self.wipe_progress();
        let mut stderr = io::stderr().lock();
        let columns = if self.progress == Progress::Shown { columns_of(&stderr) } else { None };
        let _ = writeln!(stderr, "{}", broken_between_words(text, columns));
    }

    /// Lines of a prompt, broken between words where the terminal is too narrow for them.
    pub(crate) fn fit_prompt(&self, text: &str) -> String {
        let columns = match &self.question_screen {
            Some(screen) => columns_of(screen.as_ref()),
            None if self.progress == Progress::Shown => columns_of(io::stderr()),
            None => None,
        };
        broken_between_words(text, columns)
    }

    /// A remark without its line end, before an answer is typed. It is shown where the person is, wherever standard error goes.
    pub(crate) fn prompt(&self, text: &str) {
        self.wipe_progress();
        if let Some(mut screen) = self.question_screen.as_deref() {
            let _ = screen.write_all(text.as_bytes());
            return;
        }
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    /// What is going on; replaced by whatever is printed next. Only on a terminal.
    pub(crate) fn progress(&self, text: &str) {
        if self.progress == Progress::Shown {
            let mut stderr = io::stderr().lock();
            // A line that wraps could not be wiped.
            let text = columns_of(&stderr).map_or_else(|| text.to_owned(), |columns| shortened(text, columns - 1));
            let _ = write!(stderr, "\r\u{1b}[K{}", self.styled(Style::Dim, &text)).and_then(|()| stderr.flush());
            self.progress_shown.store(true, Ordering::Relaxed);
        }
    }

    /// Whether progress is shown, which only a terminal can replace by what comes next.
    pub(crate) fn shows_progress(&self) -> bool {
        self.progress == Progress::Shown
    }

    pub(crate) fn wipe_progress(&self) {
        if self.progress_shown.swap(false, Ordering::Relaxed) {
            let mut stderr = io::stderr().lock();
            let _ = stderr.write_all(b"\r\x1b[K").and_then(|()| stderr.flush());
        }
    }

    /// An error: two lines for people, the envelope for programs.
    pub(crate) fn error(&self, envelope: &StableErrorEnvelope) {
        if self.is_text() {
            self.remark(&render_error(self, envelope));
        } else {
            // Where standard output takes nothing, the reason must not be lost with it.
            let document = palyra_client::api::ErrorResponse { error: envelope.clone() };
            if self.document(&document).is_err() {
                self.remark(&render_error(self, envelope));
            }
        }
    }

    /// Text with emphasis, where that is wanted and can be shown.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.colour == Colour::Avoided {
            return text.to_owned();
        }
        let code = match style {
            Style::Dim => "2",
            Style::Good => "32",
            Style::Bad => "31",
            Style::Ask => "1;33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// A console for tests: no terminal, no colour.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            output: OutputFormat::Text,
            input: StandardInput::Nothing,
            terminal_input: TerminalInput::Absent,
            question_screen: None,
            progress: Progress::Hidden,
            colour: Colour::Avoided,
            progress_shown: Arc::default(),
        }
    }
}

impl StandardInput {
    fn of_process() -> Self {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Self::Terminal;
        }
        match fstat(&stdin).map(|found| FileType::from_raw_mode(found.st_mode)) {
            Ok(FileType::Fifo | FileType::RegularFile | FileType::Socket) => Self::Data,
            Ok(_) | Err(_) => Self::Nothing,
        }
    }
}

/// The terminal of this process, if it has one and is in its foreground: whoever reads from the background is stopped.
fn controlling_terminal() -> Option<Arc<File>> {
    let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
    (tcgetpgrp(&terminal).ok()? == getpgrp()).then(|| Arc::new(terminal))
}

/// Every line of a text, fitted to so many columns; emphasis around the whole is kept.
fn broken_between_words(text: &str, columns: Option<usize>) -> String {
    if columns.is_none() {
        return text.to_owned();
    }
    const END: &str = "\u{1b}[0m";
    let styled = text.strip_prefix("\u{1b}[").and_then(|rest| rest.split_once('m'));
    let styled = styled.and_then(|(code, rest)| Some((code, rest.strip_suffix(END)?)));
    let (code, inner) = match styled {
        Some((code, inner)) if !inner.contains('\u{1b}') => (Some(code), inner),
        _ => (None, text),
    };
    let lines: Vec<String> = inner.split('\n').flat_map(|line| fitted(line, columns)).collect();
    let joined = lines.join("\n");
    code.map_or_else(|| joined.clone(), |code| format!("\u{1b}[{code}m{joined}{END}"))
}

/// Fewest columns that anything is fitted to.
const NARROWEST: usize = 20;

/// How many columns results have: what `COLUMNS` says, or the terminal. Unlimited where results go to a file or a program.
pub(crate) fn columns() -> Option<usize> {
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    named
        .filter(|columns| *columns > 0)
        .map(|columns: usize| columns.max(NARROWEST))
        .or_else(|| columns_of(io::stdout()))
}

fn columns_of(stream: impl AsFd) -> Option<usize> {
    let size = tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col).max(NARROWEST))
}

fn render_error(console: &Console, envelope: &StableErrorEnvelope) -> String {
    let head = console.styled(Style::Bad, "error:");
    let mut text = format!("{head} {} [{}]", one_line(&envelope.message), envelope.code);
    // The message names the first wrong field already.
    for field in envelope.validation_errors.iter().skip(1) {
        text.push_str(&format!("\n  also: {}", one_line(&field.message)));
    }
    if let Some(hint) = &envelope.recovery_hint {
        text.push_str(&format!("\n{} {}", console.styled(Style::Dim, "hint:"), one_line(hint)));
    }
    text
}

/// Text in which nothing is left that a terminal would obey: control characters but newline and tab, and the characters
/// that change the direction of writing, by which a harmful command can be made to look like a harmless one.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The same on a single line.
pub(crate) fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use palyra_common::ErrorCategory;

    use super::*;

    #[test]
    fn hostile_text_cannot_command_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\td\u{7}"), "a\u{fffd}[2Jb\u{fffd}\nc\td\u{fffd}");
        assert_eq!(plain("rm \u{202e}txt.exe"), "rm \u{fffd}txt.exe");
        assert_eq!(plain("naïve 漢字 👍"), "naïve 漢字 👍");
        assert_eq!(one_line("a\nb"), "a b");
    }

    #[test]
    fn a_narrow_terminal_breaks_between_words_and_never_within_a_command() {
        let text = "\u{1b}[2mthe run is not lost; it continues\nnext: palyra runs attach 0123456789\u{1b}[0m";
        assert_eq!(
            broken_between_words(text, Some(20)),
            "\u{1b}[2mthe run is not lost;\nit continues\nnext: palyra runs attach 0123456789\u{1b}[0m"
        );
        assert_eq!(broken_between_words(text, None), text);
    }

    #[test]
    fn an_error_is_one_line_and_a_hint() {
        let envelope =
            StableErrorEnvelope::new("task_empty", ErrorCategory::Validation, "there is no\ntask").hint("say");
        assert_eq!(render_error(&Console::for_tests(), &envelope), "error: there is no task [task_empty]\nhint: say");
    }
}
