//! Opening a journal: who may write, is the state sound, which migrations and projections are missing.
//!
//! Order matters. The lock comes first. A marker of damage refuses before anything is touched. Damage found by the cheap checks
//! sets the database aside. Only a state that never had a journal gets a new one.

use std::fs::{self, File};
use std::io::Read as _;
use std::sync::Arc;

use palyra_common::Digest;
use rusqlite::Connection;

use crate::anchor::{self, AnchorState, Anchors};
use crate::chain::Chain;
use crate::checkpoint::{self, JournalId, SignedCheckpoint};
use crate::commit::Committer;
use crate::damage;
use crate::db;
use crate::error::JournalError;
use crate::keys::{self, JournalKey};
use crate::layout::{Layout, check_writable};
use crate::lock::WriterLock;
use crate::options::JournalOptions;
use crate::position::Position;
use crate::projection;
use crate::reader::Reader;
use crate::restored::{self, BegunRestore, RestoredNote};
use crate::restores::Restores;
use crate::segments;
use crate::shared::{Opened, Shared};
use crate::table_digests::{self, StoredDigests};
use crate::tables::{self, Expected};
use crate::writer::Parts;

const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Opens the state for writing.
pub(crate) fn open(options: &JournalOptions) -> Result<(Parts, Arc<JournalKey>), JournalError> {
    let layout = Layout::new(options.root.clone());
    check_writable(&options.root)?;
    layout.create().map_err(|e| JournalError::file("create", &options.root, e))?;
    let lock = WriterLock::take(&layout)?;
    if let Some(marker) = damage::marker(&layout)? {
        return Err(marker.into());
    }
    let opened = open_locked(options, &layout, lock).map_err(|error| {
        let again = if error.suspects_damage() { db::open_reader(&layout.database()) } else { Err(error.clone()) };
        error.confirm_damage(again.as_ref().map_err(Clone::clone))
    });
    match opened {
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
    let outer = anchor::read(&layout.outer_anchor())?;
    let had_anchor = anchored != AnchorState::Missing || outer != AnchorState::Missing;
    check_file(layout, had_anchor || was_begun(layout))?;
    let restored = restored::read(layout)?;
    // Before SQLite opens the file, which may change what the file system says about it.
    let untouched = JournalKey::read(layout).is_ok_and(|key| tables::take_closed_note(layout, &key));
    let connection = db::open_writer(&layout.database())?;
    db::migrate(&connection)?;
    // Older releases kept neither digests nor an anchor outside `journal/`, which is made last; a restored state begins its own.
    let unbuilt = StoredDigests::read(&connection)?.unbuilt && outer == AnchorState::Missing;
    let fresh = unbuilt || restored.as_ref().is_some_and(|note| !note.started);
    let expected = if fresh { Expected::No } else { Expected::Yes };
    let (key, former_key, signed_at) = match checkpoint::read_id(&connection)? {
        Some(id) => {
            let key = JournalKey::read(layout)?;
            let said = statements(&connection, id, [&anchored, &outer])?;
            let former_key = check_key(layout, &connection, &key, &said, restored.as_ref())?;
            key.publish(layout)?;
            (key, former_key, said.iter().max_by_key(|said| (said.count, said.at.0)).map(|said| said.at))
        }
        None if !had_anchor && is_blank(&connection)? => (begin(options, layout, &connection)?, None, None),
        None => {
            let position = Position::File { file: layout.database() };
            return Err(JournalError::damaged(position, "the database file is blank, but a journal existed here"));
        }
    };
    let reader = Reader::open(layout)?;
    let mut anchors = vec![(layout.anchor(), anchored.clone())];
    if !fresh {
        anchors.push((layout.outer_anchor(), outer.clone()));
    }
    let chain = Chain::load(&reader, &keys::public_keys(layout)?, Some(key.seals()), &anchors)?;
    let last_alive_at = match chain.head.count {
        0 => None,
        newest => Some(reader.record(newest)?.at).max(signed_at),
    };
    segments::check(layout, &connection)?;
    segments::clean(layout, &connection)?;
    let at = (chain.id, chain.head);
    let (digests, changed_tables) = tables::check(&connection, &reader, &projections, &key, at, (expected, untouched))?;
    let quarantined = table_digests::quarantined(&connection)?;
    drop(reader);
    let sealed_through = segments::sealed_through(&connection)?;
    let mut anchor = Anchors::open(layout)?;
    let key = Arc::new(key);
    let begun_restore = match &restored {
        Some(note) if !note.started => {
            let recorded = Restores::unacknowledged(&connection)?.pop();
            // Only as the newest record: an older one is of another restore, whatever the note says.
            let is_on_record = recorded.is_some_and(|restore| {
                (restore.seq, restore.restored_at, restore.key_id) == (chain.head.count, note.at, note.key_id)
            });
            Some(BegunRestore { note: note.clone(), former_key, is_on_record })
        }
        _ => None,
    };
    // After an orderly stop the anchors say all there is to say, and starting costs no sync.
    let up_to_date = [&anchored, &outer].into_iter().all(|anchor| {
        matches!(anchor, AnchorState::Says(said) if said.count == chain.head.count && said.key_id == key.public().id())
    });
    // A key that takes over signs nothing before it is on record that it did: the record's own commit writes the anchors.
    if !up_to_date && begun_restore.as_ref().is_none_or(|restore| restore.is_on_record) {
        anchor
            .write(&chain.sign(&key, options.clock.as_ref()))
            .and_then(|()| anchor.sync())
            .map_err(|e| JournalError::file("write", layout.anchor(), e))?;
    }
    let restore_waits = restored.as_ref().is_some_and(|note| !note.accepted);
    let opened = Opened { changed_tables, quarantined, restore_waits, last_alive_at, begun_restore };
    let shared = Arc::new(Shared::new(chain.head, opened));
    let committer = Committer::new(connection, chain, Arc::clone(&key), options.clone(), projections, digests);
    Ok((Parts { committer, anchor, options: options.clone(), shared, lock, sealed_through }, key))
}

/// What can be told from the file alone, before SQLite might create or repair anything.
fn check_file(layout: &Layout, known: bool) -> Result<(), JournalError> {
    let path = layout.database();
    let position = Position::File { file: path.clone() };
    let had_journal = known || has_segments(layout);
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

/// What is signed about the end of this journal.
fn statements(
    connection: &Connection,
    id: JournalId,
    anchors: [&AnchorState; 2],
) -> Result<Vec<SignedCheckpoint>, JournalError> {
    let anchored = anchors.into_iter().filter_map(|anchor| match anchor {
        AnchorState::Says(said) if said.journal_id == id => Some((**said).clone()),
        _ => None,
    });
    Ok(anchored.chain(checkpoint::read_head(connection, id)?).collect())
}

/// A journal is continued with the key that signed it last: every statement about its end is that key's, or is older than the restore that made it the key.
/// Only a restore that no daemon was started on yet lets another key take over. Returns the key before.
fn check_key(
    layout: &Layout,
    connection: &Connection,
    key: &JournalKey,
    said: &[SignedCheckpoint],
    restored: Option<&RestoredNote>,
) -> Result<Option<Digest>, JournalError> {
    let own = key.public().id();
    let since = Restores::signs_since(connection, own)?.unwrap_or(0);
    let newest_of = |is_own: bool| said.iter().filter(|said| (said.key_id == own) == is_own).max_by_key(|s| s.count);
    let foreign = newest_of(false).filter(|said| said.count >= since);
    if foreign.is_some() && restored.is_none_or(|note| note.started || note.key_id != own) {
        let reason = "it is not the key that the journal was last signed with".to_owned();
        return Err(JournalError::Key { path: layout.private_key(), reason });
    }
    Ok(foreign.or_else(|| newest_of(true)).map(|said| said.key_id))
}

/// Whether a journal was begun here whose end nobody has accepted: its key is there, and the file that it would be in is not. A first start that was cut short
/// leaves the file as well, since that is made before the key.
fn was_begun(layout: &Layout) -> bool {
    layout.public_keys().exists() && !layout.database().exists() && !layout.accepted_loss().exists()
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
    match fs::remove_file(layout.accepted_loss()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(JournalError::file("remove", layout.accepted_loss(), error))
        }
        _ => Ok(key),
    }
}
