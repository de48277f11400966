//! `palyra skills rotate-key|revoke|import|revoke-key`: what publishers say about their own keys and archives, and what operators do with it.
//!
//! Signing happens beside the publisher's key and without a daemon. What counts is decided in the operator's daemon, by the keys that are trusted there.

use std::path::{Path, PathBuf};

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ImportStatementParams, ImportStatementResponse, RevokeKeyParams, RevokeKeyResponse};
use palyra_client::command::Command;
use palyra_common::{Clock as _, ExitCode, SystemClock};
use palyra_skills::{
    Envelope, KeyRotation, PublisherKey, PublisherName, RevocationList, RevokedArtifact, RevokedKey, verify,
};
use serde_json::json;

use super::keys::{key_id, public_key};
use super::pack;
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::counted;

/// Whose key changes, from which to which.
#[derive(Debug, Args)]
pub(crate) struct RotateKeyArguments {
    /// Your publisher name, as in your skills' manifests
    publisher: PublisherName,
    /// Your current private key
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// Your new private key (`palyra skills keygen` creates one)
    #[arg(long, value_name = "KEY")]
    new_key: PathBuf,
    /// Where to write the statement [default: PUBLISHER.rotation.json]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What a publisher takes back.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// Your publisher name, as in your skills' manifests
    publisher: PublisherName,
    /// Your private key; a revoked key can no longer sign lists
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// Key to revoke: its id, the public key, or a file that contains it; may be repeated
    #[arg(long = "revoked-key", value_name = "KEY")]
    revoked_keys: Vec<String>,
    /// Archive to revoke; may be repeated
    #[arg(long = "archive", value_name = "FILE")]
    archives: Vec<PathBuf>,
    /// Reason, published with the list
    #[arg(long)]
    reason: String,
    /// Your revocation list, which is extended [default: PUBLISHER.revocations.json]
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Public key that signed the existing list, if it was another key
    #[arg(long, value_name = "KEY")]
    former_key: Option<String>,
}

/// A key that is to count no more.
#[derive(Debug, Args)]
pub(crate) struct RevokeKeyArguments {
    /// Its id, the public key, or a file that contains it
    #[arg(value_name = "KEY")]
    key: String,
    /// Reason, recorded in the journal
    #[arg(long)]
    reason: String,
}

pub(super) fn rotate_key(given: &RotateKeyArguments, context: &Context) -> Result<ExitCode, CliError> {
    let (old, new) = (PublisherKey::load(&given.key)?, PublisherKey::load(&given.new_key)?);
    let envelope = KeyRotation::sign(given.publisher.clone(), &old, &new, SystemClock.now())?;
    // Reads what was just made: the same key twice is refused here and not at every operator.
    KeyRotation::open(&envelope)?;
    let out = given.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.rotation.json", given.publisher)));
    write(&out, &envelope)?;
    let (from, to) = (old.public().id(), new.public().id());
    let console = &context.console;
    if console.is_text() {
        console.line(&format!("Wrote {}: {} rotates from key {from} to {to}", out.display(), given.publisher))?;
        console
            .remark(&format!("send it to everyone who trusts you; they run: palyra skills import {}", out.display()));
        console.remark("sign with the new key from now on, and keep the old one: it is needed to revoke itself");
    } else {
        console.document(&json!({"file": out, "publisher": given.publisher.to_string(), "from": from, "to": to}))?;
    }
    Ok(ExitCode::Ok)
}

