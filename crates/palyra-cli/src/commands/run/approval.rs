//! Approvals while a run is followed: which are open, how they are shown, what an answer means.
//!
//! INVARIANT: only a whole, unmistakable answer decides. Anything else asks again, and the end of input decides nothing.

use std::collections::VecDeque;

use palyra_common::{ApprovalDecision, ApprovalId, RunId, ToolApprovalRequest};

use crate::console::{Console, Style, plain};
use crate::render::calls;
use crate::render::text::shortened;

/// The questions that nobody has answered yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    queue: VecDeque<ToolApprovalRequest>,
}

impl OpenQuestions {
    pub(super) fn asked(&mut self, request: ToolApprovalRequest) {
        self.queue.push_back(request);
    }

    /// Takes out an answered question, wherever it was answered.
    pub(super) fn answered(&mut self, id: ApprovalId) {
        self.queue.retain(|request| request.approval_id != id);
    }

    pub(super) fn first(&self) -> Option<&ToolApprovalRequest> {
        self.queue.front()
    }
}

/// What a typed line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// An answer.
    Decision(ApprovalDecision),
    /// Show the arguments.
    Show,
    /// Nothing that could be understood.
    Unclear,
}

pub(super) fn understand(line: &str) -> Typed {
    match line.trim().to_ascii_lowercase().as_str() {
        "a" | "allow" => Typed::Decision(ApprovalDecision::Allow),
        "d" | "deny" => Typed::Decision(ApprovalDecision::Deny),
        "s" | "show" => Typed::Show,
        _ => Typed::Unclear,
    }
}

/// The question as it is put to a person at the terminal.
pub(super) fn question(request: &ToolApprovalRequest, console: &Console) -> String {
    let head = console.styled(Style::Ask, &format!("? {}", shortened(&request.summary, 300)));
    let what = match (&request.tool, &request.arguments) {
        (Some(tool), Some(arguments)) => {
            format!("\n  {} {}", shortened(tool, 100), calls::subject(arguments)).trim_end().to_owned()
        }
        _ => String::new(),
    };
    format!("{head}{what}\n  {} risk; {}\n", request.risk, shortened(&request.reason, 300))
}

pub(super) const CHOICES: &str = "  [a]llow once, [d]eny, [s]how everything > ";

/// Everything about the call, unshortened: this is what a person agrees to.
pub(super) fn whole(request: &ToolApprovalRequest) -> String {
    let mut text = format!("  approval {}\n", request.approval_id);
    if let Some(tool) = &request.tool {
        text.push_str(&format!("  tool {}\n", shortened(tool, 200)));
    }
    let arguments = request
        .arguments
        .as_ref()
        .map(|arguments| serde_json::to_string_pretty(arguments).unwrap_or_else(|_| arguments.to_string()));
    for line in plain(arguments.as_deref().unwrap_or("(no arguments)")).lines() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// What is said when nobody can type an answer here.
pub(super) fn elsewhere(request: &ToolApprovalRequest, run: RunId) -> String {
    format!(
        "waiting for a decision: {}\n  palyra approvals decide {} allow|deny\n  or end the run: palyra runs abort {run}",
        shortened(&request.summary, 300),
        request.approval_id
    )
}

#[cfg(test)]
mod tests {
    use palyra_common::{ApprovalSubject, Risk};
    use serde_json::json;

    use super::*;

    fn request(id: u128) -> ToolApprovalRequest {
        ToolApprovalRequest {
            approval_id: ApprovalId::from_u128(id),
            call_id: Some("c1".to_owned()),
            subject: ApprovalSubject::Tool,
            risk: Risk::High,
            summary: "write notes.md (12 bytes)".to_owned(),
            tool: Some("palyra.fs.write".to_owned()),
            arguments: Some(json!({ "path": "notes.md", "content": "a\u{1b}[8m" })),
            reason: "listed in run.ask_before".to_owned(),
        }
    }

    #[test]
    fn only_an_unmistakable_answer_decides() {
        assert_eq!(understand(" A\n"), Typed::Decision(ApprovalDecision::Allow));
        assert_eq!(understand("deny"), Typed::Decision(ApprovalDecision::Deny));
        assert_eq!(understand("s"), Typed::Show);
        for unclear in ["", "y", "yes", "allow deny", "aa", "always", "\u{1b}[A"] {
            assert_eq!(understand(unclear), Typed::Unclear, "{unclear:?}");
        }
    }

    #[test]
    fn a_question_says_what_and_why() {
        assert_eq!(
            question(&request(1), &Console::for_tests()),
            "? write notes.md (12 bytes)\n  palyra.fs.write notes.md\n  high risk; listed in run.ask_before\n"
        );
        assert!(whole(&request(1)).contains("\"content\": \"a\\u001b[8m\""), "{}", whole(&request(1)));
        assert!(elsewhere(&request(1), RunId::from_u128(9)).contains("palyra approvals decide 0000000000"));
    }

    #[test]
    fn questions_leave_the_queue_when_answered_anywhere() {
        let mut open = OpenQuestions::default();
        open.asked(request(1));
        open.asked(request(2));
        open.answered(ApprovalId::from_u128(1));
        assert_eq!(open.first().unwrap().approval_id, ApprovalId::from_u128(2));
        open.answered(ApprovalId::from_u128(2));
        assert!(open.first().is_none());
    }
}
