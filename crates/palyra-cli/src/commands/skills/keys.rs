//! `palyra skills keygen`: a key to sign skills with.

use std::path::PathBuf;

use clap::Args;
use palyra_common::ExitCode;
use palyra_skills::PublisherKey;
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

/// Where the key goes.
#[derive(Debug, Args)]
pub(crate) struct KeygenArguments {
    /// File for the private key; the public one goes beside it, with `.pub` at its end
    #[arg(value_name = "FILE", default_value = "publisher.key")]
    file: PathBuf,
}

pub(super) fn execute(given: &KeygenArguments, context: &Context) -> Result<ExitCode, CliError> {
    let key = PublisherKey::generate()?;
    key.save(&given.file)?;
    let mut public_path = given.file.clone().into_os_string();
    public_path.push(".pub");
    let public_path = PathBuf::from(public_path);
    let public = key.public();
    std::fs::write(&public_path, format!("{public}\n")).map_err(super::file("write", &public_path))?;
    let console = &context.console;
    if console.is_text() {
        console.line(&format!("private key  {}  (keep it to yourself)", given.file.display()))?;
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
