//! Sessions: conversations, by id, by key and by newest activity.

use palyra_common::{RunMode, SessionId, Timestamp};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{from_json, json, parse, typed, typed_option};
use crate::session::{
    Compaction, Fork, ForkedFrom, SessionChange, SessionChanged, SessionCreated, SessionSettings, kind as session_kind,
};
use crate::tape::kind;

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session_id: SessionId,
    /// Who created it.
    pub owner: String,
    /// The owner's own name for it.
    pub key: Option<String>,
    /// What lists call it: the beginning of its first task, unless somebody named it.
    pub title: String,
    /// When it began.
    pub created_at: Timestamp,
    /// When it was last changed or took a run.
    pub updated_at: Timestamp,
    /// Grows with every change and every run; lists are in its order. The place to go on from in [`SessionFilter::before`].
    pub activity: u64,
    /// How many runs it has, without those it inherited.
    pub runs: u64,
    /// Grows by one with every record that changes the session or accepts a run in it.
    pub version: u64,
    /// When it was put away.
    pub archived_at: Option<Timestamp>,
    /// Where it comes from.
    pub forked_from: Option<ForkedFrom>,
    /// How its runs treat untrusted results, if they are told nothing else.
    pub mode: Option<RunMode>,
    /// What its runs take where they are told nothing else.
    pub settings: SessionSettings,
}

/// A session with what only the engine needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionState {
    pub(crate) row: SessionRow,
    pub(crate) fork: Option<Fork>,
    pub(crate) compaction: Option<Compaction>,
    /// Number of the record that it began with.
    pub(crate) created_seq: u64,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Of this owner only.
    pub owner: Option<String>,
    /// What about those that were put away.
    pub archived: Archived,
    /// Less recently active than this; see [`SessionRow::activity`].
    pub before: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// What a list does about sessions that were put away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Archived {
    /// Leaves them out.
    #[default]
    Hide,
    /// Shows them alone.
    Only,
    /// Shows all.
    Include,
}

pub(super) struct Sessions;

impl Projection for Sessions {
    fn name(&self) -> &'static str {
        "sessions"
    }
    fn version(&self) -> u32 {
        3
    }
    fn tables(&self) -> &'static [&'static str] {
        &["sessions"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE sessions (
                session_id TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, key TEXT, title TEXT NOT NULL,
                created_seq INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, activity INTEGER NOT NULL,
                runs INTEGER NOT NULL, version INTEGER NOT NULL, archived_at INTEGER, mode TEXT,
                settings TEXT NOT NULL, fork TEXT, compaction TEXT
            ) STRICT, WITHOUT ROWID;
            CREATE UNIQUE INDEX sessions_by_key ON sessions (owner, key) WHERE key IS NOT NULL;
            CREATE INDEX sessions_by_activity ON sessions (activity);
            CREATE INDEX sessions_by_owner ON sessions (owner, activity)",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            session_kind::CREATED => create(connection, record)?,
            kind::RUN_ACCEPTED => {
                if let Some(session) = record.session_id {
                    connection
                        .prepare_cached(
                            "UPDATE sessions SET runs = runs + 1, version = version + 1, updated_at = ?2, activity = ?3
                             WHERE session_id = ?1",
                        )?
                        .execute(params![session.to_string(), record.at.0, sequence(record)])?;
                }
            }
            other if session_kind::is_change(other) => change(connection, record)?,
            _ => {}
        }
        Ok(())
    }
}

fn sequence(record: &StoredRecord) -> i64 {
    i64::try_from(record.seq).unwrap_or(i64::MAX)
}

fn create(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let created: SessionCreated = parse(record)?;
    connection
        .prepare_cached(
            "INSERT INTO sessions (session_id, owner, key, title, created_at, updated_at, activity, created_seq, runs, version, mode,
                settings, fork, compaction)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?6, 0, 1, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            created.session_id.to_string(),
            created.owner,
            created.key,
            created.title,
            record.at.0,
            sequence(record),
            created.mode.map(RunMode::as_str),
            json(&created.settings)?,
            created.fork.as_ref().map(json).transpose()?,
            created.fork.as_ref().and_then(|fork| fork.compaction.as_ref()).map(json).transpose()?,
        ])?;
    Ok(())
}

