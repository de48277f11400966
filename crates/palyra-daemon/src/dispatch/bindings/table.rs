//! Bindings on the journal, and the table that is derived from it.
//!
//! A binding is at the version of the record that set it last, so a place that is untied and tied again never comes back to an earlier version.

use palyra_client::api::{BindingPlace, BindingView};
use palyra_common::{BindingId, SessionId, Timestamp};
use palyra_journal::rusqlite::{Connection, OptionalExtension as _, Row, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};

use crate::dispatch::records::read;

/// A place was tied to a session.
pub(super) const SET: &str = "binding.set";
/// A place was untied.
pub(super) const REMOVED: &str = "binding.removed";

/// A place was tied to a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BindingSet {
    pub(super) binding_id: BindingId,
    pub(super) owner: String,
    pub(super) place: BindingPlace,
    pub(super) session_id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) trusted_senders: Vec<String>,
    pub(super) by: String,
}

/// A place was untied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BindingRemoved {
    pub(super) binding_id: BindingId,
    pub(super) by: String,
}

/// The table.
pub(in crate::dispatch) struct Bindings;

impl Projection for Bindings {
    fn name(&self) -> &'static str {
        "bindings"
    }
    fn version(&self) -> u32 {
        2
    }
    fn tables(&self) -> &'static [&'static str] {
        &["bindings"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE bindings (
                binding_id TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, channel TEXT NOT NULL, account TEXT NOT NULL,
                conversation TEXT NOT NULL, session_id TEXT NOT NULL, version INTEGER NOT NULL, set_at INTEGER NOT NULL, set_by TEXT NOT NULL,
                agent TEXT, trusted_senders TEXT NOT NULL
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            SET => {
                let set: BindingSet = read(record)?;
                connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO bindings VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                    )?
                    .execute(params![
                        set.binding_id.to_string(),
                        set.owner,
                        set.place.channel,
                        set.place.account,
                        set.place.conversation,
                        set.session_id.to_string(),
                        i64::try_from(record.seq).unwrap_or(i64::MAX),
                        record.at.0,
                        set.by,
                        set.agent,
                        serde_json::json!(set.trusted_senders).to_string(),
                    ])?;
            }
            REMOVED => {
                let removed: BindingRemoved = read(record)?;
                connection
                    .prepare_cached("DELETE FROM bindings WHERE binding_id = ?1")?
                    .execute(params![removed.binding_id.to_string()])?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// One binding.
pub(super) fn binding(connection: &Connection, id: BindingId) -> rusqlite::Result<Option<BindingView>> {
    connection
        .prepare_cached("SELECT * FROM bindings WHERE binding_id = ?1")?
        .query_row(params![id.to_string()], view)
        .optional()
}

/// Which bindings to list; what is absent does not narrow.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    pub(super) owner: Option<String>,
    pub(super) session_id: Option<SessionId>,
    pub(super) agent: Option<String>,
    pub(super) channel: Option<String>,
    pub(super) account: Option<String>,
    pub(super) conversation: Option<String>,
    pub(super) after: Option<BindingId>,
    pub(super) limit: u32,
}

/// A page of bindings, by id.
pub(super) fn bindings(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<BindingView>> {
    connection
        .prepare_cached(
            "SELECT * FROM bindings WHERE (?1 IS NULL OR owner = ?1) AND (?2 IS NULL OR session_id = ?2)
             AND (?3 IS NULL OR channel = ?3) AND (?4 IS NULL OR account = ?4) AND (?5 IS NULL OR conversation = ?5)
             AND (?6 IS NULL OR binding_id > ?6) AND (?8 IS NULL OR agent = ?8) ORDER BY binding_id LIMIT ?7",
        )?
        .query_map(
            params![
                filter.owner,
                filter.session_id.map(|id| id.to_string()),
                filter.channel,
                filter.account,
                filter.conversation,
                filter.after.map(|id| id.to_string()),
                filter.limit,
                filter.agent,
            ],
            view,
        )?
        .collect()
}

fn view(row: &Row<'_>) -> rusqlite::Result<BindingView> {
    Ok(BindingView {
        binding_id: id(row, 0)?,
        owner: row.get(1)?,
        place: BindingPlace { channel: row.get(2)?, account: row.get(3)?, conversation: row.get(4)? },
        session_id: id(row, 5)?,
        version: u64::try_from(row.get::<_, i64>(6)?).unwrap_or(0),
        set_at: Timestamp(row.get(7)?),
        set_by: row.get(8)?,
        agent: row.get(9)?,
        trusted_senders: serde_json::from_str(&row.get::<_, String>(10)?).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(10, rusqlite::types::Type::Text, Box::new(error))
        })?,
    })
}

fn id<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error: T::Err| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
    })
}
