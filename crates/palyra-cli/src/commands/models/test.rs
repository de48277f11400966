//! `palyra models test [PROVIDER/MODEL]`: the daemon has a short conversation with one tool call, and what came of it is said in one line.

use clap::Args;
use palyra_client::api::{ModelTestView, TestModelsParams, TestModelsResponse};
use palyra_client::command::Command;
use palyra_common::ExitCode;
use palyra_models::{ModelName, SchemaDialect, default_tools, schema_losses};

use crate::console::{Style, one_line};
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;
use crate::render::text::{millis, quoted};

/// Which model, and with what.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The model; all of the default route if none is named
    #[arg(value_name = "PROVIDER/MODEL")]
    model: Option<ModelName>,
    /// Send every tool there is, instead of those that a run sends first
    #[arg(long)]
    all_tools: bool,
    /// Also list the parts of tool schemas that are not sent because servers do not accept them
    #[arg(long, short)]
    verbose: bool,
}

pub(super) async fn execute(arguments: &TestArguments, context: &Context) -> Result<ExitCode, CliError> {
    if arguments.verbose {
        losses(context)?;
    }
    let console = &context.console;
    let client = launcher::connect(context).await?;
    let model = arguments.model.as_ref().map(ToString::to_string);
    console.progress(&format!("asking {}…", model.as_deref().unwrap_or("the model")));
    let params = TestModelsParams { model, all_tools: arguments.all_tools };
    let tested: Result<TestModelsResponse, _> = client.execute(&Command::ModelsTest(params)).await;
    console.wipe_progress();
    super::remark_environment(context).await?;
    let TestModelsResponse { provider, results } = tested?;
    if !console.is_text() {
        console.list(&results, &results)?;
    } else if results.is_empty() {
        console.line(&format!(
            "nothing to test: {}; `palyra models discover` shows what you could use",
            provider.reason
        ))?;
    } else {
        results.iter().try_for_each(|result| console.line(&line(result, context)))?;
    }
    let failed = results.iter().find_map(|result| result.error.as_ref());
    let untried = results.is_empty() || results.iter().any(|result| result.called.is_none());
    Ok(failed.map_or(if untried { ExitCode::Precondition } else { ExitCode::Ok }, |error| error.exit_code()))
}

fn line(result: &ModelTestView, context: &Context) -> String {
    let key = result.credential.as_ref().map(|key| format!(" with key {key}")).unwrap_or_default();
    let name = one_line(&result.model);
    match &result.error {
        None => {
            let used = format!("{} + {} tokens", result.input_tokens, result.output_tokens);
            let (verdict, called) = match &result.called {
                Some(tool) => (context.console.styled(Style::Good, "works"), format!("called {}", one_line(tool))),
                None => (
                    context.console.styled(Style::Bad, "answers without tools"),
                    "it did not call the tool that it was told to call, which runs depend on,".to_owned(),
                ),
            };
            let said =
                if result.text.is_empty() { String::new() } else { format!(" and answered {}", quoted(&result.text)) };
            let tools = match result.tools {
                1 => "1 tool offered".to_owned(),
                count => format!("{count} tools offered"),
            };
            let window = format!("a window of {}", result.context_tokens);
            format!(
                "{name}{key}: {verdict}: {called}{said} in {}, {used}, {tools}, {window}",
                millis(result.duration_ms)
            )
        }
        Some(error) => {
            let bad = context.console.styled(Style::Bad, "fails");
            // Whoever reads this has just run the command that other errors of models lead to.
            let hint = error.recovery_hint.as_deref().and_then(|hint| hint.split("; `palyra models test` ").next());
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("{name}{key}: {bad}: {} [{}]{hint}", error.message, error.code)
        }
    }
}

/// What the tools lose on the way to servers that turn schemas into grammars. Calls are checked against the whole schemas all the same.
fn losses(context: &Context) -> Result<(), CliError> {
    let losses = schema_losses(&default_tools(), SchemaDialect::Portable);
    let console = &context.console;
    if !console.is_text() || losses.is_empty() {
        return Ok(());
    }
    console.line("not sent to OpenAI-compatible servers and Ollama, and checked here when a tool is called:")?;
    losses.iter().try_for_each(|loss| console.line(&format!("  {loss}")))
}
