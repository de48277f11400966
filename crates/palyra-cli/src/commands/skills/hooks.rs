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
    /// List bindings, in the order in which they run
    List,
    /// Bind a skill to an event
    Bind(BindArguments),
    /// Remove a binding
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
    /// Id of the binding [default: derived from skill and event]
    #[arg(long)]
    id: Option<String>,
    /// Lower numbers run first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    order: i32,
    /// Time limit in milliseconds
    #[arg(long, value_parser = numbers::at_least::<u64>(1))]
    deadline_ms: Option<u64>,
    /// Continue if the hook fails or times out
    #[arg(long)]
    fail_open: bool,
    /// Run it for this tool only; a name may end in `*`; may be repeated
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
            tell(&hook, "Bound", context)
        }
        HooksCommand::Unbind { hook } => {
            let hook: HookView = client.execute(&Command::HookRemove(About::only(HookName(hook)))).await?;
            tell(&hook, "Removed", context)
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
                let on_failure = if hook.fail_open { "continues" } else { "blocks" };
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
        context.console.line(&format!("{what} hook `{}` ({} → {})", hook.hook_id, hook.event, hook.plugin_id))?;
    } else {
        context.console.document(hook)?;
    }
    Ok(ExitCode::Ok)
}
