//! `palyra workspaces list`.

use palyra_client::Client;
use palyra_client::api::{ListWorkspacesResponse, WorkspaceGrantView};
use palyra_client::command::{Command, NoParams};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};

pub(super) async fn execute(client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let page: ListWorkspacesResponse = client.execute(&Command::WorkspaceList(NoParams {})).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.workspaces)?;
    } else if page.workspaces.is_empty() {
        console.remark("no directories are granted; only the local owner can run tasks in a workspace");
    } else {
        let rows: Vec<_> = page.workspaces.iter().map(row).collect();
        let lines = table::lines(["PRINCIPAL", "DIRECTORY", "GRANTED BY", "SINCE (UTC)"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn row(grant: &WorkspaceGrantView) -> [String; 4] {
    [
        shortened(&grant.principal, 32),
        grant.path.clone(),
        grant.granted_by.clone().unwrap_or_else(|| "configuration".to_owned()),
        grant.granted_at.map_or_else(|| "-".to_owned(), instant),
    ]
}
