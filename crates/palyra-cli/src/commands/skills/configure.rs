//! `palyra skills set`: what a skill may use.

use std::collections::BTreeMap;

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ConfigureSkillParams, SkillDetail};
use palyra_client::command::{About, Command, SkillName};
use palyra_common::ExitCode;

use super::change::SkillArgument;
use super::info;
use crate::context::Context;
use crate::error::CliError;

/// What a skill may use.
#[derive(Debug, Args)]
pub(crate) struct ConfigureArguments {
    #[command(flatten)]
    skill: SkillArgument,
    /// Set a setting, as KEY=VALUE; an empty value clears it
    #[arg(long = "config", value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// Where to find a secret, as NAME=env:VARIABLE, NAME=file:PATH or NAME=exec:COMMAND; never the secret itself
    #[arg(long = "secret", value_name = "NAME=REFERENCE")]
    secrets: Vec<String>,
    /// Let it read the value of this secret, if its manifest asks for that; may be repeated
    #[arg(long, value_name = "NAME")]
    reveal: Vec<String>,
    /// Allow only this HTTP rule of its manifest; may be repeated
    #[arg(long = "only-http", value_name = "RULE")]
    http: Vec<String>,
    /// Deny all HTTP access
    #[arg(long, conflicts_with = "http")]
    no_http: bool,
}

pub(super) async fn execute(
    client: &Client,
    given: ConfigureArguments,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let params = ConfigureSkillParams {
        config: pairs("--config", &given.config)?,
        secrets: pairs("--secret", &given.secrets)?,
        reveal: (!given.reveal.is_empty()).then_some(given.reveal),
        http: (given.no_http || !given.http.is_empty()).then_some(given.http),
        channels: None,
    };
    let about = About { target: SkillName(given.skill.skill), params };
    let detail: SkillDetail = client.execute(&Command::SkillConfigure(about)).await?;
    info::show(&detail, context)?;
    Ok(ExitCode::Ok)
}

/// Splits `NAME=VALUE` pairs.
pub(super) fn pairs(option: &str, given: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let split = |pair: &String| {
        // The value is not repeated: it may be a pasted secret.
        let (key, value) = pair.split_once('=').ok_or_else(|| CliError::Usage {
            reason: format!("`{option}` expects NAME=VALUE"),
            usage: Some(format!("palyra skills set SKILL {option} NAME=VALUE")),
        })?;
        Ok((key.to_owned(), value.to_owned()))
    };
    given.iter().map(split).collect()
}
