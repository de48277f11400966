//! The one place where SQLite files are opened, and the schema they have.
//!
//! Memory mapping stays off: a file that is truncated under a mapping kills the process, and damaged files must be reported.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::error::JournalError;
use crate::layout::is_read_only;

/// Every migration, in order; the version of a database is how many of them it has seen.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_log.sql"),
    include_str!("../migrations/0002_segments.sql"),
    include_str!("../migrations/0003_seals.sql"),
    include_str!("../migrations/0004_table_digests.sql"),
];

/// How long a connection waits for another one's short lock.
const BUSY_MS: u64 = 5_000;
/// A write-ahead log that grew under load is cut back to this when it starts over.
const WAL_KEEP_BYTES: i64 = 16 * 1024 * 1024;

/// The newest schema version.
pub(crate) fn newest_version() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The connection that the writer thread owns. A commit is durable when it returns (`synchronous=FULL`).
pub(crate) fn open_writer(path: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    harden(&connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    // The writer folds the log back between groups, after it has answered, so that no append waits for it.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", WAL_KEEP_BYTES)?;
    connection.pragma_update(None, "cache_size", -8_000)?;
    connection.set_prepared_statement_cache_capacity(256);
    Ok(connection)
}

/// A connection that cannot write, beside a running writer or without one.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, JournalError> {
    if is_at_rest(path) {
        return open_sealed(path);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    harden(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -2_000)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Whether nobody can write this file and all of it is in it, as a daemon leaves it that stopped in good order and whose file system is mounted read-only. SQLite would want to
/// make files beside it even to read it.
fn is_at_rest(path: &Path) -> bool {
    let log = path.with_extension("db-wal");
    let nothing_logged = std::fs::metadata(log).map_or(true, |log| log.len() == 0);
    nothing_logged && path.parent().is_some_and(is_read_only)
}

/// A file that nobody writes any more: no locks, no log beside it.
pub(crate) fn open_sealed(path: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{}?immutable=1", uri_path(path)), flags)?;
    harden(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    // Many are open at once: see `segment_pool`.
    connection.pragma_update(None, "cache_size", -512)?;
    Ok(connection)
}

/// A new file to be filled and then sealed; whoever fills it makes it durable.
pub(crate) fn create_for_sealing(path: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "off")?;
    connection.pragma_update(None, "cache_size", -2_000)?;
    Ok(connection)
}

/// A private database that vanishes when closed; it lives in memory and spills to a temporary file.
pub(crate) fn open_scratch() -> Result<Connection, JournalError> {
    let connection = Connection::open("")?;
    connection.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "off")?;
    connection.set_prepared_statement_cache_capacity(256);
    Ok(connection)
}

/// A plain new file, the target of an online copy.
pub(crate) fn open_copy_target(path: &Path) -> Result<Connection, JournalError> {
    Ok(Connection::open(path)?)
}

/// Gives back what a connection keeps of its file in memory, up to its cache size, which fills again when it is used.
pub(crate) fn release_cache(connection: &Connection) {
    if let Err(error) = connection.execute_batch("PRAGMA shrink_memory") {
        tracing::debug!(%error, "a connection keeps its cache");
    }
}

fn harden(connection: &Connection) -> Result<(), JournalError> {
    connection.busy_timeout(std::time::Duration::from_millis(BUSY_MS))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // A schema that someone else wrote into the file may not call functions on our behalf.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0).or_else(ignore_returned_row)?;
    Ok(())
}

/// Some pragmas answer with a row even when they are set.
fn ignore_returned_row(error: rusqlite::Error) -> rusqlite::Result<()> {
    match error {
        rusqlite::Error::ExecuteReturnedResults => Ok(()),
        other => Err(other),
    }
}

/// The schema version of a database.
pub(crate) fn version(connection: &Connection) -> Result<i64, JournalError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Applies the migrations that are missing, each in a transaction; refuses a schema from the future.
pub(crate) fn migrate(connection: &Connection) -> Result<(), JournalError> {
    migrate_to(connection, newest_version())
}

/// Applies migrations up to a version; tests use it to make databases as older releases left them.
pub(crate) fn migrate_to(connection: &Connection, target: i64) -> Result<(), JournalError> {
    let found = version(connection)?;
    if found > newest_version() || found < 0 {
        return Err(JournalError::SchemaNewer { found, known: newest_version() });
    }
    for (number, sql) in (1_i64..).zip(MIGRATIONS) {
        if number > found && number <= target {
            let transaction = connection.unchecked_transaction()?;
            transaction.execute_batch(sql)?;
            transaction.pragma_update(None, "user_version", number)?;
            transaction.commit()?;
        }
    }
    Ok(())
}

/// Paths may hold characters that mean something in a URI.
fn uri_path(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut uri = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
