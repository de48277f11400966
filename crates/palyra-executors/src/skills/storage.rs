//! What skills keep between calls: keys and values, per skill and space, in one SQLite file.
//!
//! INVARIANT: every statement names the skill, which the host sets and the guest cannot; so no key of one skill is ever seen by another. A batch is one
//! transaction, and a quota is checked inside it, so two calls at once cannot go beyond it together.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use palyra_plugins_runtime::{Change, Expectation, StorageEntry, StorageOutcome};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

/// Longest key in bytes.
const MAX_KEY_BYTES: usize = 256;
/// Most keys that one answer lists.
const MAX_LISTED: u32 = 1_000;
/// Most changes of one batch.
const MAX_CHANGES: usize = 1_000;

/// One space of one skill, with its quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// The skill.
    pub skill_id: String,
    /// The name of the space in its manifest.
    pub name: String,
    /// Bytes of keys and values together.
    pub max_bytes: u64,
    /// How many keys.
    pub max_keys: u32,
}

/// Why storage did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// It makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The quota is used up.
    #[error("the space `{space}` is full: {reason}")]
    Full {
        /// Which space.
        space: String,
        /// Which part of the quota.
        reason: String,
    },
    /// The file cannot be used.
    #[error("the storage of skills cannot be used: {0}")]
    File(#[from] rusqlite::Error),
}

/// The storage of all skills.
pub struct SkillStorage {
    connection: Mutex<Connection>,
}

