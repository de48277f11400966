//! Auxiliary tasks, the pure part: what a small model without tools is asked, and what it may answer.
//!
//! An [`AuxiliaryInput`] is checked against the bounds of its contract, becomes an instruction and a message in which everything that is to be worked on
//! stands in a frame, and has a JSON Schema for its answer. An [`AuxiliaryOutput`] is only ever made by [`AuxiliaryInput::read_answer`], which
//! refuses whatever does not fit the contract.
//!
//! Nothing here calls a model, waits or writes: queueing, retrying, paying and recording are in `engine/auxiliary`.
//!
//! INVARIANT: no message about a refused answer repeats a word of it. The answer may be somebody else's text, and the message goes back to the model
//! as an instruction.

mod answer;
mod check;
mod error;
mod fields;
mod image;
mod input;
mod output;
mod prompt;
mod shape;

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod properties;

pub use error::AuxiliaryError;
pub use image::{MAX_IMAGE_BYTES, image_media_type};
pub use input::{
    AuxiliaryInput, ClassificationInput, ExtractionInput, ObjectiveJudgeInput, RecallCandidate, RecallSearchInput,
    SummaryInput, VisionInput,
};
pub use output::{
    AuxiliaryOutput, Judgement, RankedRecall, RecallEvidence, SingleLabel, Summary, Verdict, VisualObservation,
};

pub(crate) use check::MAX_TEXT;
pub(crate) use image::image_part;
pub(crate) use prompt::Prompt;
