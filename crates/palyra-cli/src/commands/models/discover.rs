//! `palyra models discover`.

use palyra_common::ExitCode;
use palyra_models::Offer;
use serde_json::json;

use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;

/// So many models of one server are named.
const SHOWN_MODELS: usize = 5;

pub(super) async fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let files = super::Files::read(context)?;
    let offers = super::offers(context).await;
    let console = &context.console;
    let used = |offer: &Offer| files.accounts.providers.contains_key(&offer.name);
    if !console.is_text() {
        let documents: Vec<_> = offers
            .iter()
            .map(|offer| json!({ "offer": offer, "command": offer.command(), "in_models_toml": used(offer) }))
            .collect();
        console.list(&documents, &documents)?;
        return Ok(ExitCode::Ok);
    }
    if offers.is_empty() {
        console.line("nothing was found: no key of a provider in the environment, no model server on this machine")?;
        console.remark(
            "set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, or start Ollama, llama.cpp or LM Studio",
        );
        let known: Vec<&str> = files.accounts.providers.keys().map(String::as_str).collect();
        if !known.is_empty() {
            console.remark(&format!("models.toml has {}; see `palyra models list`", known.join(", ")));
        }
        return Ok(ExitCode::Ok);
    }
    for offer in &offers {
        let known = if used(offer) { " (already in models.toml)" } else { "" };
        console.line(&format!("{}: {}{known}", offer.name, offer.why))?;
        if !offer.models.is_empty() {
            let mut names: Vec<String> = offer.models.iter().take(SHOWN_MODELS).map(|name| one_line(name)).collect();
            if offer.models.len() > SHOWN_MODELS {
                names.push(format!("{} more", offer.models.len() - SHOWN_MODELS));
            }
            console.line(&format!("  models: {}", names.join(", ")))?;
        }
        console.line(&format!("  {}", offer.sends))?;
        console.line(&format!("  to use it: {}", offer.command()))?;
    }
    console.remark("note: servers were asked for their lists of models, without a key; nothing else was sent");
    Ok(ExitCode::Ok)
}
