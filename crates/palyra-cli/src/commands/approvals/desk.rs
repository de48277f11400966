//! The desk where a person answers: the questions that wait, the one on the screen, and the answer under way.
//!
//! Used wherever questions are put at a terminal: `palyra run`, `palyra runs attach` and `palyra approvals watch`. The surroundings
//! bring questions and take them away; the desk shows them one at a time, oldest first.
//!
//! INVARIANT: what was typed before a question was on the screen does not answer it, and the end of input answers nothing.

use std::collections::VecDeque;
use std::time::Instant;

use palyra_client::api::DecideApprovalParams;
use palyra_client::{Client, ClientError};
use palyra_common::ApprovalId;
use tokio::task::JoinHandle;

use super::answer::{self, Decided, Typed};
use super::keyboard::{Keyboard, Line};
use crate::console::{Console, TerminalInput, one_line};
use crate::error::CliError;
use crate::render;
use crate::render::question::{self, Question};
use crate::render::text::shortened;

/// What is done about questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionPolicy {
    /// A person is asked; where there is none, this is done instead.
    Ask(Unattended),
    /// Each is refused.
    Deny,
}

/// What is done about a question where nobody can type an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unattended {
    /// It is shown, and waited for until somebody answers elsewhere.
    Wait,
    /// It is left open, and so is its run.
    Leave,
}

/// Who answers the questions at this desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answering {
    /// A person at a terminal.
    Person,
    /// Somebody elsewhere.
    Elsewhere,
    /// Nobody for as long as this command runs.
    Nobody,
    /// The command itself, with no.
    Refusal,
}

impl Unattended {
    fn answering(self) -> Answering {
        match self {
            Self::Wait => Answering::Elsewhere,
            Self::Leave => Answering::Nobody,
        }
    }
}

/// Questions and answers at one terminal.
pub(crate) struct Desk<'a> {
    client: &'a Client,
    console: &'a Console,
    questions: VecDeque<Question>,
    shown: Option<Shown>,
    answering: Answering,
    unattended: Unattended,
    keyboard: Keyboard,
    deciding: Option<Deciding>,
}

/// The question that is on the screen.
#[derive(Debug, Clone, Copy)]
struct Shown {
    id: ApprovalId,
    since: Instant,
}

/// The answer that is under way, so that the loop around never waits for it.
struct Deciding {
    id: ApprovalId,
    task: JoinHandle<Result<Decided, ClientError>>,
}

/// Something that happened at the desk.
pub(crate) enum Step {
    /// A line was typed, or there will be no more.
    Typed(Option<Line>),
    /// The daemon said what became of an answer.
    Decided(ApprovalId, Result<Box<Decided>, ClientError>),
}

impl<'a> Desk<'a> {
    pub(crate) fn new(client: &'a Client, console: &'a Console, policy: QuestionPolicy) -> Self {
        let terminal = console.terminal_input();
        let (answering, unattended) = match (policy, &terminal) {
            (QuestionPolicy::Deny, _) => (Answering::Refusal, Unattended::Leave),
            (QuestionPolicy::Ask(unattended), TerminalInput::Absent) => (unattended.answering(), unattended),
            (QuestionPolicy::Ask(unattended), _) => (Answering::Person, unattended),
        };
        let (questions, keyboard) = (VecDeque::new(), Keyboard::new(terminal));
        Self { client, console, questions, shown: None, answering, unattended, keyboard, deciding: None }
    }

    pub(crate) fn answering(&self) -> Answering {
        self.answering
    }

    /// Whether a question is open that nobody answers while this command runs.
    pub(crate) fn is_stuck(&self) -> bool {
        self.answering == Answering::Nobody && !self.is_empty()
    }

    /// Takes all questions out.
    pub(crate) fn clear(&mut self) {
        self.questions.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Puts a question at the end of the queue.
    pub(crate) fn asked(&mut self, question: Question) {
        if self.questions.iter().all(|known| known.approval_id != question.approval_id) {
            self.questions.push_back(question);
        }
    }

    /// Takes out an answered question, wherever it was answered.
    pub(crate) fn answered(&mut self, id: ApprovalId) {
        self.questions.retain(|question| question.approval_id != id);
    }

    /// Whether [`Desk::present`] would print something.
    pub(crate) fn has_news(&self) -> bool {
        self.questions.front().is_some_and(|first| self.shown.is_none_or(|shown| shown.id != first.approval_id))
    }

    /// Puts the oldest open question on the screen, unless it is there already.
    pub(crate) fn present(&mut self) {
        let Some(first) = self.questions.front().cloned() else {
            self.shown = None;
            return;
        };
        let first = &first;
        if self.shown.is_some_and(|shown| shown.id == first.approval_id) {
            return;
        }
        // Before it is printed: from then on whatever is typed may be the answer.
        let since = Instant::now();
        match self.answering {
            Answering::Person => {
                self.keyboard.forget();
                let mut lines = question::lines(first, self.console);
                lines.push(self.choices(first));
                self.console.prompt(&lines.join("\n"));
            }
            Answering::Elsewhere if self.console.is_text() => {
                self.console.remark(&question::elsewhere(first).join("\n"));
            }
            // Programs find the question on the tape; whoever leaves shows it then.
            Answering::Elsewhere | Answering::Nobody => {}
            Answering::Refusal => {
                if self.console.is_text() {
                    let refused = format!("denied, as --on-approval says: {}", shortened(&first.summary, 300));
                    self.console.remark(&refused);
                }
                self.give(first.approval_id, answer::denied_unasked());
            }
        }
        self.shown = Some(Shown { id: first.approval_id, since });
    }

    /// Says something without losing the question that is on the screen.
    pub(crate) fn note(&self, text: &str) {
        match (self.answering, self.shown, self.questions.front()) {
            (Answering::Person, Some(shown), Some(first)) if shown.id == first.approval_id => {
                self.console.prompt(&format!("\n{}\n{}", self.console.fit_prompt(text), self.choices(first)));
            }
            _ => self.console.remark(text),
        }
    }

    /// Waits for the next thing to happen. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Step {
        let listens =
            self.answering == Answering::Person && self.deciding.is_none() && self.shown.is_some() && !self.is_empty();
        tokio::select! {
            line = self.keyboard.line(), if listens => Step::Typed(line),
            (id, result) = decided(&mut self.deciding) => Step::Decided(id, result.map(Box::new)),
        }
    }