fn change(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let changed: SessionChanged = parse(record)?;
    let id = changed.session_id.to_string();
    match changed.change {
        SessionChange::Renamed { title } => set(connection, "title", &id, title)?,
        SessionChange::Archived => set(connection, "archived_at", &id, record.at.0)?,
        SessionChange::Restored => set(connection, "archived_at", &id, None::<i64>)?,
        SessionChange::ModeSet { mode } => set(connection, "mode", &id, mode.map(RunMode::as_str))?,
        SessionChange::SettingsSet { settings } => set(connection, "settings", &id, json(&settings)?)?,
        SessionChange::Compacted(compaction) => set(connection, "compaction", &id, json(&compaction)?)?,
        SessionChange::CompactionReverted { restored } => {
            set(connection, "compaction", &id, restored.as_ref().map(json).transpose()?)?;
        }
    }
    connection
        .prepare_cached(
            "UPDATE sessions SET version = version + 1, updated_at = ?2, activity = ?3 WHERE session_id = ?1",
        )?
        .execute(params![id, record.at.0, sequence(record)])?;
    Ok(())
}

fn set(connection: &Connection, column: &str, id: &str, value: impl rusqlite::ToSql) -> rusqlite::Result<()> {
    connection
        .prepare_cached(&format!("UPDATE sessions SET {column} = ?2 WHERE session_id = ?1"))?
        .execute(params![id, value])
        .map(|_| ())
}

const COLUMNS: &str = "session_id, owner, key, title, created_at, updated_at, activity, runs, version, archived_at, mode, \
                       settings, fork, compaction, created_seq";

fn read(row: &Row<'_>) -> rusqlite::Result<SessionState> {
    let count = |column: usize| row.get::<_, i64>(column).map(|count| u64::try_from(count).unwrap_or(0));
    let fork: Option<Fork> = from_json(row, 12)?;
    Ok(SessionState {
        row: SessionRow {
            session_id: typed(row, 0)?,
            owner: row.get(1)?,
            key: row.get(2)?,
            title: row.get(3)?,
            created_at: Timestamp(row.get(4)?),
            updated_at: Timestamp(row.get(5)?),
            activity: count(6)?,
            runs: count(7)?,
            version: count(8)?,
            archived_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
            forked_from: fork.as_ref().map(|fork| fork.from),
            mode: typed_option(row, 10)?,
            settings: from_json(row, 11)?.unwrap_or_default(),
        },
        fork,
        compaction: from_json(row, 13)?,
        created_seq: count(14)?,
    })
}

pub(crate) fn session(connection: &Connection, id: SessionId) -> rusqlite::Result<Option<SessionState>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE session_id = ?1"))?
        .query_row([id.to_string()], read)
        .optional()
}

/// The session that an owner calls by this key.
pub(crate) fn session_by_key(
    connection: &Connection,
    owner: &str,
    key: &str,
) -> rusqlite::Result<Option<SessionState>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE owner = ?1 AND key = ?2"))?
        .query_row([owner, key], read)
        .optional()
}

/// Most recently active first.
pub(crate) fn sessions(connection: &Connection, filter: &SessionFilter) -> rusqlite::Result<Vec<SessionRow>> {
    let before = filter.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
    let mut statement = connection.prepare_cached(&list(filter))?;
    let rows = match &filter.owner {
        Some(owner) => statement.query_map(params![before, filter.limit, owner], read)?,
        None => statement.query_map(params![before, filter.limit], read)?,
    };
    rows.map(|state| state.map(|state| state.row)).collect()
}

fn list(filter: &SessionFilter) -> String {
    let archived = match filter.archived {
        Archived::Hide => " AND archived_at IS NULL",
        Archived::Only => " AND archived_at IS NOT NULL",
        Archived::Include => "",
    };
    let owned = if filter.owner.is_some() { " AND owner = ?3" } else { "" };
    format!("SELECT {COLUMNS} FROM sessions WHERE activity < ?1{owned}{archived} ORDER BY activity DESC LIMIT ?2")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the database would find the rows.
    fn plan(filter: &SessionFilter) -> String {
        let connection = Connection::open_in_memory().unwrap();
        Sessions.create(&connection).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", list(filter))).unwrap();
        let count = statement.parameter_count();
        let values = vec![rusqlite::types::Value::Null; count];
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    #[test]
    fn a_page_is_read_in_the_order_of_an_index() {
        for archived in [Archived::Hide, Archived::Only, Archived::Include] {
            let all = SessionFilter { archived, limit: 10, ..SessionFilter::default() };
            let owned = SessionFilter { owner: Some("ada".into()), ..all.clone() };
            for (filter, index) in [(all, "sessions_by_activity"), (owned, "sessions_by_owner")] {
                let plan = plan(&filter);
                assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{plan}");
            }
        }
    }
}
