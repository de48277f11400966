//! Bounds on what auxiliary tasks are given.
//!
//! They keep a task within what one small model call can read, and the queue from being filled with megabytes. What is too long is refused rather
//! than cut: whoever asks has to know that not all of it was read. Runs, which cannot ask anybody, shorten their own texts first.

use palyra_common::AuxiliaryTaskKind;
use palyra_models::PartKind;

use super::error::AuxiliaryError;
use super::image::{MAX_IMAGE_BYTES, check_image};
use super::input::{
    AuxiliaryInput, ClassificationInput, ExtractionInput, ObjectiveJudgeInput, RecallSearchInput, SummaryInput,
    VisionInput,
};
use super::{fields, image};

/// Most bytes of a text to be shortened: more than any window that is in use holds.
pub(crate) const MAX_SUMMARY_TEXT: usize = 4 << 20;
/// Most bytes of a text to be looked into.
pub(crate) const MAX_TEXT: usize = 64 << 10;
/// Most labels, fields, criteria or sections.
pub(crate) const MAX_CHOICES: usize = 64;
/// Most characters of a label, an id, a heading or a criterion.
const MAX_NAME: usize = 400;
/// Most bytes of a question, a query or an objective.
const MAX_QUESTION: usize = 8 << 10;
/// Most pieces of material or evidence.
const MAX_PIECES: usize = 128;
/// Most bytes of all pieces together.
const MAX_PIECES_BYTES: usize = 256 << 10;

impl AuxiliaryInput {
    /// Whether it is within the bounds of its contract.
    ///
    /// # Errors
    /// With the first field that is not.
    pub fn check(&self) -> Result<(), AuxiliaryError> {
        let check = Check(self.kind());
        match self {
            Self::Summary(input) => check.summary(input),
            Self::RecallSearch(input) => check.recall(input),
            Self::Classification(input) => check.classification(input),
            Self::Extraction(input) => check.extraction(input),
            Self::ObjectiveJudge(input) => check.judge(input),
            Self::Vision(input) => check.vision(input),
        }
    }
}

type Checked = Result<(), AuxiliaryError>;

struct Check(AuxiliaryTaskKind);

impl Check {
    fn summary(&self, input: &SummaryInput) -> Checked {
        self.text("text", &input.text, MAX_SUMMARY_TEXT)?;
        self.count("sections", input.sections.len(), 0, MAX_CHOICES)?;
        self.names("sections", input.sections.iter())
    }

    fn recall(&self, input: &RecallSearchInput) -> Checked {
        self.text("query", &input.query, MAX_QUESTION)?;
        if let Some(context) = &input.context {
            self.text("context", context, MAX_TEXT)?;
        }
        self.count("candidates", input.candidates.len(), 1, MAX_PIECES)?;
        self.names("candidates.id", input.candidates.iter().map(|candidate| &candidate.id))?;
        self.pieces("candidates.text", input.candidates.iter().map(|candidate| &candidate.text))
    }

    fn classification(&self, input: &ClassificationInput) -> Checked {
        self.text("text", &input.text, MAX_TEXT)?;
        self.count("labels", input.labels.len(), 1, MAX_CHOICES)?;
        self.names("labels", input.labels.iter())?;
        self.question(input.question.as_ref())
    }

    fn extraction(&self, input: &ExtractionInput) -> Checked {
        self.text("text", &input.text, MAX_TEXT)?;
        self.question(input.question.as_ref())?;
        fields::check_schema(&input.schema).map_err(|why| AuxiliaryError::input(self.0, "schema", why))
    }

    fn judge(&self, input: &ObjectiveJudgeInput) -> Checked {
        self.text("objective", &input.objective, MAX_QUESTION)?;
        self.count("criteria", input.criteria.len(), 1, MAX_CHOICES)?;
        self.names("criteria", input.criteria.iter())?;
        self.count("evidence", input.evidence.len(), 0, MAX_PIECES)?;
        self.pieces("evidence", input.evidence.iter())
    }

    fn vision(&self, input: &VisionInput) -> Checked {
        self.text("question", &input.question, MAX_QUESTION)?;
        if input.image.kind != PartKind::Image {
            return self.wrong("image.kind", "must be `image`");
        }
        check_image(&input.image).map_err(|refused| {
            let (field, why) = match refused {
                image::Refused::MediaType => (
                    "image.media_type",
                    "must be image/png, image/jpeg, image/gif or image/webp, and be what the bytes are".to_owned(),
                ),
                image::Refused::Data => {
                    ("image.data", "must be base64 with the standard alphabet and padding".to_owned())
                }
                image::Refused::Size => ("image.data", format!("must be 1 to {MAX_IMAGE_BYTES} bytes")),
            };
            AuxiliaryError::input(self.0, field, why)
        })
    }

    fn question(&self, question: Option<&String>) -> Checked {
        question.map_or(Ok(()), |question| self.text("question", question, MAX_QUESTION))
    }

    fn text(&self, field: &str, text: &str, most: usize) -> Checked {
        if text.trim().is_empty() {
            return self.wrong(field, "is empty");
        }
        if text.len() > most {
            return self.wrong(field, format!("has {} bytes; the limit is {most}", text.len()));
        }
        Ok(())
    }

    fn count(&self, field: &str, count: usize, least: usize, most: usize) -> Checked {
        if (least..=most).contains(&count) {
            return Ok(());
        }
        self.wrong(field, format!("has {count} entries; {least} to {most} are allowed"))
    }

    /// Names stand in lists that people and models choose from, so each is there once and is one line.
    fn names<'a>(&self, field: &str, names: impl Iterator<Item = &'a String>) -> Checked {
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let fits =
                !name.trim().is_empty() && name.chars().count() <= MAX_NAME && !name.chars().any(char::is_control);
            if !fits {
                return self.wrong(field, format!("must have 1 to {MAX_NAME} characters and no control characters"));
            }
            if !seen.insert(name) {
                return self.wrong(field, "names the same thing twice");
            }
        }
        Ok(())
    }

    fn pieces<'a>(&self, field: &str, pieces: impl Iterator<Item = &'a String>) -> Checked {
        let mut bytes = 0_usize;
        for piece in pieces {
            if piece.trim().is_empty() {
                return self.wrong(field, "has an empty entry");
            }
            bytes = bytes.saturating_add(piece.len());
        }
        if bytes > MAX_PIECES_BYTES {
            return self.wrong(field, format!("has {bytes} bytes; the limit is {MAX_PIECES_BYTES}"));
        }
        Ok(())
    }

    fn wrong(&self, field: &str, why: impl Into<String>) -> Checked {
        Err(AuxiliaryError::input(self.0, field, why))
    }
}
