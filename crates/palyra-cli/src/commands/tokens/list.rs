//! `palyra tokens list`.

use palyra_client::Client;
use palyra_client::api::{ListTokensResponse, TokenView};
use palyra_client::command::{Command, NoParams};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};

pub(super) async fn execute(client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let page: ListTokensResponse = client.execute(&Command::TokenList(NoParams {})).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.tokens)?;
    } else if page.tokens.is_empty() {
        console.remark("no tokens; create one with: palyra tokens create --name NAME");
    } else {
        let rows: Vec<_> = page.tokens.iter().map(row).collect();
        let lines = table::lines(["TOKEN", "ROLE", "FOR", "LAST USED (UTC)", "STATE", "NAME"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn row(token: &TokenView) -> [String; 6] {
    let state = match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", instant(at)),
        (None, Some(at)) => format!("until {}", instant(at)),
        (None, None) => "active".to_owned(),
    };
    [
        token.token_id.clone(),
        token.role.to_string(),
        shortened(&token.subject, 24),
        token.last_used_at.map_or_else(|| "never".to_owned(), instant),
        state,
        shortened(&token.name, 40),
    ]
}
