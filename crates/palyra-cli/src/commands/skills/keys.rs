//! `palyra skills keygen`: a key to sign skills with; and keys as people name them.

use std::path::{Path, PathBuf};

use clap::Args;
use palyra_common::ExitCode;
use palyra_skills::{KeyId, PublicKey, PublisherKey, SkillError};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

/// Where the key goes.
#[derive(Debug, Args)]
pub(crate) struct KeygenArguments {
    /// File for the private key; the public key is written next to it with the extension `.pub`
    #[arg(value_name = "FILE", default_value = "publisher.key")]
    file: PathBuf,
}

pub(super) fn execute(given: &KeygenArguments, context: &Context) -> Result<ExitCode, CliError> {
    let public_path = super::next::public_half(&given.file);
    if public_path.exists() {
        // Asked first: a private key whose public half belongs to another would be found out much later.
        let source = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "the file already exists");
        return Err(SkillError::File { doing: "write", path: public_path, source }.into());
    }
    let key = PublisherKey::generate()?;
    key.save(&given.file)?;
    let public = key.public();
    std::fs::write(&public_path, format!("{public}\n")).map_err(super::file("write", &public_path))?;
    let console = &context.console;
    if console.is_text() {
        console.line(&format!("private key  {}  (keep it secret)", given.file.display()))?;
        console.line(&format!("public key   {}  {public}", public_path.display()))?;
        console.line(&format!("key id       {}", public.id()))?;
    } else {
        console.document(&json!({
            "private_key_file": given.file,
            "public_key_file": public_path,
            "public_key": public.to_string(),
            "key_id": public.id().to_string(),
        }))?;
    }
    Ok(ExitCode::Ok)
}

/// A public key, or the file that holds one.
pub(super) fn public_key(text: &str) -> Result<PublicKey, CliError> {
    let path = Path::new(text);
    let key = match std::fs::read_to_string(path) {
        Ok(key) => key,
        // What is no path is not repeated as one.
        Err(_) if text.starts_with("ed25519:") || text.contains("PRIVATE KEY") => text.to_owned(),
        Err(error) => return Err(super::file("read", path)(error)),
    };
    Ok(key.trim().parse()?)
}

/// A key's id from what a person has of it.
pub(super) fn key_id(text: &str) -> Result<KeyId, CliError> {
    match text.parse::<KeyId>() {
        Ok(id) => Ok(id),
        Err(error) if text.starts_with("key:") => Err(error.into()),
        Err(_) => Ok(public_key(text)?.id()),
    }
}
