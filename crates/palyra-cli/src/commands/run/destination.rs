//! Where a run's conversation goes, said as it begins.
//!
//! The daemon's own account of its provider speaks of the default route, as it was when the daemon was greeted. A run on a model that was
//! asked for by name, or of an agent with a route of its own, goes elsewhere, and nobody may be told the wrong place: so the daemon is
//! asked about this run.

use palyra_client::Client;
use palyra_client::api::{ExplainModelsParams, ExplainModelsResponse, ModelChoiceView, ProviderView, RunView};
use palyra_client::command::Command;

/// The destination in one line. `greeted` is what the daemon said of its provider before the run was made.
pub(super) async fn told(client: &Client, run: &RunView, agent: Option<String>, greeted: &ProviderView) -> String {
    let asked = run.model.as_str();
    let is_usual = agent.is_none() && asked == greeted.model;
    let params = ExplainModelsParams { model: Some(asked.to_owned()), agent, ..ExplainModelsParams::default() };
    let explained: Result<ExplainModelsResponse, _> = client.execute(&Command::ModelsExplain(params)).await;
    match explained {
        Ok(ExplainModelsResponse { choice: Some(choice), provider }) => in_words(&choice, provider.reason),
        // One provider gets everything, whatever the model is called.
        Ok(ExplainModelsResponse { choice: None, provider }) => provider.reason,
        Err(_) if is_usual => greeted.reason.clone(),
        // A name that no route knows, or a daemon that does not say: the run itself tells what comes of it.
        Err(_) => format!("model `{asked}`, as requested"),
    }
}

fn in_words(choice: &ModelChoiceView, usual: String) -> String {
    let steps = choice.steps.iter().map(|step| format!("`{}` at `{}`", step.target.name, step.target.destination));
    let places = format!("the conversation is sent to {}", steps.collect::<Vec<_>>().join(", failing that to "));
    if usual.ends_with(&places) {
        return usual;
    }
    match choice.route.as_str() {
        // One provider, named by settings or the environment: there may be no models.toml at all.
        "model" => places,
        "providers" => format!("{places} (`-m`)"),
        route => format!("{places} ({route}: {})", choice.reason),
    }
}
