//! `palyra skills hooks …`: which plugins are told of which events.

use clap::{Args, Subcommand};
use palyra_client::Client;
use palyra_client::api::{HookView, ListHooksResponse, SetHookParams};
use palyra_client::command::{About, Command, HookName, NoParams};
use palyra_common::{ExitCode, HookEvent};

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::table;

/// What to do with hooks.
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// List bindings in the order in which they are asked
    List,
    /// Tell a skill of an event
    Bind(BindArguments),
    /// Take a binding back
    Unbind {
        /// Its id, as the list shows it
        hook: String,
    },
}

/// Which event, and who is told.
#[derive(Debug, Args)]
pub(crate) struct BindArguments {
    /// The event, such as run:before_tool
    event: HookEvent,
    /// The skill, or SKILL#HOOK
    plugin: String,
    /// What the binding is found by; made of skill and event if left out
    #[arg(long)]
    id: Option<String>,
    /// Lower ones are asked first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    order: i32,
    /// Milliseconds it may take
    #[arg(long, value_parser = numbers::at_least::<u64>(1))]
    deadline_ms: Option<u64>,
    /// Go on if it fails or is late
    #[arg(long)]
    fail_open: bool,
    /// Ask it about this tool only; a name may end in `*`; may be given several times
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
}

pub(super) async fn execute(client: &Client, command: HooksCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        HooksCommand::List => list(client, context).await,
        HooksCommand::Bind(given) => {
            let params = SetHookParams {
                hook_id: given.id,
                event: given.event,
                plugin_id: given.plugin,
                order: given.order,
                deadline_ms: given.deadline_ms,
                fail_open: given.fail_open.then_some(true),
                enabled: None,
                tools: given.tools,
            };
            let hook: HookView = client.execute(&Command::HookSet(params)).await?;
            tell(&hook, "is bound", context)
        }
        HooksCommand::Unbind { hook } => {
            let hook: HookView = client.execute(&Command::HookRemove(About::only(HookName(hook)))).await?;
            tell(&hook, "is taken back", context)
        }
    }
}

async fn list(client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let page: ListHooksResponse = client.execute(&Command::HookList(NoParams {})).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.hooks)?;
    } else if page.hooks.is_empty() {
        console.remark("no hooks; bind one with: palyra skills hooks bind EVENT SKILL");
    } else {
        let rows: Vec<[String; 6]> = page
            .hooks
            .iter()
            .map(|hook| {
                let on_failure = if hook.fail_open { "goes on" } else { "blocks" };
                [
                    hook.hook_id.clone(),
                    hook.event.to_string(),
                    hook.plugin_id.clone(),
                    hook.order.to_string(),
                    format!("{} ms", hook.deadline_ms),
                    on_failure.to_owned(),
                ]
            })
            .collect();
        let lines = table::lines(["HOOK", "EVENT", "SKILL", "ORDER", "DEADLINE", "ON FAILURE"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn tell(hook: &HookView, what: &str, context: &Context) -> Result<ExitCode, CliError> {
    if context.console.is_text() {
        context.console.line(&format!("{} ({} → {}) {what}", hook.hook_id, hook.event, hook.plugin_id))?;
    } else {
        context.console.document(hook)?;
    }
    Ok(ExitCode::Ok)
}
