//! `palyra runs envelope RUN`: what a run is meant to do, shown and changed by a person.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{EditEnvelopeParams, IntentView};
use palyra_common::{DataOrigin, ExitCode};
use serde::Serialize;

use super::RunArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render;

const EXAMPLES: &str = "\
Before it reads anything that others wrote, a run states which effects outside its workspace the
task needs: the tool, the values that you named, how often, and whose data may go there. These are its
mandates. Anything else is asked about first, however plausible it looks. Only a person widens them:
with this command. A tool without --to may use any destination; where untrusted text chose the
destination you are asked all the same.

Examples:
  palyra runs envelope last                                              show it
  palyra runs envelope last --allow mcp.mail.send --to ada@example.org   allow this as well
  palyra runs envelope last --remove mcp.mail.send                       no longer allow that";

/// Which run, and what is meant.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EnvelopeArguments {
    #[command(flatten)]
    run: RunArgument,
    /// Add a tool
    #[arg(long, value_name = "TOOL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    allow: Option<String>,
    /// A destination for it, such as a recipient or a host (repeatable)
    #[arg(long, value_name = "DEST", requires = "allow")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    to: Vec<String>,
    /// How often; as often as the work needs by default
    #[arg(long, value_name = "N", requires = "allow", value_parser = numbers::at_least::<u32>(1))]
    times: Option<u32>,
    /// A place whose data it may carry there: workspace, mcp.SERVER, skill.ID (repeatable)
    #[arg(long, value_name = "PLACE", requires = "allow")]
    from: Vec<DataOrigin>,
    /// Remove a tool (repeatable)
    #[arg(long, value_name = "TOOL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    remove: Vec<String>,
}

/// The envelope as a document of its own.
#[derive(Serialize)]
struct Envelope<'a> {
    run_id: palyra_common::RunId,
    mode: palyra_common::RunMode,
    envelope: &'a [IntentView],
}

pub(super) async fn execute(
    arguments: EnvelopeArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let id = arguments.run.resolve(client).await?;
    let destinations: BTreeSet<String> = arguments.to.into_iter().collect();
    let from = arguments.from.into_iter().collect();
    let granted = |tool| IntentView { tool, destinations, arguments: BTreeMap::new(), times: arguments.times, from };
    let add: Vec<IntentView> = arguments.allow.map(granted).into_iter().collect();
    let edit = EditEnvelopeParams { add, remove: arguments.remove };
    let detail = if edit == EditEnvelopeParams::default() {
        client.run(id).await?
    } else {
        client.edit_envelope(id, &edit).await?
    };
    let console = &context.console;
    if console.is_text() {
        render::intents::lines(&detail.envelope).iter().try_for_each(|line| console.line(line))?;
    } else {
        console.document(&Envelope { run_id: detail.run.run_id, mode: detail.mode, envelope: &detail.envelope })?;
    }
    Ok(ExitCode::Ok)
}
