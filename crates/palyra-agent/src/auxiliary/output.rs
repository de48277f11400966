//! What auxiliary tasks give, one record per kind. They are only made of answers that fit their contract.

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A text made shorter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The summary.
    pub summary: String,
}

/// Remembered material, the most fitting first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankedRecall {
    /// What fits; the rest was left out.
    pub evidence: Vec<RecallEvidence>,
}

/// One piece of material that fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallEvidence {
    /// The candidate's id.
    pub id: String,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// Why, in a sentence.
    pub why: String,
}

/// The label that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleLabel {
    /// One of the labels that were offered.
    pub label: String,
}

runtime_contract_enum! {
    /// Whether an objective was met.
    pub enum Verdict("objective_verdict") {
        /// The evidence shows that every criterion holds.
        Met = "met",
        /// The evidence shows that one does not.
        NotMet = "not_met",
        /// The evidence does not tell.
        Unclear = "unclear",
    }
}

/// A verdict with its grounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// How sure the judge is, from 0 to 1.
    pub confidence: f64,
    /// What it rests on.
    pub grounds: String,
    /// What is not there yet.
    pub missing: Vec<String>,
}

/// What is seen on an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisualObservation {
    /// What is seen, one thing each.
    pub observations: Vec<String>,
    /// The answer to the question.
    pub answer: String,
    /// How sure the model is, from 0 to 1.
    pub confidence: f64,
}

/// What an auxiliary task gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AuxiliaryOutput {
    /// See [`palyra_common::AuxiliaryTaskKind::Summary`].
    Summary(Summary),
    /// See [`palyra_common::AuxiliaryTaskKind::RecallSearch`].
    RecallSearch(RankedRecall),
    /// See [`palyra_common::AuxiliaryTaskKind::Classification`].
    Classification(SingleLabel),
    /// See [`palyra_common::AuxiliaryTaskKind::Extraction`]; the fields as they are.
    Extraction(Map<String, Value>),
    /// See [`palyra_common::AuxiliaryTaskKind::ObjectiveJudge`].
    ObjectiveJudge(Judgement),
    /// See [`palyra_common::AuxiliaryTaskKind::Vision`].
    Vision(VisualObservation),
}

impl AuxiliaryOutput {
    /// Every text of it that a model worded, to be looked through before anybody gets it. What was chosen from a list is not among them.
    pub(crate) fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Summary(output) => vec![&mut output.summary],
            Self::RecallSearch(output) => output.evidence.iter_mut().map(|evidence| &mut evidence.why).collect(),
            Self::Classification(_) => Vec::new(),
            Self::Extraction(fields) => {
                let mut texts = Vec::new();
                fields.values_mut().for_each(|value| gather(value, &mut texts));
                texts
            }
            Self::ObjectiveJudge(output) => [&mut output.grounds].into_iter().chain(&mut output.missing).collect(),
            Self::Vision(output) => [&mut output.answer].into_iter().chain(&mut output.observations).collect(),
        }
    }

    /// The document that the output contract describes.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Only maps with other keys than texts and failing serialisers do not become a value; there are none.
        serde_json::to_value(self).unwrap_or_default()
    }
}

fn gather<'a>(value: &'a mut Value, texts: &mut Vec<&'a mut String>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter_mut().for_each(|item| gather(item, texts)),
        Value::Object(fields) => fields.values_mut().for_each(|field| gather(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
