//! `palyra workspaces …`.

mod list;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use palyra_client::api::{WorkspaceGrantParams, WorkspaceGrantView};
use palyra_client::command::Command;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
You work in any directory of this machine. Tokens and devices work only below directories that were granted to their principal, here or with
`workspaces.roots` in the configuration.

Examples:
  palyra workspaces grant user:ci /srv/ci
  palyra workspaces list
  palyra workspaces revoke user:ci /srv/ci";

/// What to do with granted workspaces.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum WorkspacesCommand {
    /// Let a principal work in a directory and below it
    Grant(GrantArguments),
    /// Take a granted directory back
    Revoke(GrantArguments),
    /// List granted directories
    List,
}

/// Which directory, for whom.
#[derive(Debug, Args)]
pub(crate) struct GrantArguments {
    /// Who, such as `user:ci`; a bare name means a user of that name
    #[arg(value_name = "PRINCIPAL")]
    principal: String,
    /// The directory
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

impl GrantArguments {
    fn params(self) -> WorkspaceGrantParams {
        // A directory that is gone can still be taken back, so what cannot be made absolute is left to the daemon to judge.
        let path = std::path::absolute(&self.directory).unwrap_or(self.directory);
        WorkspaceGrantParams { principal: self.principal, path: written(&path) }
    }
}

fn written(path: &Path) -> String {
    path.display().to_string()
}

pub(super) async fn execute(command: WorkspacesCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    let (done, view) = match command {
        WorkspacesCommand::List => return list::execute(&client, context).await,
        WorkspacesCommand::Grant(arguments) => {
            let view: WorkspaceGrantView = client.execute(&Command::WorkspaceGrant(arguments.params())).await?;
            ("may work in", view)
        }
        WorkspacesCommand::Revoke(arguments) => {
            let view: WorkspaceGrantView = client.execute(&Command::WorkspaceRevoke(arguments.params())).await?;
            ("may no longer work in", view)
        }
    };
    if context.console.is_text() {
        context.console.line(&format!("{} {done} {}", view.principal, view.path))?;
    } else {
        context.console.document(&view)?;
    }
    Ok(ExitCode::Ok)
}
