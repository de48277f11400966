//! What the dispatcher itself keeps on the journal: answers to commands that may be given again, and API tokens.
//!
//! Tables are projections like the engine's; this is the full list of both.

use std::sync::Arc;

use palyra_common::{Digest, Timestamp};
use palyra_identity::{TokenEvent, TokenId};
use palyra_journal::rusqlite::{Connection, OptionalExtension as _, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Kinds of records.
pub(super) mod kind {
    pub(in crate::dispatch) const COMMAND_ACCEPTED: &str = "command.accepted";
    pub(in crate::dispatch) const COMMAND_EFFECT: &str = "command.effect";
    pub(in crate::dispatch) const COMMAND_ANSWERED: &str = "command.answered";
    pub(in crate::dispatch) const TOKEN_CHANGED: &str = "token.changed";
    pub(in crate::dispatch) const TOKENS_USED: &str = "tokens.used";
}

/// A command with a key is about to be carried out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CommandAccepted {
    pub(super) by: String,
    pub(super) key: String,
    pub(super) command: String,
    pub(super) request: Digest,
    /// What the command is about to remove, which is what it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<Value>,
    /// Whether its first commit carries a [`CommandEffect`]; daemons from before that record said nothing.
    #[serde(default)]
    pub(super) marked: bool,
}

/// Stands first in the first commit of a command, so that it says both that there was one and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CommandEffect {
    pub(super) by: String,
    pub(super) key: String,
}

/// What it came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CommandAnswered {
    pub(super) by: String,
    pub(super) key: String,
    /// The result; absent if the command was refused or failed. It may then be given again: what it committed before, if anything, is still known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
}

/// When tokens were last used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TokensUsed {
    pub(super) used: Vec<(TokenId, Timestamp)>,
}

/// A command that was given with a key before.
#[derive(Debug, Clone)]
pub(super) struct Earlier {
    pub(super) command: String,
    pub(super) request: Digest,
    /// What it came to, if that is known.
    pub(super) result: Option<Value>,
    /// Position of the record in front of its first commit; absent if it committed nothing.
    pub(super) effect: Option<u64>,
    /// What it was to remove.
    pub(super) before: Option<Value>,
    /// Whether an absent `effect` proves that it committed nothing.
    pub(super) marked: bool,
}

/// Every table that is derived from the journal.
pub(crate) fn projections() -> Vec<Arc<dyn Projection>> {
    let mut all = palyra_agent::projections();
    all.push(Arc::new(Commands));
    all.push(Arc::new(TokenLog));
    all.push(Arc::new(super::devices::RevokedCertificates));
    all.push(Arc::new(super::storage::StorageUse));
    all.push(Arc::new(super::bindings::Bindings));
    all.push(Arc::new(super::requests::Requests));
    all.push(Arc::new(super::canvases::Links));
    all.push(Arc::new(super::messages::Messages));
    all.push(Arc::new(super::attachments::Attachments));
    all.push(crate::openai::projection());
    all.push(Arc::new(crate::skills::SkillLog));
    all.push(Arc::new(crate::workspaces::WorkspaceGrants));
    all
}

struct Commands;

impl Projection for Commands {
    fn name(&self) -> &'static str {
        "commands"
    }
    fn version(&self) -> u32 {
        3
    }
    fn tables(&self) -> &'static [&'static str] {
        &["commands"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE commands (
                by TEXT NOT NULL, key TEXT NOT NULL, command TEXT NOT NULL, request TEXT NOT NULL, result TEXT,
                before TEXT, effect INTEGER, marked INTEGER NOT NULL,
                PRIMARY KEY (by, key)
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::COMMAND_ACCEPTED => {
                let accepted: CommandAccepted = read(record)?;
                connection
                    .prepare_cached("INSERT OR REPLACE INTO commands VALUES (?1, ?2, ?3, ?4, NULL, ?5, NULL, ?6)")?
                    .execute(params![
                        accepted.by,
                        accepted.key,
                        accepted.command,
                        accepted.request.to_string(),
                        accepted.before.map(|before| before.to_string()),
                        accepted.marked,
                    ])?;
            }
            kind::COMMAND_EFFECT => {
                let effect: CommandEffect = read(record)?;
                connection
                    .prepare_cached("UPDATE commands SET effect = ?3 WHERE by = ?1 AND key = ?2")?
                    .execute(params![effect.by, effect.key, i64::try_from(record.seq).unwrap_or(i64::MAX)])?;
            }
            kind::COMMAND_ANSWERED => {
                let answered: CommandAnswered = read(record)?;
                match answered.result {
                    Some(result) => connection
                        .prepare_cached("UPDATE commands SET result = ?3 WHERE by = ?1 AND key = ?2")?
                        .execute(params![answered.by, answered.key, result.to_string()])?,
                    // One that failed after it had changed something is as one whose daemon died there.
                    None => connection
                        .prepare_cached("DELETE FROM commands WHERE by = ?1 AND key = ?2 AND effect IS NULL")?
                        .execute(params![answered.by, answered.key])?,
                };
            }
            _ => {}
        }
        Ok(())
    }
}

