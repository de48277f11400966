//! `palyra files labels`.

use std::path::PathBuf;

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{FileLabelView, ListFileLabelsParams, ListFileLabelsResponse};
use palyra_client::command::Command;
use palyra_common::ExitCode;

use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};

/// Which files.
#[derive(Debug, Args)]
pub(crate) struct LabelsArguments {
    /// Only below this directory
    #[arg(long, value_name = "DIRECTORY")]
    workspace: Option<PathBuf>,
}

pub(super) async fn execute(
    arguments: LabelsArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let workspace = arguments.workspace.map(super::absolute);
    let params = ListFileLabelsParams { workspace: workspace.clone() };
    let page: ListFileLabelsResponse = client.execute(&Command::FileLabels(params)).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.files)?;
        return Ok(ExitCode::Ok);
    }
    if let Some(why) = &page.foreign {
        console.line(&format!(
            "what lies here is untrusted: it {}; if it is yours, name it in `workspaces.trusted`",
            one_line(why)
        ))?;
    }
    for file in &page.instructions {
        let state = file
            .withheld
            .as_ref()
            .map_or_else(|| "followed".to_owned(), |why| format!("not followed: {}", one_line(why)));
        console.line(&format!("{} is {state}", one_line(&file.path)))?;
    }
    if page.files.is_empty() {
        let below = workspace.map(|directory| format!(" below `{directory}`")).unwrap_or_default();
        console.remark(&format!("no file{below} that a run wrote is untrusted, or each was endorsed"));
    } else {
        let rows: Vec<_> = page.files.iter().map(row).collect();
        let lines = table::lines(["FILE", "TRUST", "MADE FROM", "RUN", "WRITTEN (UTC)"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn row(file: &FileLabelView) -> [String; 5] {
    [
        format!("{}/{}", file.workspace, file.path),
        file.integrity.to_string(),
        shortened(&file.sources.join(", "), 48),
        file.run_id.map_or_else(|| "-".to_owned(), |run| run.to_string()),
        instant(file.at),
    ]
}
