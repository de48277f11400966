//! `palyra tokens …`.

mod create;
mod list;

use clap::{Args, Subcommand};
use palyra_client::api::{RotateTokenParams, TokenSecretResponse, TokenView};
use palyra_client::command::{About, Command, TokenName};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;
use crate::numbers;
use crate::render::text::shortened;

const EXAMPLES: &str = "\
Programs send a token as `Authorization: Bearer …`. Its secret is shown once, when it is created or rotated.

Examples:
  palyra tokens create --name ci --role operator --days 30
  palyra tokens create --name dashboard --role viewer --scope runs:read
  palyra tokens revoke 3kTMd0cQx1Zv9LbA";

/// What to do with API tokens.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum TokensCommand {
    /// Create a token
    Create(create::CreateArguments),
    /// List tokens, newest first
    List,
    /// Give a token a new secret
    Rotate(RotateArguments),
    /// Revoke a token
    Revoke(TokenArgument),
}

/// Which token.
#[derive(Debug, Args)]
pub(crate) struct TokenArgument {
    /// Its id, as `palyra tokens list` shows it
    #[arg(value_name = "TOKEN")]
    token: String,
}

/// Which token, and for how long the old secret still works.
#[derive(Debug, Args)]
pub(crate) struct RotateArguments {
    #[command(flatten)]
    token: TokenArgument,
    /// Keep the old secret valid for this many minutes
    #[arg(long, value_name = "MINUTES", value_parser = numbers::at_least::<u32>(0))]
    overlap: Option<u32>,
}

pub(super) async fn execute(command: TokensCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    match command {
        TokensCommand::Create(arguments) => {
            let made = client.execute(&Command::TokenCreate(arguments.params())).await?;
            show_secret(&made, context)
        }
        TokensCommand::List => list::execute(&client, context).await,
        TokensCommand::Rotate(arguments) => {
            let params = RotateTokenParams { overlap_minutes: arguments.overlap };
            let about = About { target: token_name(arguments.token.token)?, params };
            show_secret(&client.execute(&Command::TokenRotate(about)).await?, context)
        }
        TokensCommand::Revoke(arguments) => {
            let about = About::only(token_name(arguments.token)?);
            let token: TokenView = client.execute(&Command::TokenRevoke(about)).await?;
            if context.console.is_text() {
                context.console.line(&format!("Revoked token {}", token.token_id))?;
            } else {
                context.console.document(&token)?;
            }
            Ok(ExitCode::Ok)
        }
    }
}

/// The id of a token. Whoever gives its name is told that it is none.
fn token_name(given: String) -> Result<TokenName, CliError> {
    if !given.is_empty() && given.len() <= 64 && given.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(TokenName(given));
    }
    let message = format!("`{}` is not the id of a token", shortened(&given, 80));
    let hint = "`palyra tokens list` shows the ids beside the names".to_owned();
    Err(CliError::Named { message, hint })
}

/// The secret alone on standard output, so that it can be put into a variable.
fn show_secret(made: &TokenSecretResponse, context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    if console.is_text() {
        console.remark(&format!("token {}; its secret is shown only once:", made.token.token_id));
        console.line(&made.secret)?;
    } else {
        console.document(made)?;
    }
    Ok(ExitCode::Ok)
}
