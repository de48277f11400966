//! `palyra approvals show APPROVAL`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ApprovalView, ListPatternsParams, PatternView};
use palyra_common::{ApprovalScope, ExitCode};
use serde::Serialize;

use super::which;
use crate::context::Context;
use crate::error::CliError;
use crate::render;

/// Which question.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The approval's id, its beginning or its end
    #[arg(value_name = "APPROVAL")]
    approval: String,
}

/// An approval with what it agreed to.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    approval: &'a ApprovalView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'a PatternView>,
}

pub(super) async fn execute(
    arguments: &ShowArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let approval = client.approval(which::approval(client, &arguments.approval).await?).await?;
    let lasts = approval.answer.as_ref().is_some_and(|answer| answer.scope != ApprovalScope::Once);
    let patterns =
        if lasts { client.patterns(&ListPatternsParams { all: Some(true) }).await?.patterns } else { Vec::new() };
    let pattern = patterns.iter().find(|pattern| pattern.approval_id == approval.approval_id);
    if context.console.is_text() {
        render::approvals::page(&approval, pattern).iter().try_for_each(|line| context.console.line(line))?;
    } else {
        context.console.document(&Shown { approval: &approval, pattern })?;
    }
    Ok(ExitCode::Ok)
}
