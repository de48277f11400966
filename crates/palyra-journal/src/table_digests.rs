//! Digests of tables: what start compares the tables with before anything is appended on top of them.
//!
//! The digest of a table is the sum, modulo 2^256, of a keyed hash (HMAC-SHA-256) of each of its rows, so that adding, changing and removing a row each cost one or two
//! hashes whatever the size of the table. Temporary triggers of the writing connection call [`FUNCTION`] for each row; no trigger is in the file. What was
//! added up is stored in the transaction that changed the rows, together with one keyed hash over all digests and the end of the log, so that no single
//! digest can be taken from an older copy. Only the holder of the journal's key can make or check any of this.
//!
//! The order of rows does not matter, and the key keeps others from choosing rows whose sum is the same.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};

use crate::checkpoint::JournalId;
use crate::error::JournalError;
use crate::projection::is_plain_name;
use crate::record::Head;

const KEY_DOMAIN: &[u8] = b"palyra.tables.key.v1\n";
const ROW_DOMAIN: &[u8] = b"palyra.tables.row.v1\n";
const LOG_DOMAIN: &[u8] = b"palyra.tables.log.v1\n";
const FILE_DOMAIN: &[u8] = b"palyra.tables.file.v1\n";
/// Called by the triggers: number of the table, 1 for a row that is there now and -1 for one that no longer is, its columns.
const FUNCTION: &str = "palyra_row_digest";
/// The row with the keyed hash over all digests and the end of the log.
const LOG: &str = "#log";
/// The row that is there from the migration on until the digests are.
const UNBUILT: &str = "#unbuilt";
/// The row that stays when digests were found missing or changed.
const TAMPERED: &str = "#tampered";

/// The journal's own tables that have a digest. `records` covers number, hash and seal: the hash covers the rest. `head` is signed.
pub(crate) const OWN: &[&str] =
    &["meta", "records", "checkpoints", "merkle_chunks", "segments", "projections", "quarantined"];

/// The key for digests, derived from the signing key's seed.
#[derive(Clone)]
pub(crate) struct TableKey(Hmac<Sha256>);

impl TableKey {
    pub(crate) fn derive(seed: &[u8; 32]) -> Self {
        let key = Sha256::new().chain_update(KEY_DOMAIN).chain_update(seed).finalize();
        Self(Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::from(crate::seal::widen(key.into()))))
    }

    fn row<'a>(&self, table: &str, columns: impl Iterator<Item = ValueRef<'a>>) -> Sum {
        let mut hash = self.0.clone().chain_update(ROW_DOMAIN);
        field(&mut hash, b't', table.as_bytes());
        for column in columns {
            match column {
                ValueRef::Null => field(&mut hash, b'n', &[]),
                ValueRef::Integer(n) => field(&mut hash, b'i', &n.to_be_bytes()),
                ValueRef::Real(n) => field(&mut hash, b'r', &n.to_bits().to_be_bytes()),
                ValueRef::Text(text) => field(&mut hash, b's', text),
                ValueRef::Blob(bytes) => field(&mut hash, b'b', bytes),
            }
        }
        Sum::from_bytes(&hash.finalize().into_bytes().into())
    }

    fn log(&self, id: JournalId, head: Head, tables: &[Table]) -> [u8; 32] {
        let mut hash = self.0.clone().chain_update(LOG_DOMAIN).chain_update(id.0);
        hash.update(&head.count.to_be_bytes());
        hash.update(&head.hash.0);
        let mut sorted: Vec<_> = tables.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        for table in sorted {
            field(&mut hash, b't', table.name.as_bytes());
            hash.update(&table.sum.to_bytes());
        }
        hash.finalize().into_bytes().into()
    }

    /// A keyed hash over what the file system says about the database file, which changes whenever somebody writes it.
    pub(crate) fn file(&self, path: &Path) -> std::io::Result<[u8; 32]> {
        use std::os::unix::fs::MetadataExt as _;
        let stat = std::fs::metadata(path)?;
        let mut hash = self.0.clone().chain_update(FILE_DOMAIN);
        for number in [stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec()] {
            hash.update(&number.to_be_bytes());
        }
        for number in [stat.dev(), stat.ino(), stat.size()] {
            hash.update(&number.to_be_bytes());
        }
        Ok(hash.finalize().into_bytes().into())
    }
}

