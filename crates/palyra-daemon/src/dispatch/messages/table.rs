//! Messages that came in, on the journal and by their channel's own ids.

use palyra_common::{BindingId, Digest, SessionId, Timestamp};
use palyra_journal::rusqlite::{Connection, OptionalExtension as _, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};

use crate::dispatch::records::read;

/// A message came in for a session.
pub(super) const RECEIVED: &str = "message.received";

/// A message came in for a session. Its text is in the input that it becomes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MessageReceived {
    pub(super) binding_id: BindingId,
    pub(super) message_id: String,
    pub(super) sender: String,
    /// Whether the binding says that this sender is its owner.
    pub(super) trusted: bool,
    pub(super) session_id: SessionId,
    /// The name under which the session gets it.
    pub(super) input_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attachments: Vec<Digest>,
}

/// Where a message that came in before went.
#[derive(Debug, Clone)]
pub(super) struct Earlier {
    pub(super) session_id: SessionId,
    pub(super) input_id: String,
}

/// The table. A place that is tied anew keeps its id, so what came in before stays known.
pub(in crate::dispatch) struct Messages;

impl Projection for Messages {
    fn name(&self) -> &'static str {
        "messages"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["messages"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE messages (
                binding_id TEXT NOT NULL, message_id TEXT NOT NULL, session_id TEXT NOT NULL, input_id TEXT NOT NULL,
                PRIMARY KEY (binding_id, message_id)
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        if record.kind.as_ref() == RECEIVED {
            let received: MessageReceived = read(record)?;
            connection.prepare_cached("INSERT OR REPLACE INTO messages VALUES (?1, ?2, ?3, ?4)")?.execute(params![
                received.binding_id.to_string(),
                received.message_id,
                received.session_id.to_string(),
                received.input_id
            ])?;
        }
        Ok(())
    }
}

/// The message of this id, if it came in before.
pub(super) fn earlier(
    connection: &Connection,
    binding: BindingId,
    message_id: &str,
) -> rusqlite::Result<Option<Earlier>> {
    connection
        .prepare_cached("SELECT session_id, input_id FROM messages WHERE binding_id = ?1 AND message_id = ?2")?
        .query_row(params![binding.to_string(), message_id], |row| {
            let session: String = row.get(0)?;
            let session_id = session.parse().map_err(|error: palyra_common::InvalidId| {
                rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
            })?;
            Ok(Earlier { session_id, input_id: row.get(1)? })
        })
        .optional()
}
