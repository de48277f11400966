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
    /// The name that your skills give as their publisher
    publisher: PublisherName,
    /// The private key so far
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// The private key from now on (`palyra skills keygen` makes one)
    #[arg(long, value_name = "KEY")]
    new_key: PathBuf,
    /// Where the statement goes; PUBLISHER.rotation.json in this directory if left out
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What a publisher takes back.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// The name that your skills give as their publisher
    publisher: PublisherName,
    /// Your private key; a key that was revoked cannot sign lists any more
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
    /// A key to take back: its id, the public key, or a file that holds it; may be given several times
    #[arg(long = "revoked-key", value_name = "KEY")]
    revoked_keys: Vec<String>,
    /// An archive to take back; may be given several times
    #[arg(long = "archive", value_name = "FILE")]
    archives: Vec<PathBuf>,
    /// Why, for everybody who reads the list
    #[arg(long)]
    reason: String,
    /// Your list, which grows; PUBLISHER.revocations.json in this directory if left out
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// The public key that signed the list so far, if that was another one
    #[arg(long, value_name = "KEY")]
    former_key: Option<String>,
}

/// A key that is to count no more.
#[derive(Debug, Args)]
pub(crate) struct RevokeKeyArguments {
    /// Its id, the public key, or a file that holds it
    #[arg(value_name = "KEY")]
    key: String,
    /// Why, for the journal
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
        console.line(&format!("{}: {} hands over from {from} to {to}", out.display(), given.publisher))?;
        console
            .remark(&format!("hand it to everybody who trusts you; they run: palyra skills import {}", out.display()));
        console.remark("sign with the new key from now on, and keep the old one: it can still revoke itself");
    } else {
        console.document(&json!({"file": out, "publisher": given.publisher.to_string(), "from": from, "to": to}))?;
    }
    Ok(ExitCode::Ok)
}

pub(super) fn revoke(given: &RevokeArguments, context: &Context) -> Result<ExitCode, CliError> {
    if given.revoked_keys.is_empty() && given.archives.is_empty() {
        return Err(CliError::Usage {
            reason: "there is nothing to take back".to_owned(),
            usage: Some("name it with --revoked-key KEY or --archive FILE".to_owned()),
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
        let what = format!("list {} of {}, with {keys} and {archives}", list.number, list.publisher);
        console.line(&format!("{}: {what}", path.display()))?;
        let shown = path.display();
        console.remark(&format!("publish it: palyra skills registry publish DIRECTORY {shown} --key REGISTRY-KEY"));
        console.remark(&format!("or hand it to everybody who trusts you; they run: palyra skills import {shown}"));
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
        reason: format!("it is of the publisher `{found}` and not of `{}`", given.publisher),
        usage: Some("a publisher takes back its own keys and archives alone".to_owned()),
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
        console
            .line(&format!("{publisher} signs with {key} from now on; nothing new is accepted under its old key"))?;
    } else if done.revoked_keys.is_empty() && done.revoked_archives.is_empty() {
        console.line(&format!("the list of {publisher} takes nothing back that was not taken back before"))?;
    }
    done.revoked_keys.iter().try_for_each(|key| console.line(&format!("{publisher} takes back the key {key}")))?;
    let archives = done.revoked_archives.iter();
    archives
        .map(|content| format!("{publisher} takes back the archive {content}"))
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
    context.console.line(&format!("{} counts no more, whoever signs with it", done.key_id))?;
    held(&done.quarantined, context)
}

fn held(skills: &[String], context: &Context) -> Result<ExitCode, CliError> {
    skills.iter().try_for_each(|skill| context.console.line(&format!("{skill} is in quarantine")))?;
    Ok(ExitCode::Ok)
}

fn write(path: &Path, envelope: &Envelope) -> Result<(), CliError> {
    std::fs::write(path, envelope.to_bytes()?).map_err(super::file("write", path))
}
