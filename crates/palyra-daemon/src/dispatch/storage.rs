//! How much each principal has on the disk, and the quota that bounds it.
//!
//! Counted are the records of a principal's runs, sessions and commands, the files that they handed over, and whole outputs of their tools. Nothing on the journal is ever
//! deleted, so the sum only grows. The owner at the machine itself has no quota: the disk is theirs, and `journal.min_free_bytes` keeps it from filling up.

use palyra_client::command::Command;
use palyra_common::{Digest, ErrorCategory, StableErrorEnvelope};
use palyra_journal::rusqlite::{Connection, OptionalExtension as _, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::Deserialize;

use super::caller::Caller;
use super::facts::{Storage, facts};
use super::refusal::{Refusal, Result};
use crate::app::App;

/// Bytes of a record besides its payload: its hash, its ids and its place in the indexes.
const RECORD_OVERHEAD: u64 = 256;

/// Refuses a command that would store more for a principal whose quota is used up.
pub(super) async fn admit(app: &App, caller: &Caller, command: &Command) -> Result<()> {
    match facts(command).storage {
        Storage::Adds => check(app, caller, 0).await,
        Storage::Keeps => Ok(()),
    }
}

/// Refuses whoever has no room for so many bytes more.
pub(super) async fn check(app: &App, caller: &Caller, more: u64) -> Result<()> {
    let is_local = app.gate.behind(&caller.principal.via).is_some_and(|via| app.gate.is_local_owner(&via));
    if is_local {
        return Ok(());
    }
    let limit = app.config.config().storage.per_principal_bytes;
    let owner = caller.id().to_owned();
    let used = app.journal.read(move |reader| Ok(used_by(reader.connection(), &owner)?)).await?;
    if used.saturating_add(more) < limit {
        return Ok(());
    }
    Err(exceeded(caller.id(), used, limit))
}

fn exceeded(principal: &str, used: u64, limit: u64) -> Refusal {
    let message = format!("the storage quota of `{principal}` is used up: {used} of {limit} bytes");
    StableErrorEnvelope::new("storage_quota_exceeded", ErrorCategory::Conflict, message)
        .hint("ask the owner of this daemon to raise `storage.per_principal_bytes`")
        .details(serde_json::json!({"used_bytes": used, "limit_bytes": limit}))
        .into()
}

/// The table of what each principal has stored.
pub(super) struct StorageUse;

impl Projection for StorageUse {
    fn name(&self) -> &'static str {
        "storage_use"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["storage_use", "storage_owners", "storage_files"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE storage_use (owner TEXT PRIMARY KEY NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
             CREATE TABLE storage_owners (id TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL) STRICT, WITHOUT ROWID;
             CREATE TABLE storage_files (owner TEXT NOT NULL, artifact TEXT NOT NULL, PRIMARY KEY (owner, artifact))
             STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> std::result::Result<(), ProjectionError> {
        let Some(owner) = owner_of(connection, record)? else { return Ok(()) };
        let bytes = record.payload.len() as u64 + RECORD_OVERHEAD + files_of(connection, record, &owner)?;
        connection
            .prepare_cached(
                "INSERT INTO storage_use VALUES (?1, ?2) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes",
            )?
            .execute(params![owner, i64::try_from(bytes).unwrap_or(i64::MAX)])?;
        Ok(())
    }
}

/// What of a record says whose it is. Records have many forms; one that says nothing is nobody's.
#[derive(Debug, Default, Deserialize)]
struct Attribution {
    owner: Option<String>,
    by: Option<String>,
}

/// The first record of a run.
#[derive(Debug, Deserialize)]
struct Accepted {
    input: AcceptedInput,
}

#[derive(Debug, Deserialize)]
struct AcceptedInput {
    accepted: Attribution,
}

fn owner_of(connection: &Connection, record: &StoredRecord) -> std::result::Result<Option<String>, ProjectionError> {
    let named = || serde_json::from_slice::<Attribution>(&record.payload).unwrap_or_default();
    let (id, owner) = match (record.kind.as_ref(), record.run_id, record.session_id) {
        ("run.accepted", Some(run_id), _) => {
            let accepted: Option<Accepted> = serde_json::from_slice(&record.payload).ok();
            (run_id.to_string(), accepted.and_then(|accepted| accepted.input.accepted.owner))
        }
        ("session.created", _, Some(session_id)) => (session_id.to_string(), named().owner),
        (_, Some(run_id), _) => return Ok(known(connection, &run_id.to_string())?),
        (_, None, Some(session_id)) => return Ok(known(connection, &session_id.to_string())?),
        (_, None, None) => {
            let named = named();
            return Ok(named.owner.or(named.by));
        }
    };
    if let Some(owner) = &owner {
        connection.prepare_cached("INSERT OR REPLACE INTO storage_owners VALUES (?1, ?2)")?.execute([&id, owner])?;
    }
    Ok(owner)
}

fn known(connection: &Connection, id: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT owner FROM storage_owners WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
}

/// A file that somebody handed over.
#[derive(Debug, Deserialize)]
struct FileAdded {
    artifact: Digest,
    size_bytes: u64,
}

/// Bytes of files that a record brought along. Contents are stored once, so the same file counts once for each who has it.
fn files_of(connection: &Connection, record: &StoredRecord, owner: &str) -> std::result::Result<u64, ProjectionError> {
    let (artifact, size) = match record.kind.as_ref() {
        "attachment.added" => match serde_json::from_slice::<FileAdded>(&record.payload) {
            Ok(added) => (added.artifact.to_string(), added.size_bytes),
            Err(_) => return Ok(0),
        },
        "tool.finished" => match whole_output(&record.payload) {
            Some(output) => output,
            None => return Ok(0),
        },
        _ => return Ok(0),
    };
    let added = connection
        .prepare_cached("INSERT OR IGNORE INTO storage_files VALUES (?1, ?2)")?
        .execute(params![owner, artifact])?;
    Ok(if added == 0 { 0 } else { size })
}

#[derive(Debug, Deserialize)]
struct Finished {
    input: FinishedInput,
}

#[derive(Debug, Deserialize)]
struct FinishedInput {
    tool_finished: FinishedCall,
}

#[derive(Debug, Deserialize)]
struct FinishedCall {
    result: FinishedResult,
}

#[derive(Debug, Deserialize)]
struct FinishedResult {
    artifact: Option<String>,
    attestation: Option<Attestation>,
}

#[derive(Debug, Deserialize)]
struct Attestation {
    limits_used: LimitsUsed,
}

#[derive(Debug, Deserialize)]
struct LimitsUsed {
    output_bytes: Option<u64>,
}

/// The output of a tool that was too long for its record.
fn whole_output(payload: &[u8]) -> Option<(String, u64)> {
    let result = serde_json::from_slice::<Finished>(payload).ok()?.input.tool_finished.result;
    Some((result.artifact?, result.attestation?.limits_used.output_bytes?))
}

/// Bytes that a principal has stored.
fn used_by(connection: &Connection, owner: &str) -> rusqlite::Result<u64> {
    let bytes: Option<i64> = connection
        .prepare_cached("SELECT bytes FROM storage_use WHERE owner = ?1")?
        .query_row([owner], |row| row.get(0))
        .optional()?;
    Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
}
