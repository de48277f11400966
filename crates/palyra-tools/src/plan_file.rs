//! The stored form of a planned effect: eight bytes of header length, a JSON header, then the new contents one after another, but for those that are artifacts.
//!
//! One file means one fsync for any number of edits. It is written under another name and renamed, so it is there whole or not
//! at all; contents are checked against their digests when they are used, so a damaged plan changes no file.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use palyra_common::Digest;
use serde::{Deserialize, Serialize};

use crate::artifacts::read_whole;
use crate::effects::{Content, Plan, Receipt};
use crate::{Artifacts, EffectId, FileChange, ToolError};

/// A plan with everything needed to carry it out.
pub(crate) struct PlanFile {
    pub(crate) effect_id: EffectId,
    pub(crate) fingerprint: Digest,
    pub(crate) receipt: Receipt,
    pieces: Vec<Piece>,
    contents: Vec<u8>,
}

/// One change with its new content; no content means that the file goes.
pub(crate) struct PlannedEdit<'a> {
    pub(crate) change: &'a FileChange,
    pub(crate) content: Option<PlannedContent<'a>>,
    pub(crate) mode: Option<u32>,
}

/// A new content.
#[derive(Clone, Copy)]
pub(crate) enum PlannedContent<'a> {
    /// It is in the plan.
    Bytes(&'a [u8]),
    /// It is this artifact.
    Artifact(Digest),
}

impl<'a> PlannedContent<'a> {
    /// The bytes, which are what their digest says.
    pub(crate) fn load(self, artifacts: &dyn Artifacts) -> Result<Cow<'a, [u8]>, ToolError> {
        match self {
            Self::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Artifact(digest) => read_whole(artifacts, &digest).map(Cow::Owned),
        }
    }
}

impl PlannedEdit<'_> {
    /// Another name that the file is to have.
    pub(crate) fn linked_to(&self) -> Option<&str> {
        self.change.entry.linked_to.as_deref()
    }
}

#[derive(Serialize, Deserialize)]
struct Piece {
    /// Of a content that is in the plan.
    length: Option<usize>,
    mode: Option<u32>,
    #[serde(default)]
    kept: Kept,
}

/// Where the content of a piece is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    /// In the plan, if there is any.
    #[default]
    Plan,
    /// Among the artifacts.
    Artifacts,
}

#[derive(Serialize, Deserialize)]
struct Header {
    effect_id: EffectId,
    fingerprint: Digest,
    receipt: Receipt,
    pieces: Vec<Piece>,
}

impl PlanFile {
    pub(crate) fn new(effect_id: EffectId, fingerprint: Digest, plan: Plan) -> Self {
        let mut contents = Vec::new();
        let mut pieces = Vec::new();
        for new in plan.contents {
            let mode = new.mode;
            pieces.push(match new.content {
                None => Piece { length: None, mode, kept: Kept::Plan },
                Some(Content::Artifact) => Piece { length: None, mode, kept: Kept::Artifacts },
                Some(Content::Bytes(bytes)) => {
                    contents.extend_from_slice(&bytes);
                    Piece { length: Some(bytes.len()), mode, kept: Kept::Plan }
                }
            });
        }
        Self { effect_id, fingerprint, receipt: plan.receipt, pieces, contents }
    }

    /// The edits in order; one whose content does not have its digest is an error.
    pub(crate) fn edits(&self) -> impl Iterator<Item = Result<PlannedEdit<'_>, ToolError>> {
        let mut offset = 0_usize;
        self.receipt.changes.iter().zip(&self.pieces).map(move |(change, piece)| {
            let content = match (piece.kept, piece.length) {
                (Kept::Plan, None) => None,
                (Kept::Plan, Some(length)) => {
                    let end = offset.saturating_add(length);
                    let bytes = self.contents.get(offset..end);
                    offset = end;
                    Some(PlannedContent::Bytes(bytes.ok_or_else(|| self.damaged("a content is missing"))?))
                }
                (Kept::Artifacts, None) => change.after.map(PlannedContent::Artifact),
                (Kept::Artifacts, Some(_)) => return Err(self.damaged("a content is in two places")),
            };
            let digest = content.map(|content| match content {
                PlannedContent::Bytes(bytes) => Digest::of(bytes),
                PlannedContent::Artifact(digest) => digest,
            });
            if digest != change.after {
                return Err(self.damaged("a content does not have its digest"));
            }
            Ok(PlannedEdit { change, content, mode: piece.mode })
        })
    }

    fn damaged(&self, reason: &str) -> ToolError {
        ToolError::EffectDamaged { effect_id: self.effect_id.to_string(), reason: reason.to_owned() }
    }

    /// Writes the plan durably; the caller makes the directory durable.
    pub(crate) fn write(&self, path: &Path) -> Result<(), ToolError> {
        let header = serde_json::to_vec(&serde_json::json!({
            "effect_id": self.effect_id,
            "fingerprint": self.fingerprint,
            "receipt": self.receipt,
            "pieces": self.pieces,
        }))
        .map_err(|error| ToolError::Internal(error.to_string()))?;
        let temporary = path.with_extension("tmp");
        let write = || -> std::io::Result<()> {
            let mut file: File =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
            file.write_all(&(header.len() as u64).to_le_bytes())?;
            file.write_all(&header)?;
            file.write_all(&self.contents)?;
            file.sync_all()?;
            fs::rename(&temporary, path)
        };
        write().map_err(|error| {
            // What could not be written whole is of no use to anybody.
            let _ = fs::remove_file(&temporary);
            ToolError::io(&path.display().to_string(), error)
        })
    }

    /// Reads a plan back.
    pub(crate) fn read(path: &Path) -> Result<Self, ToolError> {
        let bytes = fs::read(path).map_err(|error| ToolError::io(&path.display().to_string(), error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let damaged = |reason: String| ToolError::EffectDamaged { effect_id: name.clone(), reason };
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| damaged("it is too short".to_owned()))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (header, contents) = rest.split_at_checked(length).ok_or_else(|| damaged("it is too short".to_owned()))?;
        let header: Header = serde_json::from_slice(header).map_err(|error| damaged(error.to_string()))?;
        if header.pieces.len() != header.receipt.changes.len() {
            return Err(damaged("its parts do not belong together".to_owned()));
        }
        Ok(Self {
            effect_id: header.effect_id,
            fingerprint: header.fingerprint,
            receipt: header.receipt,
            pieces: header.pieces,
            contents: contents.to_vec(),
        })
    }
}
