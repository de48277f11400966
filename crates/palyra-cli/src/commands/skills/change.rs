//! `palyra skills enable|disable|quarantine|remove`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ChangeSkillParams, SkillView};
use palyra_client::command::{About, Command, SkillName};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;

/// Which skill.
#[derive(Debug, Args)]
pub(crate) struct SkillArgument {
    /// Its id, as `palyra skills list` shows it
    #[arg(value_name = "SKILL")]
    pub(super) skill: String,
}

/// Which skill, and why.
#[derive(Debug, Args)]
pub(crate) struct ChangeArguments {
    #[command(flatten)]
    skill: SkillArgument,
    /// Reason, recorded in the journal; required to take a skill out of quarantine
    #[arg(long)]
    reason: Option<String>,
}

impl ChangeArguments {
    pub(super) fn about(self) -> About<SkillName, ChangeSkillParams> {
        About { target: SkillName(self.skill.skill), params: ChangeSkillParams { reason: self.reason } }
    }
}

pub(super) async fn execute(client: &Client, command: Command, context: &Context) -> Result<ExitCode, CliError> {
    let removed = matches!(command, Command::SkillRemove(_));
    let skill: SkillView = client.execute(&command).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&skill)?;
    } else if removed {
        console.line(&format!("Removed skill `{}` {} and its stored data", skill.skill_id, skill.version))?;
    } else {
        console.line(&format!("Skill `{}` {} is now {}", skill.skill_id, skill.version, skill.status))?;
    }
    Ok(ExitCode::Ok)
}
