//! Files beside the database: segments by their digest, artifacts by their name.

use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use palyra_common::Digest;

use super::report::VerifyReport;
use crate::artifacts::ArtifactStore;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::position::Position;
use crate::segments::{SegmentRow, digest_of_file};

/// A sealed file is never written again, so any other byte is a change, even where no record is touched.
pub(super) fn segment(path: &Path, row: &SegmentRow, reported: bool, report: &mut VerifyReport) {
    let position = Position::Records { first: row.first_seq, last: row.last_seq };
    match digest_of_file(path) {
        Ok((bytes, digest)) if bytes == row.bytes && digest == row.file_digest => {}
        // The record in question has been named; the file as a whole adds nothing.
        Ok(_) if reported => {}
        Ok(_) => report.problem(position, "segment_changed", format!("segment `{}` was modified", row.file)),
        Err(error) => report.problem(position, "segment_unreadable", error.to_string()),
    }
}

/// Every artifact must hold the bytes its name says.
pub(super) fn artifacts(layout: &Layout, report: &mut VerifyReport) {
    let store = ArtifactStore::new(layout.artifacts_dir());
    let Ok(shelves) = fs::read_dir(store.dir()) else { return };
    for shelf in shelves.flatten() {
        let Ok(files) = fs::read_dir(shelf.path()) else { continue };
        for file in files.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if name.starts_with(".tmp-") {
                continue;
            }
            let position = Position::File { file: file.path() };
            let checked = match Digest::from_str(&name) {
                Ok(digest) if store.path(&digest) == file.path() => store.check(&digest),
                _ => {
                    report.problem(position, "artifact_unknown", "its name is not the digest of an artifact");
                    continue;
                }
            };
            match checked {
                Ok(()) => report.artifacts += 1,
                Err(JournalError::ArtifactChanged { .. }) => {
                    report.problem(position, "artifact_changed", "its content was modified");
                }
                Err(error) => report.problem(position, "artifact_unreadable", error.to_string()),
            }
        }
    }
}
