//! Files beside the database: segments by their digest, artifacts by their name, and those that derived tables say are kept.

use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use palyra_common::Digest;
use rusqlite::Connection;

use super::report::VerifyReport;
use crate::artifacts::ArtifactStore;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::position::Position;
use crate::projection::{self, KEPT_ARTIFACT, is_plain_name};
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
                // Collected meanwhile, because nothing names it; one that something names is looked for elsewhere.
                Err(JournalError::NoSuchArtifact { .. }) => {}
                Err(JournalError::ArtifactChanged { .. }) => {
                    report.problem(position, "artifact_changed", "its content was modified");
                }
                Err(error) => report.problem(position, "artifact_unreadable", error.to_string()),
            }
        }
    }
}

/// Every artifact that a derived table says is kept must be there; see [`KEPT_ARTIFACT`]. Whether its bytes are right, [`artifacts`] says.
pub(super) fn kept(layout: &Layout, connection: &Connection, report: &mut VerifyReport) {
    let store = ArtifactStore::new(layout.artifacts_dir());
    let tables = match projection::registered(connection) {
        Ok(registered) => registered.into_iter().flat_map(|one| one.tables).filter(|table| is_plain_name(table)),
        Err(error) => {
            report.unverified.push(format!("artifacts that derived tables name: {error}"));
            return;
        }
    };
    for table in tables {
        // A table without the column, or one that is gone, which is reported elsewhere.
        let Ok(mut statement) = connection.prepare(&format!("SELECT {KEPT_ARTIFACT} FROM {table}")) else { continue };
        let Ok(rows) = statement.query_map([], |row| row.get::<_, String>(0)) else { continue };
        for text in rows.flatten() {
            match Digest::from_str(&text) {
                Ok(digest) if store.contains(&digest) => {}
                Ok(digest) => {
                    let position = Position::File { file: store.path(&digest) };
                    report.problem(
                        position,
                        "artifact_missing",
                        format!("it is missing; table `{table}` says it is kept"),
                    );
                }
                Err(_) => {
                    let position = super::table(&table);
                    report.problem(position, "artifact_unknown", format!("`{text}` names no artifact"));
                }
            }
            if report.is_full() {
                return;
            }
        }
    }
}
