//! Approval cards: the questions of a session, in Palyra's own words. A document says where a card stands and nothing of what is on it.

use super::writer::Html;
use super::{Acting, View, forms};
use crate::component::Approval;

/// The questions of one card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Questions {
    /// The card.
    pub card: String,
    /// The questions, oldest first.
    pub questions: Vec<Question>,
}

/// One question, as Palyra puts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Which one.
    pub approval_id: String,
    /// The program that asks in words of its own; nothing if Palyra asks.
    pub asked_by: Option<String>,
    /// What would happen, in one line.
    pub summary: String,
    /// Why it is asked.
    pub reason: String,
    /// How much harm it could do.
    pub risk: String,
    /// The arguments, as JSON over several lines.
    pub arguments: Option<String>,
    /// Values that nobody trusted chose, with where they come from.
    pub evidence: Vec<String>,
    /// What came of it, if it was answered.
    pub answer: Option<String>,
}

pub(super) fn write(
    html: &mut Html,
    card: &Approval,
    attributes: &[(&'static str, &str)],
    version: u64,
    view: &View<'_>,
) {
    html.open("section", attributes);
    let questions = view.questions.iter().find(|known| known.card == card.id).map(|known| known.questions.as_slice());
    match questions {
        None | Some([]) => {
            html.literal("<p class=\"note\">No approvals are pending.</p>");
        }
        Some(questions) => {
            for question in questions {
                one(html, card, question, version, view.acting);
            }
        }
    }
    html.close("section");
}

fn one(html: &mut Html, card: &Approval, question: &Question, version: u64, acting: Acting<'_>) {
    html.literal("<div class=\"question\"><h2>")
        .text(question.asked_by.as_deref().unwrap_or("Palyra"))
        .literal(" asks: ");
    html.text(&question.summary).literal("</h2><p>Risk: ").text(&question.risk).literal("</p>");
    if !question.reason.is_empty() {
        html.literal("<p>").text(&question.reason).literal("</p>");
    }
    if !question.evidence.is_empty() {
        html.literal("<ul>");
        for line in &question.evidence {
            html.literal("<li>").text(line).literal("</li>");
        }
        html.literal("</ul>");
    }
    if let Some(arguments) = &question.arguments {
        html.literal("<pre><code>").text(arguments).literal("</code></pre>");
    }
    match (&question.answer, acting) {
        (Some(answer), _) => {
            html.literal("<p class=\"done\">").text(answer).literal("</p>");
        }
        (None, Acting::Look) => {
            html.literal("<p class=\"note\">This link is read-only; the question cannot be answered here.</p>");
        }
        (None, Acting::Act { address, .. }) => {
            html.open("form", &[("method", "post"), ("action", address)]);
            forms::hidden(html, &card.id, version, acting);
            html.open("input", &[("type", "hidden"), ("name", "approval"), ("value", &question.approval_id)]);
            html.literal("<button name=\"action\" value=\"allow\">Allow once</button> ");
            html.literal("<button name=\"action\" value=\"deny\">Deny</button></form>");
        }
    }
    html.literal("</div>");
}
