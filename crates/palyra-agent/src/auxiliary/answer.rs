//! Reading a model's answer: it fits its contract, or it is refused with words that a model can act on.

use std::collections::BTreeSet;

use palyra_models::{AssembledTurn, StopReason};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fields;
use super::input::{AuxiliaryInput, RecallSearchInput};
use super::output::{AuxiliaryOutput, RankedRecall, Summary};
use crate::canonical::sorted;

/// Characters per token that the bound on a summary assumes.
const CHARS_PER_TOKEN: usize = 4;
/// Most bytes of a JSON answer that are looked at. All bounds together allow less.
const MAX_ANSWER_BYTES: usize = 256 << 10;

impl AuxiliaryInput {
    /// Makes an output of an answer.
    ///
    /// # Errors
    /// When it does not fit the output contract; says what is wrong without repeating any of it.
    pub fn read_answer(&self, turn: &AssembledTurn) -> Result<AuxiliaryOutput, String> {
        if !turn.tool_calls.is_empty() {
            return Err("it calls tools, but none are available".to_owned());
        }
        if turn.stop_reason == StopReason::MaxTokens {
            return Err(format!("it was cut off; stay below {} tokens", self.budget_tokens()));
        }
        match (self, self.schema()) {
            (Self::Summary(_), _) => self.read_summary(&turn.text),
            (_, Some(schema)) => self.read_document(&schema, &turn.text),
            (_, None) => Err("it has no contract".to_owned()),
        }
    }

    /// Output tokens that the contract allows.
    #[must_use]
    pub const fn budget_tokens(&self) -> u32 {
        self.kind().contract().budget_tokens
    }

    /// Most characters of a summary.
    pub(crate) const fn summary_chars(&self) -> usize {
        self.budget_tokens() as usize * CHARS_PER_TOKEN
    }

    fn read_summary(&self, text: &str) -> Result<AuxiliaryOutput, String> {
        let summary: String = text.trim().chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        if summary.is_empty() {
            return Err("it is empty".to_owned());
        }
        let (length, most) = (summary.chars().count(), self.summary_chars());
        if length > most {
            return Err(format!("it has {length} characters; the limit is {most}"));
        }
        Ok(AuxiliaryOutput::Summary(Summary { summary }))
    }

    fn read_document(&self, schema: &Value, text: &str) -> Result<AuxiliaryOutput, String> {
        let document = document(text)?;
        fields::fits(schema, &document)?;
        // The schema has said what is wrong in better words; a refusal here means that it and the type differ.
        let refused = |_| "it does not match its contract".to_owned();
        Ok(match self {
            Self::RecallSearch(input) => {
                AuxiliaryOutput::RecallSearch(ranked(input, typed(document).map_err(refused)?)?)
            }
            Self::Classification(_) => AuxiliaryOutput::Classification(typed(document).map_err(refused)?),
            Self::Extraction(_) => AuxiliaryOutput::Extraction(typed(sorted(document)).map_err(refused)?),
            Self::ObjectiveJudge(_) => AuxiliaryOutput::ObjectiveJudge(typed(document).map_err(refused)?),
            Self::Vision(_) => AuxiliaryOutput::Vision(typed(document).map_err(refused)?),
            Self::Summary(_) => return Err("a summary is not a document".to_owned()),
        })
    }
}

fn typed<T: DeserializeOwned>(document: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(document)
}

/// The one JSON document of an answer. Models like to fence it; nothing else may stand around it.
fn document(text: &str) -> Result<Value, String> {
    if text.len() > MAX_ANSWER_BYTES {
        return Err(format!("it has more than {MAX_ANSWER_BYTES} bytes"));
    }
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = fenced.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner)).trim();
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    serde_json::from_str(text).map_err(|error| {
        format!("it is not one JSON document and nothing else: line {}, column {}", error.line(), error.column())
    })
}

/// Each candidate once and under its own id, the best first.
fn ranked(input: &RecallSearchInput, mut recall: RankedRecall) -> Result<RankedRecall, String> {
    let mut seen = BTreeSet::new();
    for evidence in &mut recall.evidence {
        if !seen.insert(evidence.id.clone()) {
            return Err("`evidence` names a candidate twice".to_owned());
        }
        let candidate = input.named().find(|(name, _)| *name == evidence.id);
        let (_, candidate) = candidate.ok_or_else(|| "`evidence` names no candidate".to_owned())?;
        evidence.id.clone_from(&candidate.id);
    }
    recall.evidence.sort_by(|left, right| right.score.total_cmp(&left.score));
    Ok(recall)
}
