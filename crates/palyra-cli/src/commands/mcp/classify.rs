//! `palyra mcp classify NAME`: how the tools of a server are treated, proposed by rules and agreed to by a person.

use clap::Args;
use palyra_common::{ExitCode, FieldRole, SinkKind};
use palyra_mcp::{ClassificationFile, ReviewState, ServerName, ToolEntry};

use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::shortened;

/// Which server, and what to do about its file.
#[derive(Debug, Args)]
pub(crate) struct ClassifyArguments {
    /// The server's name
    #[arg(value_name = "NAME")]
    name: ServerName,
    /// Only show the file as it is; do not connect
    #[arg(long, conflicts_with_all = ["accept", "replace"])]
    review: bool,
    /// Accept the file as it is
    #[arg(long, conflicts_with = "replace")]
    accept: bool,
    /// Propose everything again, discarding the present file
    #[arg(long)]
    replace: bool,
}

pub(super) async fn execute(arguments: &ClassifyArguments, context: &Context) -> Result<ExitCode, CliError> {
    let registry = super::registry(context)?;
    let name = &arguments.name;
    let server = registry.server(name)?;
    let console = &context.console;
    if arguments.accept {
        if !registry.classification_path(name).exists() {
            let message = format!("there is no classification of `{name}` to accept yet");
            let hint = format!("propose one and read it first: palyra mcp classify {name}");
            return Err(CliError::Named { message, hint });
        }
        let path = registry.accept_classification(name)?;
        show(name, &registry.classification(name)?, context)?;
        console.remark(&format!("`{}` is accepted and in force", path.display()));
        return Ok(ExitCode::Ok);
    }
    if arguments.review {
        show(name, &registry.classification(name)?, context)?;
        return Ok(ExitCode::Ok);
    }
    // A file that nobody can read is not silently written over.
    let before = if arguments.replace { ClassificationFile::default() } else { registry.classification(name)? };
    let tools = super::tools_of(&server, context).await?;
    server.shutdown().await;
    let complete = tools.iter().all(|tool| before.reviewed_entry(tool).is_some());
    if complete && !tools.is_empty() {
        show(name, &before, context)?;
        console
            .remark(&format!("`{}` is reviewed and covers every tool", registry.classification_path(name).display()));
        return Ok(ExitCode::Ok);
    }
    let path = registry.propose_classification(name, &tools, &before)?;
    show(name, &registry.classification(name)?, context)?;
    console.remark(&format!(
        "written to `{}`, with the reason for each choice; edit it there, then: palyra mcp classify {name} --accept",
        path.display()
    ));
    Ok(ExitCode::Ok)
}

fn show(name: &ServerName, file: &ClassificationFile, context: &Context) -> Result<(), CliError> {
    let console = &context.console;
    if !console.is_text() {
        return console.document(file);
    }
    let rows: Vec<_> = file.tools.iter().map(|(tool, entry)| row(name, tool, entry)).collect();
    table::lines(["TOOL", "EFFECT", "REPEATABLE", "ARGUMENTS", "RESULTS"], &rows)
        .iter()
        .try_for_each(|line| console.line(line))?;
    if file.review() == ReviewState::Proposed {
        console.remark(
            "not reviewed: until then, every tool is treated as consequential and every argument as a destination",
        );
    }
    Ok(())
}

fn row(name: &ServerName, tool: &str, entry: &ToolEntry) -> [String; 5] {
    let sinks: Vec<String> =
        entry.sinks.iter().map(|(argument, kind)| format!("{argument} ({})", short(*kind))).collect();
    let fields = |role: FieldRole| entry.output.fields.iter().filter(|field| field.role == role).count();
    let mut results = format!("{} {}", entry.output.integrity, entry.output.confidentiality);
    for (role, word) in
        [(FieldRole::Assigned, "assigned"), (FieldRole::Identifier, "identifier"), (FieldRole::Author, "author")]
    {
        let count = fields(role);
        if count > 0 {
            results.push_str(&format!(", {count} {word}"));
        }
    }
    [
        shortened(&name.tool_name(tool), 60),
        entry.consequence.to_string(),
        if entry.repeatable { "yes" } else { "no" }.to_owned(),
        one_line(&sinks.join(", ")),
        results,
    ]
}

fn short(kind: SinkKind) -> &'static str {
    match kind {
        SinkKind::Destination => "destination",
        SinkKind::Command => "command",
        SinkKind::Path => "path",
        SinkKind::Credential => "credential",
        SinkKind::Amount => "amount",
        SinkKind::Content => "content",
    }
}
