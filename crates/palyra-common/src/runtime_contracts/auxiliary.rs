//! Auxiliary model tasks: small jobs beside the run, each with a fixed contract for what goes in and what comes out.
//!
//! The table here is data; running a task and validating its output against the contract is the engine's work.

use schemars::JsonSchema;
use serde::Serialize;

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// What an auxiliary model is asked to do.
    pub enum AuxiliaryTaskKind("auxiliary_task_kind") {
        /// Make a text shorter.
        Summary = "summary",
        /// Rank remembered material for a query.
        RecallSearch = "recall_search",
        /// Choose one label.
        Classification = "classification",
        /// Take typed fields out of a text.
        Extraction = "extraction",
        /// Judge whether an objective was met.
        ObjectiveJudge = "objective_judge",
        /// Answer a question about an image.
        Vision = "vision",
    }
}

runtime_contract_enum! {
    /// How far an auxiliary task has come.
    pub enum AuxiliaryTaskState("auxiliary_task_state") {
        /// Accepted, not started.
        Pending = "pending" | "queued",
        /// A model is at work.
        Running = "running",
        /// Gave an output that fits its contract.
        Succeeded = "succeeded",
        /// Gave none.
        Failed = "failed",
        /// Stopped before it gave one.
        Cancelled = "cancelled",
    }
}

impl AuxiliaryTaskState {
    /// Whether a task in this state is over for good.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

runtime_contract_enum! {
    /// The shape of what an auxiliary task is given.
    pub enum AuxiliaryInputContract("auxiliary_input_contract") {
        /// Plain text to be shortened.
        PlainTextContext = "plain_text_context",
        /// A query and, if there is any, the context it was asked in.
        QueryPlusOptionalContext = "query_plus_optional_context",
        /// Plain text to be judged.
        PlainTextPayload = "plain_text_payload",
        /// Plain text and the JSON Schema of the wanted fields.
        PlainTextPayloadPlusSchema = "plain_text_payload_plus_schema",
        /// The objective, its criteria and the evidence.
        ObjectiveJudgeInputJson = "objective_judge_input_json",
        /// An image and a question about it.
        ImagePlusQuestion = "image_plus_question",
    }
}

runtime_contract_enum! {
    /// The shape of what an auxiliary task must give back.
    pub enum AuxiliaryOutputContract("auxiliary_output_contract") {
        /// Plain text no longer than the budget.
        BoundedPlainTextSummary = "bounded_plain_text_summary",
        /// A ranked list of evidence.
        RankedRecallEvidenceJson = "ranked_recall_evidence_json",
        /// One of the offered labels.
        SingleLabelJson = "single_label_json",
        /// Exactly the fields of the schema.
        BoundedExtractedFieldsJson = "bounded_extracted_fields_json",
        /// A verdict with its grounds.
        ObjectiveJudgeStrictJson = "objective_judge_strict_json",
        /// What is seen, within bounds.
        BoundedVisualObservationJson = "bounded_visual_observation_json",
    }
}

runtime_contract_enum! {
    /// Which quality of a model matters most for a task.
    pub enum ModelPreference("model_preference") {
        /// The cheapest that can do it.
        LowCost = "low_cost",
        /// The one that answers soonest.
        LowLatency = "low_latency",
        /// One that can see.
        VisionCapable = "vision_capable",
    }
}

/// What one kind of auxiliary task takes, gives and may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuxiliaryTaskContract {
    /// The kind of task.
    pub kind: AuxiliaryTaskKind,
    /// What goes in.
    pub input: AuxiliaryInputContract,
    /// What must come out.
    pub output: AuxiliaryOutputContract,
    /// Output tokens a task may spend unless told otherwise.
    pub budget_tokens: u32,
    /// Which quality of a model matters most.
    pub model_preference: ModelPreference,
}

impl AuxiliaryTaskKind {
    /// The contract of this kind of task.
    #[must_use]
    pub const fn contract(self) -> AuxiliaryTaskContract {
        use AuxiliaryInputContract as Input;
        use AuxiliaryOutputContract as Output;
        use ModelPreference::{LowCost, LowLatency, VisionCapable};
        let (input, output, budget_tokens, model_preference) = match self {
            Self::Summary => (Input::PlainTextContext, Output::BoundedPlainTextSummary, 1_200, LowCost),
            Self::RecallSearch => {
                (Input::QueryPlusOptionalContext, Output::RankedRecallEvidenceJson, 1_600, LowLatency)
            }
            Self::Classification => (Input::PlainTextPayload, Output::SingleLabelJson, 600, LowLatency),
            Self::Extraction => (Input::PlainTextPayloadPlusSchema, Output::BoundedExtractedFieldsJson, 1_200, LowCost),
            Self::ObjectiveJudge => (Input::ObjectiveJudgeInputJson, Output::ObjectiveJudgeStrictJson, 900, LowCost),
            Self::Vision => (Input::ImagePlusQuestion, Output::BoundedVisualObservationJson, 2_000, VisionCapable),
        };
        AuxiliaryTaskContract { kind: self, input, output, budget_tokens, model_preference }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_documented_contract() {
        let table: Vec<String> = AuxiliaryTaskKind::ALL
            .iter()
            .map(|kind| {
                let contract = kind.contract();
                format!("{kind}: {} -> {}, {}", contract.input, contract.output, contract.budget_tokens)
            })
            .collect();
        assert_eq!(
            table,
            [
                "summary: plain_text_context -> bounded_plain_text_summary, 1200",
                "recall_search: query_plus_optional_context -> ranked_recall_evidence_json, 1600",
                "classification: plain_text_payload -> single_label_json, 600",
                "extraction: plain_text_payload_plus_schema -> bounded_extracted_fields_json, 1200",
                "objective_judge: objective_judge_input_json -> objective_judge_strict_json, 900",
                "vision: image_plus_question -> bounded_visual_observation_json, 2000",
            ]
        );
    }
}