/// The command that a caller gave with this key, if any.
pub(super) fn earlier(connection: &Connection, by: &str, key: &str) -> rusqlite::Result<Option<Earlier>> {
    connection
        .prepare_cached(
            "SELECT command, request, result, before, effect, marked FROM commands WHERE by = ?1 AND key = ?2",
        )?
        .query_row(params![by, key], |row| {
            let wrong = |column, error: Box<dyn std::error::Error + Send + Sync>| {
                rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error)
            };
            let request: String = row.get(1)?;
            let document = |column: usize| -> rusqlite::Result<Option<Value>> {
                let text: Option<String> = row.get(column)?;
                text.map(|text| serde_json::from_str(&text).map_err(|error| wrong(column, error.into()))).transpose()
            };
            Ok(Earlier {
                command: row.get(0)?,
                request: request.parse().map_err(|error: palyra_common::InvalidDigest| wrong(1, error.into()))?,
                result: document(2)?,
                before: document(3)?,
                effect: row.get::<_, Option<i64>>(4)?.and_then(|seq| u64::try_from(seq).ok()),
                marked: row.get(5)?,
            })
        })
        .optional()
}

/// All that ever happened to tokens, in order; there are few.
struct TokenLog;

impl Projection for TokenLog {
    fn name(&self) -> &'static str {
        "tokens"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["token_events", "tokens_used"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE token_events (seq INTEGER PRIMARY KEY NOT NULL, event TEXT NOT NULL) STRICT;
             CREATE TABLE tokens_used (id TEXT PRIMARY KEY NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::TOKEN_CHANGED => {
                let event: TokenEvent = read(record)?;
                let text =
                    serde_json::to_string(&event).map_err(|error| ProjectionError::Refused(error.to_string()))?;
                connection
                    .prepare_cached("INSERT INTO token_events VALUES (?1, ?2)")?
                    .execute(params![i64::try_from(record.seq).unwrap_or(i64::MAX), text])?;
            }
            kind::TOKENS_USED => {
                let TokensUsed { used } = read(record)?;
                let mut note = connection.prepare_cached("INSERT OR REPLACE INTO tokens_used VALUES (?1, ?2)")?;
                for (id, at) in used {
                    note.execute(params![id.to_string(), at.0])?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What happened to tokens, oldest first.
pub(super) fn token_events(connection: &Connection) -> rusqlite::Result<Vec<TokenEvent>> {
    connection
        .prepare_cached("SELECT event FROM token_events ORDER BY seq")?
        .query_map([], |row| {
            let text: String = row.get(0)?;
            serde_json::from_str(&text).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
            })
        })?
        .collect()
}

/// When each token was last used, as far as it was noted.
pub(super) fn tokens_used(connection: &Connection) -> rusqlite::Result<Vec<(TokenId, Timestamp)>> {
    connection
        .prepare_cached("SELECT id, at FROM tokens_used")?
        .query_map([], |row| {
            let id: String = row.get(0)?;
            let id = id.parse().map_err(|error: palyra_identity::IdentityError| {
                rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
            })?;
            Ok((id, Timestamp(row.get(1)?)))
        })?
        .collect()
}

/// What a record says.
pub(super) fn read<T: serde::de::DeserializeOwned>(record: &StoredRecord) -> Result<T, ProjectionError> {
    serde_json::from_slice(&record.payload)
        .map_err(|error| ProjectionError::Refused(format!("record {} does not read: {error}", record.seq)))
}

/// A record of the dispatcher.
pub(super) fn record(
    kind: &'static str,
    at: Timestamp,
    payload: &impl Serialize,
) -> super::Result<palyra_journal::NewRecord> {
    let payload = serde_json::to_vec(payload).map_err(|error| super::Refusal::internal(error.to_string()))?;
    Ok(palyra_journal::NewRecord::new(kind, at, payload))
}
