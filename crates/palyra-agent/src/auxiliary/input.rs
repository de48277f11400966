//! What auxiliary tasks are given, one record per kind.
//!
//! The records are what the API takes as well, so they refuse fields they do not know. Their bounds are in `check.rs`.

use palyra_common::AuxiliaryTaskKind;
use palyra_models::Part;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::AuxiliaryError;

/// A text to be shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryInput {
    /// The text.
    pub text: String,
    /// Headings under which the summary is to be written, if it is to have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<String>,
}

/// Remembered material to be ranked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallSearchInput {
    /// What is looked for.
    pub query: String,
    /// What it was asked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What there is.
    pub candidates: Vec<RecallCandidate>,
}

impl RecallSearchInput {
    /// The candidates under the names by which the model knows them. Their own ids may be anybody's words, and these stand in an instruction.
    pub(super) fn named(&self) -> impl Iterator<Item = (String, &RecallCandidate)> {
        (1_u32..).zip(&self.candidates).map(|(n, candidate)| (format!("c{n}"), candidate))
    }
}

/// One piece of remembered material.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallCandidate {
    /// Its id, by which the output names it.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// A text to be given one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassificationInput {
    /// The text.
    pub text: String,
    /// The labels to choose from.
    pub labels: Vec<String>,
    /// What the label is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// A text to take fields out of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractionInput {
    /// The text.
    pub text: String,
    /// JSON Schema of an object whose properties are the fields.
    pub schema: Value,
    /// What is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// Whether an objective was met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveJudgeInput {
    /// The objective.
    pub objective: String,
    /// What has to hold for it to be met.
    pub criteria: Vec<String>,
    /// What is known about it.
    pub evidence: Vec<String>,
}

/// A question about an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisionInput {
    /// The image.
    pub image: Part,
    /// The question.
    pub question: String,
}

/// What an auxiliary task is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuxiliaryInput {
    /// See [`AuxiliaryTaskKind::Summary`].
    Summary(SummaryInput),
    /// See [`AuxiliaryTaskKind::RecallSearch`].
    RecallSearch(RecallSearchInput),
    /// See [`AuxiliaryTaskKind::Classification`].
    Classification(ClassificationInput),
    /// See [`AuxiliaryTaskKind::Extraction`].
    Extraction(ExtractionInput),
    /// See [`AuxiliaryTaskKind::ObjectiveJudge`].
    ObjectiveJudge(ObjectiveJudgeInput),
    /// See [`AuxiliaryTaskKind::Vision`].
    Vision(VisionInput),
}

impl AuxiliaryInput {
    /// Reads the input of a task of this kind and checks its bounds.
    ///
    /// # Errors
    /// When it does not fit the input contract of the kind.
    pub fn read(kind: AuxiliaryTaskKind, input: Value) -> Result<Self, AuxiliaryError> {
        let input = match kind {
            AuxiliaryTaskKind::Summary => Self::Summary(record(kind, input)?),
            AuxiliaryTaskKind::RecallSearch => Self::RecallSearch(record(kind, input)?),
            AuxiliaryTaskKind::Classification => Self::Classification(record(kind, input)?),
            AuxiliaryTaskKind::Extraction => Self::Extraction(record(kind, input)?),
            AuxiliaryTaskKind::ObjectiveJudge => Self::ObjectiveJudge(record(kind, input)?),
            AuxiliaryTaskKind::Vision => Self::Vision(record(kind, input)?),
        };
        input.check()?;
        Ok(input)
    }

    /// Which kind of task this is for.
    #[must_use]
    pub const fn kind(&self) -> AuxiliaryTaskKind {
        match self {
            Self::Summary(_) => AuxiliaryTaskKind::Summary,
            Self::RecallSearch(_) => AuxiliaryTaskKind::RecallSearch,
            Self::Classification(_) => AuxiliaryTaskKind::Classification,
            Self::Extraction(_) => AuxiliaryTaskKind::Extraction,
            Self::ObjectiveJudge(_) => AuxiliaryTaskKind::ObjectiveJudge,
            Self::Vision(_) => AuxiliaryTaskKind::Vision,
        }
    }

    /// Every text of it that somebody else may have written, to be looked through before a model gets it.
    pub(crate) fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Summary(input) => vec![&mut input.text],
            Self::RecallSearch(input) => {
                let candidates = input.candidates.iter_mut().map(|candidate| &mut candidate.text);
                [&mut input.query].into_iter().chain(&mut input.context).chain(candidates).collect()
            }
            Self::Classification(input) => [&mut input.text].into_iter().chain(&mut input.question).collect(),
            Self::Extraction(input) => [&mut input.text].into_iter().chain(&mut input.question).collect(),
            Self::ObjectiveJudge(input) => {
                let ObjectiveJudgeInput { objective, criteria, evidence } = input;
                [objective].into_iter().chain(criteria).chain(evidence).collect()
            }
            Self::Vision(input) => vec![&mut input.question],
        }
    }
}

fn record<T: DeserializeOwned>(kind: AuxiliaryTaskKind, input: Value) -> Result<T, AuxiliaryError> {
    serde_json::from_value(input).map_err(|error| AuxiliaryError::input(kind, "input", error.to_string()))
}
