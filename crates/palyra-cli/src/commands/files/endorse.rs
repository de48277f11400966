//! `palyra files endorse [PATH]…`: shows what is endorsed before anybody is asked.

use std::path::{Path, PathBuf};

use clap::Args;
use palyra_client::api::{EndorseFileParams, EndorsedFileView, ListFileLabelsParams, ListFileLabelsResponse};
use palyra_client::command::Command;
use palyra_client::{Client, ClientError};
use palyra_common::{Digest, ExitCode, ToStableError as _};

use super::show::{Found, Shown, agreed, agreed_to_all, found_at};
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
Without a path it goes through the instruction files of the directory, such as AGENTS.md, that are not followed yet. What is endorsed is the content,
not the name: it is trusted wherever it lies, and no later version of the file is. Of a directory, all present files are endorsed with one question.
Only a person does this; a token of a program is refused.

Examples:
  palyra files endorse
  palyra files endorse AGENTS.md
  palyra files endorse vendor/parser
  palyra files endorse notes/today.md --yes --digest sha256:9f86…";

/// Which file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EndorseArguments {
    /// A file or a directory [default: the instruction files that are not followed]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The workspace that it belongs to [default: the current directory]
    #[arg(long, value_name = "DIRECTORY")]
    workspace: Option<PathBuf>,
    /// Do not show it and do not ask; requires --digest
    #[arg(long, requires = "digest")]
    yes: bool,
    /// The digest of what you looked at; another content is refused
    #[arg(long, value_name = "DIGEST", requires = "paths")]
    digest: Option<Digest>,
}

pub(super) async fn execute(arguments: EndorseArguments, context: &Context) -> Result<ExitCode, CliError> {
    let EndorseArguments { mut paths, workspace, yes, digest } = arguments;
    let workspace = super::absolute(workspace.unwrap_or_else(|| PathBuf::from(".")));
    if digest.is_some() && paths.len() > 1 {
        return Err(CliError::Usage { reason: "--digest is that of one file".to_owned(), usage: None });
    }
    let client = launcher::connect(context).await?;
    if paths.is_empty() {
        paths = withheld(&client, &workspace).await?;
        if paths.is_empty() {
            context.console.remark("no instruction file here waits to be endorsed");
        }
    }
    for path in paths {
        let agreed_to = match (yes, digest) {
            (true, Some(digest)) => vec![Found { path, digest }],
            (_, wanted) => look(&path, wanted, context)?,
        };
        endorse(&client, &workspace, agreed_to, context).await?;
    }
    Ok(ExitCode::Ok)
}

/// The instruction files of a workspace that are not followed.
async fn withheld(client: &Client, workspace: &str) -> Result<Vec<PathBuf>, CliError> {
    let params = ListFileLabelsParams { workspace: Some(workspace.to_owned()) };
    let page: ListFileLabelsResponse = client.execute(&Command::FileLabels(params)).await?;
    let waits = page.instructions.into_iter().filter(|file| file.withheld.is_some() && file.digest.is_some());
    Ok(waits.map(|file| Path::new(workspace).join(file.path)).collect())
}

/// Shows what is at a path and asks; what was shown if the answer is yes.
fn look(path: &Path, wanted: Option<Digest>, context: &Context) -> Result<Vec<Found>, CliError> {
    let usage = |reason: String| CliError::Usage { reason, usage: None };
    let (found, answer) = match found_at(path).map_err(usage)? {
        Shown::File { found, bytes } => {
            if wanted.is_some_and(|wanted| wanted != found.digest) {
                return Err(usage(format!("`{}` has the digest {}", path.display(), found.digest)));
            }
            let answer = agreed(&found, &bytes, context)?;
            (vec![found], answer)
        }
        Shown::Directory(found) => {
            let answer = agreed_to_all(path, &found, context)?;
            (found, answer)
        }
    };
    if answer {
        return Ok(found);
    }
    context.console.remark(&format!("{} is not endorsed", path.display()));
    Ok(Vec::new())
}

/// Endorses what somebody agreed to. Of several files, those that were endorsed before are passed over.
pub(crate) async fn endorse(
    client: &Client,
    workspace: &str,
    found: Vec<Found>,
    context: &Context,
) -> Result<(), CliError> {
    let several = found.len() > 1;
    let mut done = 0_usize;
    for Found { path, digest } in found {
        let params = EndorseFileParams { workspace: workspace.to_owned(), path: super::absolute(path), digest };
        let endorsed: Result<EndorsedFileView, ClientError> = client.execute(&Command::FileEndorse(params)).await;
        match endorsed {
            Ok(view) if several && context.console.is_text() => {
                drop(view);
                done += 1;
            }
            Ok(view) if context.console.is_text() => {
                context.console.line(&format!("{} is trusted from now on ({})", view.path, view.digest))?;
            }
            Ok(view) => context.console.document(&view)?,
            Err(error) if several && error.to_stable().code == "file_not_labelled" => {}
            Err(error) => return Err(error.into()),
        }
    }
    if several && context.console.is_text() {
        context.console.line(&format!("{done} files are trusted from now on"))?;
    }
    Ok(())
}
