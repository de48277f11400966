//! The models that the server offers.

use serde_json::Value;

use crate::error::ModelError;
use crate::model_entry::{Capability, ModelEntry};
use crate::wire::Transport;

/// Most pages that are asked for. There are a few dozen models; a server that never ends must not hold anybody.
const MAX_PAGES: usize = 10;

/// All models, page by page, in the server's order.
pub(super) async fn list(transport: &Transport) -> Result<Vec<ModelEntry>, ModelError> {
    let mut entries = Vec::new();
    let mut after: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let mut url = transport.base().join("models");
        url.query_pairs_mut().append_pair("limit", "1000");
        if let Some(after) = &after {
            url.query_pairs_mut().append_pair("after_id", after);
        }
        let page = transport.get_json(url).await?;
        entries.extend(read(&page)?);
        let more = page.get("has_more").and_then(Value::as_bool).unwrap_or_default();
        after = page.get("last_id").and_then(Value::as_str).map(str::to_owned).filter(|_| more);
        if after.is_none() {
            break;
        }
    }
    Ok(entries)
}

/// One page.
pub(super) fn read(page: &Value) -> Result<Vec<ModelEntry>, ModelError> {
    let entries = page
        .get("data")
        .and_then(Value::as_array)
        .ok_or_else(|| ModelError::malformed("the server's list of models has no entries"))?;
    Ok(entries.iter().filter_map(entry).collect())
}

fn entry(entry: &Value) -> Option<ModelEntry> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    let count = |field: &str| entry.get(field).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
    // A retired model is listed for the record and cannot be asked.
    if text("lifecycle").as_deref() == Some("retired") {
        return None;
    }
    Some(ModelEntry {
        name: text("display_name"),
        context_tokens: count("max_input_tokens"),
        max_output_tokens: count("max_tokens"),
        capabilities: entry.get("capabilities").filter(|known| known.is_object()).map(capabilities),
        ..ModelEntry::named(text("id").filter(|id| !id.is_empty())?)
    })
}

fn capabilities(known: &Value) -> Vec<Capability> {
    let named = [
        ("image_input", Capability::Images),
        ("pdf_input", Capability::Files),
        ("thinking", Capability::Reasoning),
        ("structured_outputs", Capability::StructuredOutput),
    ];
    let supported =
        |name: &str| known.get(name).and_then(|support| support.get("supported")?.as_bool()).unwrap_or_default();
    // The list does not name it: every model of this API calls tools.
    let tools = std::iter::once(Capability::Tools);
    tools.chain(named.into_iter().filter(|(name, _)| supported(name)).map(|(_, capability)| capability)).collect()
}