impl SkillStorage {
    /// Opens the file, and makes it if it is not there.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        Self::with(Connection::open(path)?)
    }

    /// A storage that is gone with this value; for trying a skill out.
    pub fn in_memory() -> Result<Self, StorageError> {
        Self::with(Connection::open_in_memory()?)
    }

    fn with(connection: Connection) -> Result<Self, StorageError> {
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;
             CREATE TABLE IF NOT EXISTS entries (
                 skill TEXT NOT NULL, space TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL,
                 PRIMARY KEY (skill, space, key)
             ) STRICT, WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS spaces (
                 skill TEXT NOT NULL, space TEXT NOT NULL, changes INTEGER NOT NULL, keys INTEGER NOT NULL, bytes INTEGER NOT NULL,
                 PRIMARY KEY (skill, space)
             ) STRICT, WITHOUT ROWID;",
        )?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// The value of a key.
    pub fn get(&self, space: &Space, key: &str) -> Result<Option<StorageEntry>, StorageError> {
        check_key(key)?;
        let connection = self.lock();
        let mut query = connection
            .prepare_cached("SELECT value, version FROM entries WHERE skill = ?1 AND space = ?2 AND key = ?3")?;
        let found = query.query_row(params![space.skill_id, space.name, key], |row| {
            Ok(StorageEntry { value: row.get(0)?, version: unsigned(row.get(1)?) })
        });
        Ok(found.optional()?)
    }

    /// Keys that begin with a prefix and come after another, in order.
    pub fn keys(
        &self,
        space: &Space,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, StorageError> {
        let connection = self.lock();
        let mut query = connection.prepare_cached(
            "SELECT key FROM entries WHERE skill = ?1 AND space = ?2 AND key >= ?3 AND key > ?4
             AND substr(key, 1, length(?3)) = ?3 ORDER BY key LIMIT ?5",
        )?;
        let limit = limit.min(MAX_LISTED);
        let rows = query
            .query_map(params![space.skill_id, space.name, prefix, after.unwrap_or(""), limit], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Carries out a batch, all of it or nothing.
    pub fn apply(
        &self,
        space: &Space,
        expectations: &[Expectation],
        changes: &[Change],
    ) -> Result<StorageOutcome, StorageError> {
        if changes.len() > MAX_CHANGES || expectations.len() > MAX_CHANGES {
            return Err(StorageError::Invalid(format!("a batch may have at most {MAX_CHANGES} changes")));
        }
        for key in changes.iter().map(|change| &change.key).chain(expectations.iter().map(|expected| &expected.key)) {
            check_key(key)?;
        }
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for expected in expectations {
            if version_of(&transaction, space, &expected.key)? != expected.version {
                return Ok(StorageOutcome::Conflict(expected.key.clone()));
            }
        }
        let mut used = used(&transaction, space)?;
        used.changes += 1;
        for change in changes {
            let before = size_of(&transaction, space, &change.key)?;
            if let Some(bytes) = before {
                used.keys -= 1;
                used.bytes -= bytes;
            }
            match &change.value {
                Some(value) => {
                    used.keys += 1;
                    used.bytes += i64::try_from(change.key.len() + value.len()).unwrap_or(i64::MAX);
                    transaction
                        .prepare_cached("INSERT OR REPLACE INTO entries VALUES (?1, ?2, ?3, ?4, ?5)")?
                        .execute(params![space.skill_id, space.name, change.key, value, used.changes])?;
                }
                None => {
                    transaction
                        .prepare_cached("DELETE FROM entries WHERE skill = ?1 AND space = ?2 AND key = ?3")?
                        .execute(params![space.skill_id, space.name, change.key])?;
                }
            }
        }
        used.check(space)?;
        transaction.prepare_cached("INSERT OR REPLACE INTO spaces VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
            space.skill_id,
            space.name,
            used.changes,
            used.keys,
            used.bytes
        ])?;
        transaction.commit()?;
        Ok(StorageOutcome::Committed(unsigned(used.changes)))
    }

    /// Forgets everything that a skill stored.
    pub fn forget(&self, skill_id: &str) -> Result<(), StorageError> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("DELETE FROM entries WHERE skill = ?1", params![skill_id])?;
        transaction.execute("DELETE FROM spaces WHERE skill = ?1", params![skill_id])?;
        transaction.commit()?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere leaves no half transaction behind: it was rolled back when its guard went.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much of a space is used.
struct Used {
    changes: i64,
    keys: i64,
    bytes: i64,
}

impl Used {
    fn check(&self, space: &Space) -> Result<(), StorageError> {
        let full = |reason: String| Err(StorageError::Full { space: space.name.clone(), reason });
        if unsigned(self.keys) > u64::from(space.max_keys) {
            return full(format!("the limit is {} keys", space.max_keys));
        }
        if unsigned(self.bytes) > space.max_bytes {
            return full(format!("the limit is {} bytes", space.max_bytes));
        }
        Ok(())
    }
}

fn used(transaction: &Transaction<'_>, space: &Space) -> Result<Used, StorageError> {
    let found = transaction
        .prepare_cached("SELECT changes, keys, bytes FROM spaces WHERE skill = ?1 AND space = ?2")?
        .query_row(params![space.skill_id, space.name], |row| {
            Ok(Used { changes: row.get(0)?, keys: row.get(1)?, bytes: row.get(2)? })
        })
        .optional()?;
    Ok(found.unwrap_or(Used { changes: 0, keys: 0, bytes: 0 }))
}

fn version_of(transaction: &Transaction<'_>, space: &Space, key: &str) -> Result<Option<u64>, StorageError> {
    let found: Option<i64> = transaction
        .prepare_cached("SELECT version FROM entries WHERE skill = ?1 AND space = ?2 AND key = ?3")?
        .query_row(params![space.skill_id, space.name, key], |row| row.get(0))
        .optional()?;
    Ok(found.map(unsigned))
}

fn size_of(transaction: &Transaction<'_>, space: &Space, key: &str) -> Result<Option<i64>, StorageError> {
    Ok(transaction
        .prepare_cached("SELECT length(CAST(key AS BLOB)) + length(value) FROM entries WHERE skill = ?1 AND space = ?2 AND key = ?3")?
        .query_row(params![space.skill_id, space.name, key], |row| row.get(0))
        .optional()?)
}

fn check_key(key: &str) -> Result<(), StorageError> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES || key.contains('\0') {
        return Err(StorageError::Invalid(format!("a key must have 1 to {MAX_KEY_BYTES} bytes and no zero byte")));
    }
    Ok(())
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
