//! `palyra agents set AGENT`: what is named changes, the rest stays as it is; a file says everything.
//!
//! A change is given with the version that was read before it, so that two people who change an agent at the same time do not undo each other.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use palyra_client::api::{AgentView, SetAgentParams};
use palyra_client::command::{About, AgentName, Command};
use palyra_client::{Client, ClientError};
use palyra_common::{ErrorCategory, ExitCode, RunMode};
use serde::Deserialize;

use crate::context::Context;
use crate::error::CliError;

/// Largest file: more than the daemon takes.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// What an agent is to be.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// The agent's name: a-z, 0-9, - and _
    #[arg(value_name = "AGENT")]
    agent: AgentName,
    /// Read the whole definition from this file (TOML: name, instructions, model, mode, workspace, tools)
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Display name
    #[arg(long)]
    name: Option<String>,
    /// Instructions given to the model at the start of every run
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Read the instructions from a file; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "instructions")]
    instructions_file: Option<PathBuf>,
    /// Model for runs whose session and command name none
    #[arg(long)]
    model: Option<String>,
    /// The loosest mode of its runs: open, guarded or strict
    #[arg(long)]
    mode: Option<RunMode>,
    /// Working directory for runs whose session and command name none
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Restrict its runs to this tool; a name may end in `*`; may be repeated
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    /// Clear this field; may be repeated
    #[arg(long, value_name = "FIELD")]
    clear: Vec<Field>,
}

/// A part of an agent that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Field {
    /// The name for people.
    Name,
    /// The instructions.
    Instructions,
    /// The model.
    Model,
    /// The mode.
    Mode,
    /// The directory.
    Workspace,
    /// The tools; all that policy permits.
    Tools,
}

/// An agent in a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AgentFile {
    name: String,
    instructions: String,
    model: Option<String>,
    mode: Option<RunMode>,
    workspace: Option<String>,
    tools: Vec<String>,
}

pub(super) async fn execute(arguments: SetArguments, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let known = known(client, arguments.agent.clone()).await?;
    let version = known.as_ref().map_or(0, |agent| agent.version);
    let before = match &arguments.from {
        Some(file) => from_file(&read(file, context)?)?,
        None => known.map(params).unwrap_or_default(),
    };
    let params = changed(before, arguments, context)?;
    let agent: AgentView = client.execute_at(&Command::AgentSet(params), Some(version)).await?;
    if context.console.is_text() {
        let word = if version == 0 { "Created" } else { "Updated" };
        context.console.line(&format!("{word} agent {}, version {}", agent.agent_id, agent.version))?;
    } else {
        context.console.document(&agent)?;
    }
    Ok(ExitCode::Ok)
}

async fn known(client: &Client, agent: AgentName) -> Result<Option<AgentView>, CliError> {
    match client.execute(&Command::AgentGet(About::only(agent))).await {
        Ok(agent) => Ok(Some(agent)),
        Err(ClientError::Refused(error)) if error.category == ErrorCategory::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn params(agent: AgentView) -> SetAgentParams {
    let AgentView { agent_id, name, instructions, model, mode, workspace, tools, .. } = agent;
    SetAgentParams { agent_id, name, instructions, model, mode, workspace, tools }
}

fn from_file(text: &str) -> Result<SetAgentParams, CliError> {
    let AgentFile { name, instructions, model, mode, workspace, tools } = toml::from_str(text).map_err(|error| {
        let reason = format!("the file is not a valid agent definition: {}", error.message());
        CliError::Usage { reason, usage: None }
    })?;
    Ok(SetAgentParams { agent_id: String::new(), name, instructions, model, mode, workspace, tools })
}

fn changed(mut agent: SetAgentParams, arguments: SetArguments, context: &Context) -> Result<SetAgentParams, CliError> {
    agent.agent_id = arguments.agent.0;
    for field in arguments.clear {
        match field {
            Field::Name => agent.name.clear(),
            Field::Instructions => agent.instructions.clear(),
            Field::Model => agent.model = None,
            Field::Mode => agent.mode = None,
            Field::Workspace => agent.workspace = None,
            Field::Tools => agent.tools.clear(),
        }
    }
    agent.name = arguments.name.unwrap_or(agent.name);
    agent.instructions = match (arguments.instructions, arguments.instructions_file) {
        (Some(text), _) => text,
        (None, Some(file)) => read(&file, context)?,
        (None, None) => agent.instructions,
    };
    agent.model = arguments.model.or(agent.model);
    agent.mode = arguments.mode.or(agent.mode);
    if let Some(path) = arguments.workspace {
        let named = context.environment.absolute(&path).into_os_string().into_string();
        let refuse = |_| CliError::Workspace { path, reason: "its name is not UTF-8".to_owned() };
        agent.workspace = Some(named.map_err(refuse)?);
    }
    if !arguments.tools.is_empty() {
        agent.tools = arguments.tools;
    }
    Ok(agent)
}

fn read(file: &Path, context: &Context) -> Result<String, CliError> {
    let unusable = |source| CliError::File { doing: "read", path: file.to_owned(), source };
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(unusable)?;
    } else {
        let opened = std::fs::File::open(context.environment.absolute(file)).map_err(unusable)?;
        opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(unusable)?;
    }
    if text.len() as u64 > MAX_FILE_BYTES {
        let reason = format!("`{}` is larger than {} KiB", file.display(), MAX_FILE_BYTES >> 10);
        return Err(CliError::Usage { reason, usage: None });
    }
    Ok(text)
}
