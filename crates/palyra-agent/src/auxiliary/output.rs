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
    /// The document that the output contract describes.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Only maps with other keys than texts and failing serialisers do not become a value; there are none.
        serde_json::to_value(self).unwrap_or_default()
    }
}
