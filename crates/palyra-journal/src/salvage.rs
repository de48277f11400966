//! Reading whatever can still be read of a journal that cannot be used any more.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use palyra_common::Digest;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::artifacts::ArtifactStore;
use crate::convert::to_sql;
use crate::damage;
use crate::db;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::record::{StoredRecord, hash_of};
use crate::row::{self, COLUMNS};
use crate::verify::resume;

/// What a salvage found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SalvageReport {
    /// Records that were read and match their hash.
    pub records: u64,
    /// Records that were read but do not match their hash, or whose payload is gone; they were passed on all the same.
    pub doubtful: u64,
    /// Places at which nothing could be read.
    pub unreadable: u64,
    /// The files that were read.
    pub files: Vec<PathBuf>,
}

/// A record that was salvaged.
#[derive(Debug, Clone)]
pub struct Salvaged {
    /// The record.
    pub record: StoredRecord,
    /// Whether it matches its hash.
    pub intact: bool,
}

/// Hands over every record that can still be read below a state root, oldest file first: sealed segments, then the database, also one that was set aside or
/// lost. Nothing is changed, and nothing is claimed about what is missing.
///
/// # Errors
/// `journal_not_found` if there is no file to read, or what `each` returned.
pub fn salvage(
    root: &Path,
    each: &mut dyn FnMut(Salvaged) -> Result<(), JournalError>,
) -> Result<SalvageReport, JournalError> {
    let layout = Layout::new(root);
    let mut report = SalvageReport::default();
    let artifacts = ArtifactStore::new(layout.artifacts_dir());
    // A journal that was given up and the one that was begun after it both count from 1, and a restored one repeats records of the one that it replaced.
    let mut known = HashSet::new();
    for file in files(&layout)? {
        let opened =
            if file.starts_with(layout.segments_dir()) { db::open_sealed(&file) } else { db::open_reader(&file) };
        let read = |connection| read(&connection, &artifacts, &mut known, each, &mut report);
        match opened.map_err(Stop::File).and_then(read) {
            Ok(()) => {}
            Err(Stop::Caller(error)) => return Err(error),
            Err(Stop::File(error)) => {
                tracing::warn!(%error, file = %file.display(), "this file cannot be read");
                report.unreadable += 1;
            }
        }
        report.files.push(file);
    }
    if report.files.is_empty() {
        return Err(JournalError::NoJournal { root: root.to_owned() });
    }
    Ok(report)
}

/// Why reading a file ended early.
enum Stop {
    Caller(JournalError),
    File(JournalError),
}

impl Stop {
    fn file(error: rusqlite::Error) -> Self {
        Self::File(error.into())
    }
}

fn files(layout: &Layout) -> Result<Vec<PathBuf>, JournalError> {
    let mut directories = vec![layout.journal_dir()];
    let mut lost = entries(&layout.journal_dir(), |name| name.starts_with("lost-"));
    lost.sort();
    directories.extend(lost);
    let mut files = Vec::new();
    for directory in &directories {
        let mut segments = entries(&directory.join("segments"), |name| name.ends_with(".db"));
        segments.sort();
        files.extend(segments);
    }
    for directory in &directories {
        let mut databases = entries(directory, |name| {
            name.starts_with("journal.db") && !name.ends_with("-wal") && !name.ends_with("-shm")
        });
        databases.sort();
        files.extend(databases);
    }
    if let Some(aside) = damage::marker(layout)?.and_then(|marker| marker.set_aside)
        && aside.exists()
        && !files.contains(&aside)
    {
        files.push(aside);
    }
    Ok(files)
}

fn entries(directory: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    found.filter(|entry| wanted(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}

/// Reads one file, leaving out records that were read intact before.
fn read(
    connection: &Connection,
    artifacts: &ArtifactStore,
    known: &mut HashSet<Digest>,
    each: &mut dyn FnMut(Salvaged) -> Result<(), JournalError>,
    report: &mut SalvageReport,
) -> Result<(), Stop> {
    let mut next = 1;
    let sql = format!("SELECT {COLUMNS} FROM records WHERE seq >= ?1 ORDER BY seq");
    loop {
        let mut statement = connection.prepare(&sql).map_err(Stop::file)?;
        let mut rows = statement.query([to_sql(next)]).map_err(Stop::file)?;
        let failed = loop {
            match rows.next() {
                Ok(Some(found)) => match row::decode(found) {
                    Ok(Ok(raw)) => {
                        let (seq, digest) = (raw.record.seq, raw.payload_digest());
                        let bare = raw.record.clone();
                        next = seq + 1;
                        if known.contains(&bare.hash) {
                            continue;
                        }
                        let complete = raw.complete(artifacts);
                        let intact = complete.is_ok() && hash_of(&bare, &digest) == bare.hash;
                        if intact {
                            known.insert(bare.hash);
                            report.records += 1;
                        } else {
                            report.doubtful += 1;
                        }
                        each(Salvaged { record: complete.unwrap_or(bare), intact }).map_err(Stop::Caller)?;
                    }
                    Ok(Err(misshapen)) => {
                        report.unreadable += 1;
                        next = misshapen.seq.max(next) + 1;
                    }
                    Err(_) => break true,
                },
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        if !failed {
            return Ok(());
        }
        report.unreadable += 1;
        match resume(connection, next, i64::MAX.unsigned_abs()) {
            Some(seq) => next = seq,
            None => return Ok(()),
        }
    }
}
