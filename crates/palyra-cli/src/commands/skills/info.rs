//! `palyra skills info`: one skill with its powers, settings and audit.

use palyra_client::Client;
use palyra_client::api::{SkillDetail, SkillPowersView};
use palyra_client::command::{About, Command, SkillName};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::text::instant;

pub(super) async fn execute(client: &Client, skill: String, context: &Context) -> Result<ExitCode, CliError> {
    let detail: SkillDetail = client.execute(&Command::SkillGet(About::only(SkillName(skill)))).await?;
    show(&detail, context)?;
    Ok(ExitCode::Ok)
}

/// One skill for a person, or as a document.
pub(super) fn show(detail: &SkillDetail, context: &Context) -> Result<(), CliError> {
    let console = &context.console;
    if !console.is_text() {
        return console.document(detail);
    }
    let skill = &detail.skill;
    let mut lines = vec![
        format!("{} {}  {}", skill.skill_id, skill.version, skill.name),
        format!("  status     {}{}", skill.status, because(&skill.reason)),
        format!("  publisher  {} ({}, {})", skill.publisher, skill.trust, skill.key_id),
    ];
    lines.extend(skill.registry.iter().map(|registry| format!("  registry   {registry}")));
    lines.extend(skill.tools.iter().map(|tool| format!("  tool       {tool}")));
    lines.extend(skill.hooks.iter().map(|hook| format!("  hook       {hook}")));
    lines.extend(powers(&detail.capabilities, &detail.granted));
    lines.extend(detail.config.iter().map(|(key, value)| format!("  setting    {key} = {value}")));
    let when = detail.audited_at.map(instant).unwrap_or_default();
    lines.push(format!("  audit      {} {when}", skill.audit));
    lines.extend(detail.findings.iter().map(|finding| format!("    {} {}", finding.severity, finding.message)));
    lines.iter().try_for_each(|line| console.line(line))
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// What the manifest asks for, and whether it is granted.
fn powers(asked: &SkillPowersView, granted: &SkillPowersView) -> Vec<String> {
    let mark = |is_granted: bool| if is_granted { "" } else { "  (not granted)" };
    let mut lines = Vec::new();
    for rule in &asked.http {
        lines.push(format!("  http       {rule}{}", mark(granted.http.contains(rule))));
    }
    for secret in &asked.secrets {
        let given = granted.secrets.iter().find(|known| known.name == secret.name);
        let place = given.and_then(|known| known.reference.as_deref()).map_or_else(
            || format!("not set; palyra skills set … --secret {}=env:NAME", secret.name),
            |reference| format!("from {reference}"),
        );
        let seen = if given.is_some_and(|known| known.reveal) { "; the skill may read its value" } else { "" };
        lines.push(format!("  secret     {} {place}{seen}", secret.name));
    }
    lines.extend(asked.storage.iter().map(|space| format!("  storage    {space}")));
    for channel in &asked.channels {
        lines.push(format!("  channel    {channel}{}", mark(granted.channels.contains(channel))));
    }
    lines
}
