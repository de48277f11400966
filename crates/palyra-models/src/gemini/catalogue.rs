//! The models that the server offers.

use serde_json::Value;

use super::series::Series;
use crate::error::ModelError;
use crate::model_entry::{Capability, ModelEntry};
use crate::wire::Transport;

/// Most pages that are asked for. There are a hundred models; a server that never ends must not hold anybody.
const MAX_PAGES: usize = 10;

/// All models that generate, page by page, in the server's order.
pub(super) async fn list(transport: &Transport) -> Result<Vec<ModelEntry>, ModelError> {
    let mut entries = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let mut url = transport.base().join("models");
        url.query_pairs_mut().append_pair("pageSize", "1000");
        if let Some(token) = &token {
            url.query_pairs_mut().append_pair("pageToken", token);
        }
        let page = transport.get_json(url).await?;
        entries.extend(read(&page)?);
        token = page.get("nextPageToken").and_then(Value::as_str).filter(|token| !token.is_empty()).map(str::to_owned);
        if token.is_none() {
            break;
        }
    }
    Ok(entries)
}

/// One page.
pub(super) fn read(page: &Value) -> Result<Vec<ModelEntry>, ModelError> {
    let entries = page
        .get("models")
        .and_then(Value::as_array)
        .ok_or_else(|| ModelError::malformed("the server's list of models has no entries"))?;
    Ok(entries.iter().filter_map(entry).collect())
}

fn entry(entry: &Value) -> Option<ModelEntry> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    let count = |field: &str| entry.get(field).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
    let methods: Vec<&str> =
        entry.get("supportedGenerationMethods")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let name = text("name")?;
    let id = name.strip_prefix("models/").unwrap_or(&name);
    let capabilities = if methods.contains(&"generateContent") {
        let thinks = entry.get("thinking").and_then(Value::as_bool).unwrap_or_default();
        let gemini = id.starts_with("gemini-");
        let schema = gemini && Series::of(id).takes_json_schema();
        let known = [
            (gemini, Capability::Tools),
            (gemini, Capability::Images),
            (gemini, Capability::Files),
            (thinks, Capability::Reasoning),
            (schema, Capability::StructuredOutput),
        ];
        known.into_iter().filter(|(has, _)| *has).map(|(_, capability)| capability).collect()
    } else if methods.contains(&"embedContent") {
        vec![Capability::Embeddings]
    } else {
        return None;
    };
    Some(ModelEntry {
        name: text("displayName"),
        context_tokens: count("inputTokenLimit"),
        max_output_tokens: count("outputTokenLimit"),
        capabilities: Some(capabilities),
        ..ModelEntry::named(id)
    })
}
