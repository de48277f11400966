//! What the server has refused of each model, and what to do about it.
//!
//! Names tell only so much about a model. A refusal that names the form it does not take is an answer, not a failure: the same is asked again in
//! another form, and the next call begins with that. Nothing is ever tried in a form that was refused, so a call is sent a few times at most.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::encode::Encoded;
use super::generation::Thinking;
use crate::error::ModelError;

/// Forms that a model does not take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "five answers to five independent questions, never passed one by one"
)]
pub(super) struct Refused {
    /// Thinking within a budget.
    pub(super) budget: bool,
    /// Thinking as it sees fit.
    pub(super) adaptive: bool,
    /// To be asked to show its thinking.
    pub(super) display: bool,
    /// A schema for its answer.
    pub(super) format: bool,
    /// To be forced to call a tool.
    pub(super) force: bool,
}

/// How the answer's form is demanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerForm {
    /// Not at all.
    Free,
    /// By a schema.
    Schema,
    /// By a tool that takes the answer.
    Tool,
}

/// Whether a tool has to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// One has to.
    Yes,
    /// None has to.
    No,
}

/// Whether what the model thought in earlier turns is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thoughts {
    /// It is.
    Given,
    /// It is left out.
    LeftOut,
}

/// What a refusal taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Learned {
    /// The next request will look different.
    Something,
    /// The thoughts of earlier turns cannot be read any more; without them the call may be made.
    LeaveOutThoughts,
    /// The same request would be sent again.
    Nothing,
}

/// What has been refused so far, by model.
#[derive(Debug, Default)]
pub(super) struct Dialect {
    refused: Mutex<BTreeMap<String, Refused>>,
}

impl Dialect {
    /// What this model has refused.
    pub(super) fn of(&self, model: &str) -> Refused {
        self.locked().get(model).copied().unwrap_or_default()
    }

    /// Learns from the refusal of a request.
    pub(super) fn learn(&self, model: &str, refusal: &ModelError, sent: &Encoded) -> Learned {
        if refusal.status != Some(400) {
            return Learned::Nothing;
        }
        let text = refusal.message.to_ascii_lowercase();
        if text.contains("signature") && text.contains("thinking") && sent.thoughts == Thoughts::Given {
            return Learned::LeaveOutThoughts;
        }
        let before = self.of(model);
        let mut after = before;
        match sent.thinking {
            Thinking::Adaptive(_) if text.contains("display") => after.display = true,
            Thinking::Adaptive(_) | Thinking::Effort(_) if text.contains("adaptive") || text.contains("effort") => {
                after.adaptive = true;
            }
            Thinking::Budget(_) if text.contains("adaptive") || text.contains("budget_tokens") => after.budget = true,
            _ if sent.form == AnswerForm::Schema && mentions_format(&text) => after.format = true,
            _ if sent.force == Force::Yes && text.contains("tool_choice") => after.force = true,
            _ => {}
        }
        if after == before {
            return Learned::Nothing;
        }
        self.locked().insert(model.to_owned(), after);
        Learned::Something
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mentions_format(text: &str) -> bool {
    let words = ["output_config", "output_format", "structured output", "json_schema", "grammar", "schema"];
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ModelErrorClass;

    fn sent(thinking: Thinking, form: AnswerForm, force: Force) -> Encoded {
        let body = serde_json::Value::Null;
        Encoded { body, answer_tool: None, thinking, form, force, thoughts: Thoughts::Given }
    }

    #[test]
    fn refusals_teach_once_and_of_one_model_only() {
        let dialect = Dialect::default();
        let refusal = |text: &str| ModelError::new(ModelErrorClass::Permanent, text).status(400);
        let learn = |text: &str, sent: &Encoded| dialect.learn("m", &refusal(text), sent);
        let budget = sent(Thinking::Budget(2048), AnswerForm::Schema, Force::Yes);
        let words = "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"";
        assert_eq!(learn(words, &budget), Learned::Something);
        assert_eq!(learn(words, &budget), Learned::Nothing);
        assert_eq!(learn("messages: too odd", &budget), Learned::Nothing);
        let plain = sent(Thinking::Unsaid, AnswerForm::Schema, Force::Yes);
        assert_eq!(learn("output_config.format: this model does not support it", &plain), Learned::Something);
        assert_eq!(learn("tool_choice forces tool use, which is not supported", &plain), Learned::Something);
        let adaptive = sent(Thinking::Adaptive("low"), AnswerForm::Free, Force::No);
        assert_eq!(learn("thinking.display: extra inputs are not permitted", &adaptive), Learned::Something);
        assert_eq!(learn("adaptive thinking is not supported on this model", &adaptive), Learned::Something);
        let all = Refused { budget: true, adaptive: true, display: true, format: true, force: true };
        assert_eq!((dialect.of("m"), dialect.of("other")), (all, Refused::default()));
        let other = ModelError::new(ModelErrorClass::Transient, "adaptive").status(500);
        assert_eq!(dialect.learn("other", &other, &adaptive), Learned::Nothing);
    }

    #[test]
    fn thoughts_that_cannot_be_read_are_left_out_once() {
        let dialect = Dialect::default();
        let words = "messages.1.content.0: Invalid `signature` in `thinking` block";
        let refusal = ModelError::new(ModelErrorClass::Permanent, words).status(400);
        let mut sent = sent(Thinking::Unsaid, AnswerForm::Free, Force::No);
        assert_eq!(dialect.learn("m", &refusal, &sent), Learned::LeaveOutThoughts);
        sent.thoughts = Thoughts::LeftOut;
        assert_eq!(dialect.learn("m", &refusal, &sent), Learned::Nothing);
        assert_eq!(dialect.of("m"), Refused::default());
    }
}