    /// Does what follows from what happened.
    pub(crate) fn step(&mut self, step: Step) -> Result<(), CliError> {
        match step {
            Step::Typed(Some(line)) => self.typed(&line),
            Step::Typed(None) => self.silent(),
            Step::Decided(id, result) => self.decided(id, result)?,
        }
        Ok(())
    }

    /// Waits for an answer that is still under way when its run is over already, so that the person learns what they
    /// agreed to. A broken connection is no matter any more: the run went on, so the answer was taken.
    pub(crate) async fn settle(&mut self) -> Result<(), CliError> {
        self.questions.clear();
        if self.deciding.is_none() {
            return Ok(());
        }
        match decided(&mut self.deciding).await {
            (_, Err(error)) if error.is_connection_trouble() => Ok(()),
            (id, result) => self.decided(id, result.map(Box::new)),
        }
    }

    fn typed(&mut self, line: &Line) {
        let (Some(first), Some(shown)) = (self.questions.front(), self.shown) else { return };
        if shown.id != first.approval_id || line.read_at < shown.since {
            return;
        }
        let choices = self.choices(first);
        match answer::understand(&line.text, first.offer.as_deref()) {
            Typed::Answer(answer) => self.give(first.approval_id, answer.params()),
            Typed::DenyBecause(reason) => self.give(first.approval_id, answer::denied_because(reason)),
            Typed::More => self.console.prompt(&format!("{}\n{choices}", question::more(first).join("\n"))),
            Typed::Unclear => {
                let explained = answer::explain_unclear(&line.text, first.offer.as_deref());
                self.console.prompt(&format!("{}\n{choices}", self.console.fit_prompt(&format!("  {explained}"))));
            }
        }
    }

    /// The keys, fitted to the screen. The last line ends where the answer is typed.
    fn choices(&self, question: &Question) -> String {
        let fitted = self.console.fit_prompt(question::choices(question).trim_end());
        format!("{fitted} ")
    }

    fn give(&mut self, id: ApprovalId, params: DecideApprovalParams) {
        let client = self.client.clone();
        let task = tokio::spawn(async move { answer::give(&client, id, &params).await });
        self.deciding = Some(Deciding { id, task });
    }

    /// The keyboard is gone, and silence is no consent.
    fn silent(&mut self) {
        self.answering = self.unattended.answering();
        self.console.prompt("\n");
        self.shown = None;
        self.present();
    }

    fn decided(&mut self, id: ApprovalId, result: Result<Box<Decided>, ClientError>) -> Result<(), CliError> {
        match result {
            // The surroundings will hear the same; until then the question must not be asked again.
            Ok(decided) => {
                self.answered(id);
                if let Some(pattern) = &decided.pattern {
                    self.note(&render::approvals::agreed_to(pattern).join("\n"));
                }
            }
            Err(ClientError::Refused(envelope)) => {
                self.console.remark(&format!("not accepted: {} [{}]", one_line(&envelope.message), envelope.code));
                // Somebody else was quicker, or the run took the question back: it is closed either way.
                if matches!(envelope.code.as_str(), "approval_closed" | "approval_not_found") {
                    self.answered(id);
                }
                self.shown = None;
            }
            Err(error) => return Err(error.into()),
        }
        self.present();
        Ok(())
    }
}

/// Waits for the answer under way if there is one; otherwise for ever, which leaves the choice to the other branches.
async fn decided(deciding: &mut Option<Deciding>) -> (ApprovalId, Result<Decided, ClientError>) {
    let Some(running) = deciding else { return std::future::pending().await };
    let result = (&mut running.task).await;
    let id = running.id;
    *deciding = None;
    let lost = |error| Err(ClientError::Disconnected { doing: "deciding an approval", source: Box::new(error) });
    (id, result.unwrap_or_else(lost))
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