pub(super) fn revoke(given: &RevokeArguments, context: &Context) -> Result<ExitCode, CliError> {
    if given.revoked_keys.is_empty() && given.archives.is_empty() {
        return Err(CliError::Usage {
            reason: "nothing to revoke".to_owned(),
            usage: Some(
                "palyra skills revoke PUBLISHER --key KEY --reason REASON --revoked-key KEY|--archive FILE".to_owned(),
            ),
        });
    }
    let key = PublisherKey::load(&given.key)?;
    let path = given.list.clone().unwrap_or_else(|| PathBuf::from(format!("{}.revocations.json", given.publisher)));
    let before = match std::fs::read(&path) {
        Ok(bytes) => former(&bytes, given, &key)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => RevocationList::none(given.publisher.clone()),
        Err(error) => return Err(super::file("read", &path)(error)),
    };
    let mut keys = Vec::new();
    for text in &given.revoked_keys {
        keys.push(RevokedKey { key_id: key_id(text)?, reason: given.reason.clone() });
    }
    let mut artifacts = Vec::new();
    for file in &given.archives {
        let archive = pack::read(file)?;
        same_publisher(given, &verify(&archive)?.publisher)?;
        artifacts.push(RevokedArtifact { content: archive.content(), reason: given.reason.clone() });
    }
    let list = before.and(keys, artifacts, SystemClock.now());
    write(&path, &list.sign(&key)?)?;
    let console = &context.console;
    if console.is_text() {
        let (keys, archives) = (counted(list.keys.len(), "key"), counted(list.artifacts.len(), "archive"));
        let what = format!("revocation list {} of {}, with {keys} and {archives}", list.number, list.publisher);
        console.line(&format!("{}: {what}", path.display()))?;
        let shown = path.display();
        console.remark(&format!(
            "to tell users of a registry: palyra skills registry publish DIRECTORY {shown} --key REGISTRY-KEY"
        ));
        console.remark(&format!("or send it to everyone who trusts you; they run: palyra skills import {shown}"));
    } else {
        console.document(&json!({
            "file": path, "publisher": list.publisher.to_string(), "number": list.number, "keys": list.keys, "artifacts": list.artifacts,
        }))?;
    }
    Ok(ExitCode::Ok)
}

/// The publisher's list so far, if it is really this publisher's.
fn former(bytes: &[u8], given: &RevokeArguments, key: &PublisherKey) -> Result<RevocationList, CliError> {
    let mut signers = vec![key.public()];
    if let Some(text) = &given.former_key {
        signers.push(public_key(text)?);
    }
    let list = RevocationList::open(&Envelope::parse(bytes)?, &signers)?;
    same_publisher(given, &list.publisher)?;
    Ok(list)
}

fn same_publisher(given: &RevokeArguments, found: &PublisherName) -> Result<(), CliError> {
    if *found == given.publisher {
        return Ok(());
    }
    Err(CliError::Usage {
        reason: format!("it belongs to the publisher `{found}`, not to `{}`", given.publisher),
        usage: Some("a publisher can revoke only its own keys and archives".to_owned()),
    })
}

/// Hands a publisher's statement to the daemon.
pub(super) async fn import(client: &Client, path: &Path, context: &Context) -> Result<ExitCode, CliError> {
    let bytes = std::fs::read(path).map_err(super::file("read", path))?;
    // A file that is none is refused before it travels; one that is has nothing to lose here.
    Envelope::parse(&bytes)?;
    let statement = String::from_utf8_lossy(&bytes).into_owned();
    let command = Command::PublisherImport(ImportStatementParams { statement });
    let done: ImportStatementResponse = client.execute(&command).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&done)?;
        return Ok(ExitCode::Ok);
    }
    let publisher = &done.publisher.publisher;
    if let Some(key) = &done.new_key {
        console.line(&format!("{publisher} now signs with {key}; its old key is no longer accepted for new skills"))?;
    } else if done.revoked_keys.is_empty() && done.revoked_archives.is_empty() {
        console.line(&format!("nothing new in the revocation list of {publisher}"))?;
    }
    done.revoked_keys.iter().try_for_each(|key| console.line(&format!("{publisher} revoked the key {key}")))?;
    let archives = done.revoked_archives.iter();
    archives
        .map(|content| format!("{publisher} revoked the archive {content}"))
        .try_for_each(|line| console.line(&line))?;
    held(&done.quarantined, context)
}

pub(super) async fn revoke_key(
    client: &Client,
    given: RevokeKeyArguments,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let params = RevokeKeyParams { key_id: key_id(&given.key)?.to_string(), reason: given.reason };
    let done: RevokeKeyResponse = client.execute(&Command::PublisherRevokeKey(params)).await?;
    if !context.console.is_text() {
        context.console.document(&done)?;
        return Ok(ExitCode::Ok);
    }
    context.console.line(&format!("Revoked key {}", done.key_id))?;
    held(&done.quarantined, context)
}

fn held(skills: &[String], context: &Context) -> Result<ExitCode, CliError> {
    skills.iter().try_for_each(|skill| context.console.line(&format!("Quarantined {skill}")))?;
    Ok(ExitCode::Ok)
}

fn write(path: &Path, envelope: &Envelope) -> Result<(), CliError> {
    std::fs::write(path, envelope.to_bytes()?).map_err(super::file("write", path))
}
