//! `palyra mcp test NAME`: connects, and shows how the tools stand to what was agreed to.

use std::time::Instant;

use clap::Args;
use palyra_common::ExitCode;
use palyra_mcp::{ClassificationFile, PinState, Pins, ServerName, ToolDescription};
use serde_json::{Value, json};

use crate::console::Style;
use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{counted, duration, shortened};

/// Which server, and whether to agree.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The server's name
    #[arg(value_name = "NAME")]
    name: ServerName,
    /// Accept all tools as they are now
    #[arg(long)]
    accept: bool,
}

pub(super) async fn execute(arguments: &TestArguments, context: &Context) -> Result<ExitCode, CliError> {
    let registry = super::registry(context)?;
    let name = &arguments.name;
    let server = registry.server(name)?;
    let pins = registry.pins(name)?;
    let classification = registry.classification(name)?;

    let start = Instant::now();
    let tools = super::tools_of(&server, context).await?;
    let connected = start.elapsed();
    let start = Instant::now();
    server.list_tools().await?;
    let round_trip = start.elapsed();
    let status = server.status();
    server.shutdown().await;

    let rows: Vec<_> = tools.iter().map(|tool| row(name, tool, &pins, &classification)).collect();
    let withheld = tools.iter().filter(|tool| pins.state(tool) != PinState::Pinned).count();
    let gone: Vec<&String> =
        pins.tools.keys().filter(|pinned| !tools.iter().any(|tool| tool.name == **pinned)).collect();
    let console = &context.console;
    if console.is_text() {
        let who = status.introduced_as.as_deref().unwrap_or("unnamed server");
        console.line(&format!(
            "{name}: {}, protocol {}, connected in {}, lists tools in {}",
            shortened(who, 60),
            status.protocol.as_deref().unwrap_or("unknown"),
            duration(connected),
            duration(round_trip),
        ))?;
        table::lines(["TOOL", "STATE", "CLASSIFICATION", "THE SERVER SAYS"], &rows)
            .iter()
            .try_for_each(|line| console.line(line))?;
        for pinned in &gone {
            console.remark(&format!("note: `{}` is pinned, but the server no longer offers it", shortened(pinned, 60)));
        }
    } else {
        console.document(&json!({
            "name": name, "introduced_as": status.introduced_as, "protocol": status.protocol,
            "connect_ms": connected.as_millis(), "list_ms": round_trip.as_millis(), "gone": gone,
            "tools": tools.iter().map(|tool| document(name, tool, &pins)).collect::<Vec<_>>(),
        }))?;
    }
    if arguments.accept {
        registry.pin(name, &tools)?;
        console.remark(&format!("pinned {} as they are now", counted(tools.len(), "tool")));
    } else if withheld > 0 {
        let warning =
            format!("warning: {withheld} of {} tools differ from the pinned ones and are withheld", tools.len());
        console.remark(&console.styled(Style::Bad, &warning));
        console.remark(&format!("review them above; to accept them: palyra mcp test {name} --accept"));
    }
    Ok(ExitCode::Ok)
}

const fn state(pins: PinState) -> &'static str {
    match pins {
        PinState::Pinned => "pinned",
        PinState::Changed => "CHANGED",
        PinState::New => "NEW",
    }
}

fn row(name: &ServerName, tool: &ToolDescription, pins: &Pins, classification: &ClassificationFile) -> [String; 4] {
    let classified = if classification.reviewed_entry(tool).is_some() { "reviewed" } else { "cautious" };
    [
        name.tool_name(&tool.name),
        state(pins.state(tool)).to_owned(),
        classified.to_owned(),
        shortened(tool.description.as_deref().unwrap_or_default(), 70),
    ]
}

fn document(name: &ServerName, tool: &ToolDescription, pins: &Pins) -> Value {
    json!({ "name": name.tool_name(&tool.name), "state": pins.state(tool), "digest": tool.digest(), "described": tool })
}
