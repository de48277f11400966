//! `palyra approvals patterns`: what was agreed to for longer than once.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ListPatternsParams, ListPatternsResponse};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render;

/// Which patterns.
#[derive(Debug, Args)]
pub(crate) struct PatternsArguments {
    /// Include revoked and expired ones
    #[arg(long)]
    all: bool,
}

pub(super) async fn execute(
    arguments: &PatternsArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let page = client.patterns(&ListPatternsParams { all: arguments.all.then_some(true) }).await?;
    print(&page, context)?;
    Ok(ExitCode::Ok)
}

/// Prints patterns, here and after one was taken back.
pub(super) fn print(page: &ListPatternsResponse, context: &Context) -> Result<(), CliError> {
    let console = &context.console;
    if !console.is_text() {
        return console.list(page, &page.patterns);
    }
    if page.patterns.is_empty() {
        console.remark("no patterns are allowed");
    }
    render::approvals::patterns(&page.patterns).iter().try_for_each(|line| console.line(line))
}