/// Kind, length, bytes: no two rows have the same encoding.
fn field(hash: &mut Hmac<Sha256>, kind: u8, bytes: &[u8]) {
    hash.update(&[kind]);
    hash.update(&(bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

/// A number modulo 2^256, least significant part first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum([u64; 4]);

impl Sum {
    fn from_bytes(bytes: &[u8; 32]) -> Self {
        let (parts, _) = bytes.as_chunks::<8>();
        let mut sum = Self::default();
        for (part, bytes) in sum.0.iter_mut().zip(parts) {
            *part = u64::from_le_bytes(*bytes);
        }
        sum
    }

    fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (place, part) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *place = part.to_le_bytes();
        }
        bytes
    }

    fn add(&mut self, other: Self) {
        let mut carry = false;
        for (part, more) in self.0.iter_mut().zip(other.0) {
            let (sum, over) = part.overflowing_add(more);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            (*part, carry) = (sum, over || over_again);
        }
    }

    fn subtract(&mut self, other: Self) {
        // The negative of a number is its complement plus one.
        let mut negative = Self(other.0.map(|part| !part));
        negative.add(Self([1, 0, 0, 0]));
        self.add(negative);
    }
}

#[derive(Debug, Clone)]
struct Table {
    name: String,
    sum: Sum,
    stored: Option<Sum>,
}

/// What the writer knows of the tables, to go back to when a transaction fails.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot(Vec<(Sum, Option<Sum>)>);

/// The digests of one writing connection.
#[derive(Clone)]
pub(crate) struct TableDigests {
    key: TableKey,
    tables: Arc<Mutex<Vec<Table>>>,
}

impl TableDigests {
    /// Prepares a connection; nothing is watched yet.
    pub(crate) fn attach(connection: &Connection, key: TableKey) -> Result<Self, JournalError> {
        // Rows that `REPLACE` removes are only told with this.
        connection.pragma_update(None, "recursive_triggers", true)?;
        connection.pragma_update(None, "temp_store", "memory")?;
        let tables: Arc<Mutex<Vec<Table>>> = Arc::default();
        let (seen, row_key) = (Arc::clone(&tables), key.clone());
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_scalar_function(FUNCTION, -1, flags, move |context| {
            let (number, sign): (i64, i64) = (context.get(0)?, context.get(1)?);
            let mut tables = lock(&seen);
            let Some(table) = usize::try_from(number).ok().and_then(|number| tables.get_mut(number)) else {
                return Err(rusqlite::Error::InvalidQuery);
            };
            let row = row_key.row(&table.name, (2..context.len()).map(|column| context.get_raw(column)));
            if sign > 0 {
                table.sum.add(row);
            } else {
                table.sum.subtract(row);
            }
            Ok(0_i64)
        })?;
        Ok(Self { key, tables })
    }

    /// From now on changes of this table are added up, on top of the given digest.
    pub(crate) fn watch(&self, connection: &Connection, table: &str, start: Sum) -> Result<(), JournalError> {
        let columns = columns(connection, table)?;
        let number = {
            let mut tables = lock(&self.tables);
            match tables.iter().position(|known| known.name == table) {
                Some(number) => {
                    if let Some(known) = tables.get_mut(number) {
                        known.sum = start;
                    }
                    number
                }
                None => {
                    tables.push(Table { name: table.to_owned(), sum: start, stored: None });
                    tables.len() - 1
                }
            }
        };
        let call = |sign: i64, row: &str| {
            let values: Vec<String> = columns.iter().map(|column| format!("{row}.\"{column}\"")).collect();
            format!("SELECT {FUNCTION}({number}, {sign}, {});", values.join(", "))
        };
        connection.execute_batch(&format!(
            "DROP TRIGGER IF EXISTS temp.digest_{table}_added;
             DROP TRIGGER IF EXISTS temp.digest_{table}_removed;
             DROP TRIGGER IF EXISTS temp.digest_{table}_changed;
             CREATE TEMP TRIGGER digest_{table}_added AFTER INSERT ON main.{table} BEGIN {added} END;
             CREATE TEMP TRIGGER digest_{table}_removed AFTER DELETE ON main.{table} BEGIN {removed} END;
             CREATE TEMP TRIGGER digest_{table}_changed AFTER UPDATE ON main.{table} BEGIN {removed} {added} END;",
            added = call(1, "new"),
            removed = call(-1, "old"),
        ))?;
        Ok(())
    }

    /// Stores what changed, in the transaction that changed it, for this end of the log.
    pub(crate) fn store(&self, connection: &Connection, id: JournalId, head: Head) -> rusqlite::Result<()> {
        const SQL: &str =
            "INSERT INTO table_digests (name, digest) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET digest = ?2";
        let mut tables = lock(&self.tables);
        let mut statement = connection.prepare_cached(SQL)?;
        for table in tables.iter_mut().filter(|table| table.stored != Some(table.sum)) {
            statement.execute((&table.name, table.sum.to_bytes()))?;
            table.stored = Some(table.sum);
        }
        statement.execute((LOG, self.key.log(id, head, &tables)))?;
        Ok(())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(lock(&self.tables).iter().map(|table| (table.sum, table.stored)).collect())
    }

    /// Goes back to an earlier state. Tables that were not watched then stay as they are.
    pub(crate) fn restore(&self, snapshot: &Snapshot) {
        for (table, (sum, stored)) in lock(&self.tables).iter_mut().zip(&snapshot.0) {
            (table.sum, table.stored) = (*sum, *stored);
        }
    }
}

fn lock(tables: &Mutex<Vec<Table>>) -> MutexGuard<'_, Vec<Table>> {
    // Each sum is replaced as a whole, so a panic elsewhere does not spoil it.
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The columns that a digest covers, in the order of the table.
fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, JournalError> {
    if table == "records" {
        return Ok(["seq", "hash", "seal"].map(str::to_owned).into());
    }
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let columns = statement.query_map([table], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let plain = columns.iter().all(|column| !column.contains('"'));
    if !plain || columns.is_empty() || !is_plain_name(table) {
        return Err(JournalError::invalid(format!("table `{table}` is missing or has unusual column names")));
    }
    Ok(columns)
}

/// The digest of a table as it is now, from all its rows.
pub(crate) fn scan(connection: &Connection, key: &TableKey, table: &str) -> Result<Sum, JournalError> {
    let columns = columns(connection, table)?;
    let names: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    let mut statement = connection.prepare(&format!("SELECT {} FROM {table}", names.join(", ")))?;
    let mut rows = statement.query([])?;
    let mut sum = Sum::default();
    while let Some(row) = rows.next()? {
        let values: Vec<ValueRef<'_>> =
            (0..columns.len()).map(|column| row.get_ref(column)).collect::<rusqlite::Result<_>>()?;
        sum.add(key.row(table, values.into_iter()));
    }
    Ok(sum)
}

/// The digests that a database holds.
#[derive(Debug, Clone)]
pub(crate) struct StoredDigests {
    tables: Vec<Table>,
    log: Option<Vec<u8>>,
    /// Whether digests were found missing or changed before.
    pub(crate) tampered: bool,
    /// Whether there are none yet.
    pub(crate) unbuilt: bool,
}

impl StoredDigests {
    pub(crate) fn read(connection: &Connection) -> Result<Self, JournalError> {
        let mut found = Self { tables: Vec::new(), log: None, tampered: false, unbuilt: false };
        let mut statement = connection.prepare("SELECT name, digest FROM table_digests ORDER BY name")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        for row in rows {
            let (name, digest) = row?;
            match (name.as_str(), <&[u8; 32]>::try_from(digest.as_slice())) {
                (LOG, _) => found.log = Some(digest),
                (TAMPERED, _) => found.tampered = true,
                (UNBUILT, _) => found.unbuilt = true,
                (_, Ok(digest)) => {
                    let sum = Sum::from_bytes(digest);
                    found.tables.push(Table { name, sum, stored: Some(sum) });
                }
                (_, Err(_)) => found.tampered = true,
            }
        }
        Ok(found)
    }

    /// Whether these are the digests that the key's holder stored for this end of the log.
    pub(crate) fn are_genuine(&self, key: &TableKey, id: JournalId, head: Head) -> bool {
        self.log.as_deref().is_some_and(|log| log == key.log(id, head, &self.tables))
    }

    pub(crate) fn of(&self, table: &str) -> Option<Sum> {
        self.tables.iter().find(|known| known.name == table).map(|known| known.sum)
    }
}

/// Notes that the digests are there.
pub(crate) fn mark_built(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM table_digests WHERE name = ?1", [UNBUILT])?;
    Ok(())
}

/// Leaves a note that digests were missing or changed, which verification reports from then on.
pub(crate) fn mark_tampered(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("INSERT OR IGNORE INTO table_digests (name, digest) VALUES (?1, x'01')", [TAMPERED])?;
    Ok(())
}

/// Removes digests of tables that no longer exist.
pub(crate) fn forget(connection: &Connection, table: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM table_digests WHERE name = ?1", [table])?;
    Ok(())
}

/// How many records are quarantined.
pub(crate) fn quarantined(connection: &Connection) -> rusqlite::Result<u64> {
    let count: Option<i64> =
        connection.query_row("SELECT count(*) FROM quarantined", [], |row| row.get(0)).optional()?;
    Ok(count.map_or(0, crate::convert::to_u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_back_whatever_the_order() {
        let key = TableKey::derive(&[7; 32]);
        let rows: Vec<Sum> = (0..50).map(|n| key.row("t", [ValueRef::Integer(n)].into_iter())).collect();
        let mut forwards = Sum::default();
        rows.iter().for_each(|row| forwards.add(*row));
        let mut backwards = Sum::default();
        rows.iter().rev().for_each(|row| backwards.add(*row));
        assert_eq!(forwards, backwards);
        rows.iter().for_each(|row| forwards.subtract(*row));
        assert_eq!(forwards, Sum::default());
        assert_eq!(Sum::from_bytes(&backwards.to_bytes()), backwards);
    }

    #[test]
    fn triggers_add_up_what_a_scan_finds() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c BLOB, d REAL) STRICT; CREATE TABLE u (a TEXT PRIMARY KEY) STRICT, WITHOUT ROWID").unwrap();
        let digests = TableDigests::attach(&connection, TableKey::derive(&[1; 32])).unwrap();
        for table in ["t", "u"] {
            digests.watch(&connection, table, Sum::default()).unwrap();
        }
        connection
            .execute_batch(
                "INSERT INTO t (b) VALUES ('x'), ('y'), (NULL); INSERT OR REPLACE INTO t VALUES (1, 'z', x'00', 1);
                 UPDATE t SET d = 2.5 WHERE a = 2; DELETE FROM t WHERE a = 3;
                 INSERT INTO u VALUES ('k') ON CONFLICT DO NOTHING; INSERT INTO u VALUES ('k') ON CONFLICT (a) DO UPDATE SET a = 'l';
                 INSERT OR REPLACE INTO u VALUES ('l')",
            )
            .unwrap();
        let snapshot = digests.snapshot();
        for (table, (sum, _)) in ["t", "u"].iter().zip(&snapshot.0) {
            assert_eq!(scan(&connection, &digests.key, table).unwrap(), *sum, "{table}");
            assert_ne!(*sum, Sum::default());
        }
        connection.execute_batch("DELETE FROM t; DELETE FROM u").unwrap();
        assert!(digests.snapshot().0.iter().all(|(sum, _)| *sum == Sum::default()));
    }
}
