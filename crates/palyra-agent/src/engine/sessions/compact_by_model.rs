//! Having a model write what was answered in the exchanges that a summary stands for.
//!
//! It is an auxiliary task of the session, with its records and its bill. It reads the words of those who asked, though not of outside senders, and the answers that may be quoted; so the
//! summary is labelled with the join of their labels. Whatever goes wrong leaves the draft as it was, and says why.

use palyra_common::{AuxiliaryTaskId, Integrity, Label, ToStableError as _};

use super::compact::{CompactionPlan, Draft, LEFT_OUT, OUTSIDE, summary_size};
use crate::auxiliary::{AuxiliaryInput, AuxiliaryOutput, Summary, SummaryInput};
use crate::context;
use crate::engine::Engine;
use crate::engine::auxiliary::{AuxiliaryDone, Keep, Task, carry_out};
use crate::engine::compaction::{SECTIONS, fitted};
use crate::session::Compaction;
use crate::spec::{Exchange, MAIN_AGENT};

/// Most bytes of one exchange that the model reads.
const EXCHANGE_BYTES: usize = 16 << 10;

impl Engine {
    /// Whether a model could write a summary better than first sentences do.
    pub(super) fn has_language_model(&self) -> bool {
        self.shared.options.provider.describe().is_language_model
    }

    /// The plan with what was answered in a model's words, if there is a model and it finds them.
    pub(super) async fn written(&self, draft: Draft) -> CompactionPlan {
        let (text, label) = material(draft.earlier.as_ref(), &draft.old);
        let Draft { mut plan, owner, model, .. } = draft;
        if !self.has_language_model() {
            return plan;
        }
        let info =
            self.shared.options.provider.describe_for(MAIN_AGENT, Some(model.as_str()).filter(|it| !it.is_empty()));
        let task = Task {
            id: AuxiliaryTaskId::generate(),
            session_id: plan.session_id,
            run_id: None,
            turn: 1,
            owner,
            agent: MAIN_AGENT.to_owned(),
            model,
            input: AuxiliaryInput::Summary(SummaryInput {
                text: fitted(&text, info.context_tokens as usize),
                sections: SECTIONS.map(str::to_owned).to_vec(),
            }),
            label,
            // The session's own record holds it.
            keep: Keep::Digest,
        };
        plan.summary.task_id = Some(task.id);
        let before = summary_size(&plan.summary);
        match carry_out(&self.shared, task).await {
            Ok(AuxiliaryDone { output: AuxiliaryOutput::Summary(Summary { summary }), label, .. }) => {
                plan.summary.answered = summary;
                plan.summary.label = label;
                plan.summary.method = Compaction::BY_MODEL.to_owned();
            }
            Ok(_) => plan.summary.why = Some("the task gave no summary".to_owned()),
            Err(error) => {
                let error = error.to_stable();
                plan.summary.why = Some(format!("{}: {}", error.code, error.message));
            }
        }
        plan.note = self.note(&plan.summary);
        plan.bytes_after = plan.bytes_after.saturating_sub(before).saturating_add(summary_size(&plan.summary));
        plan
    }
}

/// What the model reads, and the label of all of it.
fn material(earlier: Option<&Compaction>, old: &[Exchange]) -> (String, Label) {
    let mut text = String::new();
    let mut label = Label::user();
    if let Some(earlier) = earlier {
        label = label.join(&earlier.label);
        text.push_str(&format!("## earlier summary\nasked:\n{}\nanswered:\n{}\n", earlier.asked, earlier.answered));
    }
    for Exchange { prompt, prompt_label, answer, label: its, .. } in old {
        let answer = if its.integrity == Integrity::Untrusted {
            LEFT_OUT.to_owned()
        } else {
            label = label.join(its);
            context::shortened(answer, EXCHANGE_BYTES, "here")
        };
        let prompt = match prompt_label {
            Some(_) => OUTSIDE.to_owned(),
            None => context::shortened(prompt, EXCHANGE_BYTES, "here"),
        };
        text.push_str(&format!("## user\n{prompt}\n## assistant\n{answer}\n"));
    }
    (text, label)
}

#[cfg(test)]
mod tests {
    use palyra_common::Confidentiality;

    use super::*;

    #[test]
    fn nothing_of_strangers_reaches_the_model() {
        let exchange = |prompt: &str, from_outside: Option<Label>, integrity| Exchange {
            run_id: None,
            prompt: prompt.to_owned(),
            prompt_label: from_outside,
            answer: format!("answer to {prompt}"),
            label: Label::new(integrity, Confidentiality::Private),
        };
        let strange = Label::new(Integrity::Untrusted, Confidentiality::Private);
        let old = [
            exchange("mine", None, Integrity::User),
            exchange("theirs", Some(strange), Integrity::Untrusted),
            exchange("a web page", None, Integrity::Untrusted),
        ];
        let (text, label) = material(None, &old);
        assert!(
            text.contains("mine") && text.contains("answer to mine") && text.contains("## user\na web page"),
            "{text}"
        );
        assert!(!text.contains("theirs") && !text.contains("answer to a web page"), "{text}");
        assert_eq!(label.integrity, Integrity::User);
    }
}
