//! `palyra runs undo RUN`.

use std::path::PathBuf;

use clap::Args;
use palyra_client::api::{FileChangeView, UndoAction, UndoResponse, UndoRunParams, UndoneFile};
use palyra_client::{Client, ClientError};
use palyra_common::{Digest, ExitCode, RunId, StableErrorEnvelope, UndoConflictMode, UndoObstacle, command_line};

use super::RunArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::{counted, shortened};

/// What to undo.
#[derive(Debug, Args)]
pub(crate) struct UndoArguments {
    #[command(flatten)]
    run: RunArgument,
    /// Only these files and directories of the run's workspace
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// What happens if someone else has changed some of the files: `refuse` undoes nothing, `skip` leaves these as they are, `overwrite` undoes these, too
    #[arg(long, value_name = "MODE", default_value_t)]
    conflicts: UndoConflictMode,
}

pub(super) async fn execute(
    arguments: &UndoArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let id = arguments.run.resolve(client).await?;
    let console = &context.console;
    let params = UndoRunParams { paths: arguments.paths.clone(), conflicts: arguments.conflicts };
    let undone = match client.undo_part_of_run(id, &params).await {
        Err(ClientError::Refused(mut envelope)) if envelope.code == "undo_conflict" => {
            if console.is_text() {
                contents_before(id, client, context).await?.iter().for_each(|line| console.remark(line));
            }
            envelope.recovery_hint = Some(ways_out(id, &arguments.paths, &envelope));
            return Err(ClientError::Refused(envelope).into());
        }
        undone => undone?,
    };
    if console.is_text() {
        lines(id, &undone).iter().try_for_each(|line| console.line(line))?;
        replaced_contents(arguments.conflicts, &undone, context)?.iter().for_each(|line| console.remark(line));
    } else {
        console.document(&undone)?;
    }
    Ok(ExitCode::Ok)
}

/// What was done, and what was not.
fn lines(id: RunId, undone: &UndoResponse) -> Vec<String> {
    let mut lines = Vec::new();
    if undone.files.is_empty() {
        lines.push(format!("run {id}: there was nothing to undo"));
    } else {
        let removed = undone.files.iter().filter(|file| file.action == UndoAction::Removed).count();
        let counts = match (undone.files.len() - removed, removed) {
            (0, removed) => format!("{} removed", counted(removed, "file")),
            (restored, 0) => format!("{} restored", counted(restored, "file")),
            (restored, removed) => format!("{} restored, {removed} removed", counted(restored, "file")),
        };
        let what = if undone.remaining.is_empty() { "undid" } else { "partly undid" };
        lines.push(format!("{what} run {id}: {counts}"));
    }
    for file in &undone.files {
        let what = match file.action {
            UndoAction::Restored => "restored to what it was before the run",
            UndoAction::Removed => "removed; it was not there before the run",
        };
        lines.push(format!("  {}: {what}", shortened(&file.path, 200)));
    }
    for file in &undone.remaining {
        let why = match file.obstacle {
            UndoObstacle::NotSelected => "not asked for",
            UndoObstacle::ChangedSince => "changed since the run",
            UndoObstacle::ChangedByOthers => "changed by someone else during a call",
            UndoObstacle::CannotReplace => "it cannot be replaced",
            UndoObstacle::ContentMissing => "its content from before the run is gone",
        };
        lines.push(format!("  {}: left as it is; {why}", shortened(&file.path, 200)));
    }
    lines
}

/// The commands by which somebody can go on after a conflict.
fn ways_out(id: RunId, paths: &[String], envelope: &StableErrorEnvelope) -> String {
    let run = id.to_string();
    let command = |mode: UndoConflictMode| {
        let start = ["palyra", "runs", "undo", &run, "--conflicts", mode.as_str()];
        // A path may look like an option.
        let separator = (!paths.is_empty()).then_some("--");
        command_line(start.into_iter().chain(separator).chain(paths.iter().map(String::as_str)))
    };
    let others = envelope.details.as_ref().and_then(|details| details.get("others")?.as_u64()).unwrap_or(0);
    let overwrite = command(UndoConflictMode::Overwrite);
    let all = format!("`{overwrite}` undoes these files, too, and keeps what they hold as artifacts");
    match usize::try_from(others) {
        Ok(0) | Err(_) => all,
        Ok(others) => {
            format!("`{}` undoes the other {}; {all}", command(UndoConflictMode::Skip), counted(others, "file"))
        }
    }
}

/// Where the files of a run are kept as they were before it, for whoever restores them by hand.
async fn contents_before(id: RunId, client: &Client, context: &Context) -> Result<Vec<String>, CliError> {
    let Some(kept) = KeptContents::of(context)? else { return Ok(Vec::new()) };
    let line = |change: &FileChangeView| kept.line(&change.path, &change.before?);
    let lines = client.run(id).await?.changes.iter().filter_map(line).collect();
    Ok(headed("the versions from before the run, to restore by hand:", lines))
}

/// Where the contents are kept that an undo replaced and that may have been somebody else's work.
fn replaced_contents(
    conflicts: UndoConflictMode,
    undone: &UndoResponse,
    context: &Context,
) -> Result<Vec<String>, CliError> {
    let Some(kept) = KeptContents::of(context)? else { return Ok(Vec::new()) };
    let may_be_others = |file: &&UndoneFile| conflicts == UndoConflictMode::Overwrite || !file.attribution.is_written();
    let line = |file: &UndoneFile| kept.line(&file.path, &file.replaced?);
    let lines = undone.files.iter().filter(may_be_others).filter_map(line).collect();
    Ok(headed("the versions that were replaced, in case they hold someone else's work:", lines))
}

/// The contents that a daemon on this machine keeps. Those of a daemon elsewhere are out of reach.
struct KeptContents {
    artifacts: PathBuf,
}

impl KeptContents {
    fn of(context: &Context) -> Result<Option<Self>, CliError> {
        if context.address().is_some() {
            return Ok(None);
        }
        Ok(Some(Self { artifacts: context.state_root()?.join("artifacts") }))
    }

    /// Where a content of a file is; `None` if it is not there.
    fn line(&self, path: &str, content: &Digest) -> Option<String> {
        let digest = content.to_hex();
        let kept = self.artifacts.join(digest.get(..2)?).join(&digest);
        kept.is_file().then(|| format!("  {}: {}", shortened(path, 200), kept.display()))
    }
}

/// These lines below a first one, if there are any.
fn headed(first: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { lines } else { [vec![first.to_owned()], lines].concat() }
}
