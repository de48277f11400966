//! `palyra skills list`.

use palyra_client::Client;
use palyra_client::api::{ListSkillsResponse, SkillView};
use palyra_client::command::{Command, NoParams};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::shortened;

pub(super) async fn execute(client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let page: ListSkillsResponse = client.execute(&Command::SkillList(NoParams {})).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.skills)?;
    } else if page.skills.is_empty() {
        console.remark("no skills installed; create one with: palyra skills new NAME");
    } else {
        let rows: Vec<_> = page.skills.iter().map(row).collect();
        let lines = table::lines(["SKILL", "VERSION", "STATUS", "TRUST", "AUDIT", "PUBLISHER", "TOOLS"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn row(skill: &SkillView) -> [String; 7] {
    let prefix = format!("{}.", skill.skill_id);
    let tools: Vec<&str> = skill.tools.iter().map(|tool| tool.strip_prefix(&prefix).unwrap_or(tool)).collect();
    [
        skill.skill_id.clone(),
        skill.version.clone(),
        skill.status.to_string(),
        skill.trust.to_string(),
        skill.audit.clone(),
        shortened(&skill.publisher, 24),
        shortened(&tools.join(", "), 40),
    ]
}
