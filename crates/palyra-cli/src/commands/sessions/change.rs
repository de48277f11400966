//! `palyra sessions new|rename|archive|restore|fork|compact`: what changes a session.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{
    ArchiveSessionParams, CompactionView, ForkSessionParams, NewSessionParams, RenameSessionParams,
    RevertCompactionResponse, SessionSettingsView, SessionView,
};
use palyra_client::command::{About, Command};
use palyra_common::{ExitCode, RunMode};

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::text::shortened;
use crate::resolve;

/// Which session.
#[derive(Debug, Args)]
pub(crate) struct SessionArgument {
    /// An id, its beginning or its end, a key, or `last`
    #[arg(value_name = "SESSION")]
    pub(super) session: String,
}

/// A new session.
#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// A title for people
    #[arg(long)]
    title: Option<String>,
    /// A key of your own to find it by
    #[arg(long)]
    key: Option<String>,
    /// How untrusted results are treated in its runs: open, guarded or strict
    #[arg(long)]
    mode: Option<RunMode>,
    /// The agent of its runs
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

/// Another title.
#[derive(Debug, Args)]
pub(crate) struct RenameArguments {
    #[command(flatten)]
    session: SessionArgument,
    /// The title
    #[arg(value_name = "TITLE")]
    title: String,
}

/// Where a new session parts from another.
#[derive(Debug, Args)]
pub(crate) struct ForkArguments {
    #[command(flatten)]
    session: SessionArgument,
    /// The last run that both share [default: all of them]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// The last position on that run's tape that both share
    #[arg(long, value_name = "POSITION", requires = "run", value_parser = numbers::at_least::<u64>(1))]
    seq: Option<u64>,
    /// A title for the new session
    #[arg(long)]
    title: Option<String>,
}

/// Which session, and whether to do it.
#[derive(Debug, Args)]
pub(crate) struct CompactArguments {
    #[command(flatten)]
    session: SessionArgument,
    /// Apply it instead of only showing it
    #[arg(long)]
    apply: bool,
    /// Revert the newest summary, so that later runs see the original exchanges again
    #[arg(long, conflicts_with = "apply")]
    revert: bool,
}

pub(super) async fn new(arguments: NewArguments, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let NewArguments { title, key, mode, agent } = arguments;
    let settings = agent.map(|agent| SessionSettingsView { agent: Some(agent), ..SessionSettingsView::default() });
    let params = NewSessionParams { session_key: key, binding: None, title, mode, settings };
    report(&client.execute(&Command::SessionNew(params)).await?, "created", context)
}

pub(super) async fn rename(
    arguments: RenameArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let target = resolve::session(client, &arguments.session.session).await?;
    let about = About { target, params: RenameSessionParams { title: arguments.title } };
    report(&client.execute(&Command::SessionRename(about)).await?, "renamed", context)
}

/// Whether a session is put away or taken out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Archive {
    Away,
    Back,
}

pub(super) async fn archive(
    arguments: &SessionArgument,
    archive: Archive,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let target = resolve::session(client, &arguments.session).await?;
    let (archived, word) = match archive {
        Archive::Away => (true, "archived"),
        Archive::Back => (false, "restored"),
    };
    let about = About { target, params: ArchiveSessionParams { archived } };
    report(&client.execute(&Command::SessionArchive(about)).await?, word, context)
}

pub(super) async fn fork(arguments: ForkArguments, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let target = resolve::session(client, &arguments.session.session).await?;
    let run_id = match &arguments.run {
        Some(run) => Some(resolve::run(client, run).await?),
        None => None,
    };
    let params = ForkSessionParams { run_id, seq: arguments.seq, title: arguments.title };
    report(&client.execute(&Command::SessionFork(About { target, params })).await?, "forked", context)
}

pub(super) async fn compact(
    arguments: &CompactArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let about = About::only(resolve::session(client, &arguments.session.session).await?);
    let console = &context.console;
    if arguments.revert {
        let reverted: RevertCompactionResponse = client.execute(&Command::SessionCompactRevert(about)).await?;
        if console.is_text() {
            let (whole, still) = (reverted.whole_again, reverted.still_summarised);
            console
                .line(&format!("reverted: later runs see {whole} exchanges in full again; {still} stay summarised"))?;
        } else {
            console.document(&reverted)?;
        }
        return Ok(ExitCode::Ok);
    }
    let command =
        if arguments.apply { Command::SessionCompactApply(about) } else { Command::SessionCompactPreview(about) };
    let plan: CompactionView = client.execute(&command).await?;
    if !console.is_text() {
        console.document(&plan)?;
        return Ok(ExitCode::Ok);
    }
    let (word, kept, gone) = (if plan.applied { "are" } else { "would be" }, plan.kept.len(), plan.summarised.len());
    console.line(&format!("{gone} exchanges {word} summarised, {kept} kept in full"))?;
    console.line(&format!("later runs see {} instead of {} bytes", plan.bytes_after, plan.bytes_before))?;
    console.line(&format!("asked:\n{}", plan.asked.trim_end()))?;
    let by = if plan.method == "model" { "summarised by a model" } else { "first sentences" };
    console.line(&format!("answered, {by}:\n{}", plan.answered.trim_end()))?;
    plan.note.iter().for_each(|note| console.remark(&format!("note: {note}")));
    if plan.applied {
        console.remark("the originals stay on the journal; to revert, use --revert");
    } else {
        console.remark("to apply it, add --apply; the originals stay on the journal");
    }
    Ok(ExitCode::Ok)
}

fn report(session: &SessionView, word: &str, context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    if console.is_text() {
        console.line(&format!("session {} {word}: {}", session.session_id, shortened(&session.title, 80)))?;
    } else {
        console.document(session)?;
    }
    Ok(ExitCode::Ok)
}
