//! Opening a journal: who may write, is the state sound, which migrations and projections are missing.
//!
//! Order matters. The lock comes first. A marker of damage refuses before anything is touched. Damage found by the cheap checks
//! sets the database aside. Only a state that never had a journal gets a new one.

use std::fs::{self, File};
use std::io::Read as _;
use std::sync::Arc;

use rusqlite::Connection;

use crate::anchor::{self, Anchor, AnchorState};
use crate::chain::Chain;
use crate::checkpoint::{self, JournalId};
use crate::commit::Committer;
use crate::damage;
use crate::db;
use crate::error::JournalError;
use crate::keys::{self, JournalKey};
use crate::layout::Layout;
use crate::lock::WriterLock;
use crate::options::JournalOptions;
use crate::position::Position;
use crate::projection;
use crate::reader::Reader;
use crate::segments;
use crate::shared::Shared;
use crate::writer::Parts;

const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Opens the state for writing.
pub(crate) fn open(options: &JournalOptions) -> Result<(Parts, Arc<JournalKey>), JournalError> {
    let layout = Layout::new(options.root.clone());
    layout.create().map_err(|e| JournalError::file("create", &options.root, e))?;
    let lock = WriterLock::take(&layout)?;
    if let Some(marker) = damage::marker(&layout)? {
        return Err(marker.into());
    }
    match open_locked(options, &layout, lock) {
        Err(JournalError::Damaged { position, reason, .. }) => {
            tracing::error!(%position, %reason, "the journal is damaged; moving it aside");
            Err(damage::set_aside(&layout, options.clock.now(), position, reason))
        }
        other => other,
    }
}

fn open_locked(
    options: &JournalOptions,
    layout: &Layout,
    lock: WriterLock,
) -> Result<(Parts, Arc<JournalKey>), JournalError> {
    let projections = projection::with_own(&options.projections);
    projection::check(&projections)?;
    let anchored = anchor::read(&layout.anchor())?;
    check_file(layout, &anchored)?;
    let connection = db::open_writer(&layout.database())?;
    db::migrate(&connection)?;
    let key = match checkpoint::read_id(&connection)? {
        Some(_) => JournalKey::load(layout)?,
        None if anchored == AnchorState::Missing && is_blank(&connection)? => begin(options, layout, &connection)?,
        None => {
            let position = Position::File { file: layout.database() };
            return Err(JournalError::damaged(position, "the database file is blank, but a journal existed here"));
        }
    };
    let reader = Reader::open(layout)?;
    let chain = Chain::load(&reader, &keys::public_keys(layout)?, Some(key.seals()), &anchored)?;
    segments::check(layout, &connection)?;
    segments::clean(layout, &connection)?;
    projection::reconcile(&connection, &reader, &projections)?;
    drop(reader);
    let sealed_through = segments::sealed_through(&connection)?;
    let (mut anchor, _) = Anchor::open(&layout.anchor())?;
    let key = Arc::new(key);
    // After an orderly stop the anchor says all there is to say, and starting costs no sync.
    let up_to_date = matches!(&anchored, AnchorState::Says(said) if said.count == chain.head.count);
    if !up_to_date {
        anchor
            .write(&chain.sign(&key, options.clock.as_ref()))
            .and_then(|()| anchor.sync())
            .map_err(|e| JournalError::file("write", layout.anchor(), e))?;
    }
    let shared = Arc::new(Shared::new(chain.head));
    let committer = Committer::new(connection, chain, Arc::clone(&key), options.clone(), projections);
    Ok((Parts { committer, anchor, options: options.clone(), shared, lock, sealed_through }, key))
}

/// What can be told from the file alone, before SQLite might create or repair anything.
fn check_file(layout: &Layout, anchored: &AnchorState) -> Result<(), JournalError> {
    let path = layout.database();
    let position = Position::File { file: path.clone() };
    let had_journal = *anchored != AnchorState::Missing || has_segments(layout);
    match fs::metadata(&path) {
        Ok(metadata) if metadata.len() == 0 && had_journal => {
            Err(JournalError::damaged(position, "the database is empty, but a journal existed here"))
        }
        Ok(metadata) if metadata.len() == 0 => Ok(()),
        Ok(_) => {
            let mut magic = [0; 16];
            let read = File::open(&path).and_then(|mut file| file.read_exact(&mut magic));
            match read {
                Ok(()) if &magic == SQLITE_MAGIC => Ok(()),
                Ok(()) => {
                    Err(JournalError::damaged(Position::Offset { file: path, offset: 0 }, "the file is not a database"))
                }
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    Err(JournalError::damaged(position, "the file is truncated"))
                }
                Err(error) => Err(JournalError::file("read", path, error)),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && had_journal => {
            Err(JournalError::damaged(position, "the database is missing, but a journal existed here"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(JournalError::file("read", path, error)),
    }
}

fn has_segments(layout: &Layout) -> bool {
    fs::read_dir(layout.segments_dir())
        .is_ok_and(|entries| entries.flatten().any(|e| e.file_name().to_string_lossy().ends_with(".db")))
}

/// A database in which nothing but migrations ever happened.
fn is_blank(connection: &Connection) -> Result<bool, JournalError> {
    Ok(connection.query_row(
        "SELECT NOT EXISTS (SELECT 1 FROM records) AND NOT EXISTS (SELECT 1 FROM head)
            AND NOT EXISTS (SELECT 1 FROM segments)",
        [],
        |row| row.get(0),
    )?)
}

/// Begins a journal: a fresh id, a key if there is none, and a signed head over nothing.
fn begin(options: &JournalOptions, layout: &Layout, connection: &Connection) -> Result<JournalKey, JournalError> {
    let key = if layout.private_key().exists() { JournalKey::load(layout)? } else { JournalKey::create(layout)? };
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|e| JournalError::Key { path: layout.private_key(), reason: format!("no randomness: {e}") })?;
    let chain = Chain::empty(JournalId(id));
    let signed = chain.sign(&key, options.clock.as_ref());
    let transaction = connection.unchecked_transaction()?;
    transaction.execute("INSERT INTO meta (name, value) VALUES ('journal_id', ?1)", [id])?;
    checkpoint::write_head(&transaction, &signed)?;
    transaction.commit()?;
    anchor::create(&layout.anchor(), &signed)?;
    Ok(key)
}
