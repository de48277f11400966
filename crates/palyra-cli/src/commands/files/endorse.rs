//! `palyra files endorse PATH`: shows what is endorsed before anybody is asked.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Args;
use palyra_client::api::{EndorseFileParams, FileLabelView};
use palyra_client::command::Command;
use palyra_common::{Digest, ExitCode};

use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
What is endorsed is the content, not the name: it is trusted wherever it lies, and what a run writes to the file later is not covered. Only a
person does this; a token of a program is refused.

Examples:
  palyra files endorse AGENTS.md
  palyra files endorse notes/today.md --yes --digest sha256:9f86…";

/// Which file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EndorseArguments {
    /// The file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The workspace that it belongs to [default: the current directory]
    #[arg(long, value_name = "DIRECTORY")]
    workspace: Option<PathBuf>,
    /// Do not show it and do not ask; requires --digest
    #[arg(long, requires = "digest")]
    yes: bool,
    /// The digest of what you looked at; another content is refused
    #[arg(long, value_name = "DIGEST")]
    digest: Option<Digest>,
}

pub(super) async fn execute(arguments: EndorseArguments, context: &Context) -> Result<ExitCode, CliError> {
    let EndorseArguments { path, workspace, yes, digest } = arguments;
    let digest = match (yes, digest) {
        (true, Some(digest)) => digest,
        (_, wanted) => match shown_and_agreed(&path, wanted, context)? {
            Some(digest) => digest,
            None => {
                context.console.remark("not endorsed");
                return Ok(ExitCode::Ok);
            }
        },
    };
    let params = EndorseFileParams {
        workspace: super::absolute(workspace.unwrap_or_else(|| PathBuf::from("."))),
        path: super::absolute(path),
        digest,
    };
    let client = launcher::connect(context).await?;
    let view: FileLabelView = client.execute(&Command::FileEndorse(params)).await?;
    if context.console.is_text() {
        context.console.line(&format!("{} is trusted from now on ({})", view.path, view.digest))?;
    } else {
        context.console.document(&view)?;
    }
    Ok(ExitCode::Ok)
}

/// Shows the file and asks; the digest of what was shown if the answer is yes.
fn shown_and_agreed(
    path: &std::path::Path,
    wanted: Option<Digest>,
    context: &Context,
) -> Result<Option<Digest>, CliError> {
    let usage = |reason: String| CliError::Usage { reason, usage: None };
    let bytes = std::fs::read(path).map_err(|error| usage(format!("cannot read `{}`: {error}", path.display())))?;
    let digest = Digest::of(&bytes);
    if wanted.is_some_and(|wanted| wanted != digest) {
        return Err(usage(format!("`{}` has the digest {digest}", path.display())));
    }
    let console = &context.console;
    if !console.is_text() || !std::io::stdin().is_terminal() {
        return Err(usage(format!("nobody can be asked here; look at the file and give --yes --digest {digest}")));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => console.prose(&plain(text))?,
        Err(_) => console.line(&format!("({} bytes, not text)", bytes.len()))?,
    }
    console.line(&format!("--- {}, {} bytes, {digest}", path.display(), bytes.len()))?;
    console.prompt("Runs will trust exactly this, wherever it lies. Endorse it? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|source| CliError::Output { source })?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes").then_some(digest))
}
