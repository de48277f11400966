//! `palyra mcp add NAME -- COMMAND…` and `palyra mcp add NAME --url URL`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use palyra_common::{ExitCode, SecretRef, ToStableError as _};
use palyra_mcp::{
    HttpConfig, McpError, McpRegistry, ServerConfig, ServerName, StdioConfig, ToolDescription, TransportConfig,
};

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::text::counted;

/// What nearly every program needs to start at all. They are written into the entry, where they can be seen and removed.
const USUAL_VARIABLES: [&str; 3] = ["PATH", "HOME", "LANG"];
/// A server answers within moments of its start; what takes longer is usually no server.
const PATIENCE: Duration = Duration::from_secs(10);
/// These download what they run first.
const PACKAGE_RUNNERS: [&str; 10] = ["npx", "npm", "pnpm", "yarn", "bunx", "deno", "uvx", "uv", "pipx", "docker"];
const RUNNER_PATIENCE: Duration = Duration::from_secs(120);
/// What to do if nothing there speaks the protocol.
const CHECK_COMMAND: &str = "it was not added; run the command yourself to see what it does";
const CHECK_URL: &str = "it was not added; check the URL: servers often answer at a path such as /mcp";

/// Which server, and how it is reached.
#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// A name for the server: a-z, 0-9, _ and -
    #[arg(value_name = "NAME")]
    name: ServerName,
    /// Connect to a server at this address
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// A header that carries a secret, such as Authorization=env:TOKEN (repeatable)
    #[arg(long = "header", value_name = "NAME=REFERENCE", requires = "url", value_parser = header)]
    headers: Vec<(String, SecretRef)>,
    /// An environment variable to pass to the program, besides PATH, HOME and LANG (repeatable)
    #[arg(long = "env", value_name = "VARIABLE", conflicts_with = "url")]
    env: Vec<String>,
    /// The working directory of the program [default: /]
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<PathBuf>,
    /// How long the server may take to answer [default: 10, or 120 if a package runner such as npx starts it]
    #[arg(long, value_name = "SECONDS", value_parser = numbers::between::<u64>(1, 3600))]
    timeout: Option<u64>,
    /// Pin the tools of an existing server again, as they are now
    #[arg(long, conflicts_with_all = ["url", "env", "cwd", "command"])]
    repin: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn header(text: &str) -> Result<(String, SecretRef), String> {
    let (name, reference) = text.split_once('=').ok_or("write NAME=REFERENCE, such as Authorization=env:TOKEN")?;
    let reference = reference.parse().map_err(|error: palyra_common::InvalidSecretRef| error.to_string())?;
    Ok((name.to_owned(), reference))
}

pub(super) async fn execute(arguments: AddArguments, context: &Context) -> Result<ExitCode, CliError> {
    let registry = super::patient_registry(patience(&arguments), context)?;
    let name = arguments.name.clone();
    if arguments.repin {
        let server = registry.server(&name)?;
        let tools = super::tools_of(&server, context).await?;
        server.shutdown().await;
        registry.pin(&name, &tools)?;
        return report("Repinned", &name, &tools, context);
    }
    let configuration = configuration(arguments, context)?;
    let server = registry.add(&name, &configuration)?;
    let added = pinned(&registry, &name, context).await;
    server.shutdown().await;
    match added {
        Ok(tools) => report("Added", &name, &tools, context),
        Err(error) => {
            // What never worked is not kept.
            registry.remove(&name)?;
            Err(not_added(&error, &configuration.transport))
        }
    }
}

/// The error with what can be done about it now: there is no server yet that `palyra mcp test` could look at.
fn not_added(error: &McpError, transport: &TransportConfig) -> CliError {
    let envelope = error.to_stable();
    CliError::McpAdd(Box::new(match (error, transport) {
        (McpError::ConnectFailed { .. }, TransportConfig::Stdio(_)) => envelope.hint(CHECK_COMMAND),
        (McpError::ConnectFailed { .. }, TransportConfig::Http(_)) => envelope.hint(CHECK_URL),
        (McpError::StartFailed { .. }, _) => envelope.hint("it was not added; check the command and your permissions"),
        (McpError::ConnectTimeout { .. }, _) => {
            envelope.hint("it was not added; if it only starts slowly, give it more time with --timeout SECONDS")
        }
        _ => envelope,
    }))
}

fn patience(arguments: &AddArguments) -> Duration {
    let program = arguments.command.first().and_then(|program| Path::new(program).file_name()?.to_str());
    match (arguments.timeout, program) {
        (Some(seconds), _) => Duration::from_secs(seconds),
        (None, Some(program)) if PACKAGE_RUNNERS.contains(&program) => RUNNER_PATIENCE,
        (None, _) => PATIENCE,
    }
}

async fn pinned(
    registry: &McpRegistry,
    name: &ServerName,
    context: &Context,
) -> Result<Vec<ToolDescription>, McpError> {
    let tools = super::tools_of(&*registry.server(name)?, context).await?;
    registry.pin(name, &tools)?;
    Ok(tools)
}

fn configuration(arguments: AddArguments, context: &Context) -> Result<ServerConfig, CliError> {
    if let Some(url) = arguments.url {
        let headers: BTreeMap<String, SecretRef> = arguments.headers.into_iter().collect();
        return Ok(ServerConfig::http(HttpConfig { url, headers }));
    }
    let mut command = arguments.command.into_iter();
    let Some(program) = command.next() else {
        return Err(CliError::Usage {
            reason: "expected a command after `--`, or `--url URL`".to_owned(),
            usage: Some("palyra mcp add NAME -- COMMAND… | --url URL".to_owned()),
        });
    };
    let mut env: Vec<String> = USUAL_VARIABLES.map(str::to_owned).to_vec();
    env.extend(arguments.env.into_iter().filter(|variable| !USUAL_VARIABLES.contains(&variable.as_str())));
    // A program named by a relative path is found from where the person stands, not from where it will run.
    let program = if program.contains('/') {
        context.environment.absolute(program.as_ref()).display().to_string()
    } else {
        program
    };
    let cwd = arguments.cwd.map(|cwd| context.environment.absolute(&cwd));
    Ok(ServerConfig::stdio(StdioConfig { command: program, args: command.collect(), env, cwd }))
}

fn report(done: &str, name: &ServerName, tools: &[ToolDescription], context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    if console.is_text() {
        console.line(&format!("{done} `{name}`: {} pinned", counted(tools.len(), "tool")))?;
        console.remark(&format!(
            "note: every call of its tools is treated as consequential until you review them: palyra mcp classify {name}"
        ));
    } else {
        let names: Vec<String> = tools.iter().map(|tool| name.tool_name(&tool.name)).collect();
        console.document(&serde_json::json!({ "name": name, "tools": names }))?;
    }
    Ok(ExitCode::Ok)
}
