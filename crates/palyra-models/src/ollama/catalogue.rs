//! The models that are on the server, and what they can do.

use serde_json::{Value, json};

use crate::error::ModelError;
use crate::model_entry::{Capability, ModelEntry};
use crate::wire::Transport;

/// Most models that are asked about one by one; the rest is listed by name.
const MAX_SHOWN: usize = 64;
/// Most bytes of what is said about a model: licences and templates are part of it.
const MAX_SHOW: usize = 16 * 1024 * 1024;

/// The names of the models, in the server's order: the one that was used last comes first.
pub(super) async fn names(transport: &Transport) -> Result<Vec<String>, ModelError> {
    read_names(&transport.get_json(transport.base().join("api/tags")).await?)
}

/// All models. One that cannot be asked about is listed by its name.
pub(super) async fn list(transport: &Transport) -> Result<Vec<ModelEntry>, ModelError> {
    let mut entries = Vec::new();
    for (index, name) in names(transport).await?.into_iter().enumerate() {
        let entry = if index < MAX_SHOWN { show(transport, &name).await.ok() } else { None };
        entries.push(entry.unwrap_or_else(|| ModelEntry::named(name)));
    }
    Ok(entries)
}

/// One model.
pub(super) async fn show(transport: &Transport, name: &str) -> Result<ModelEntry, ModelError> {
    let url = transport.base().join("api/show");
    let body = transport.post(url, &json!({ "model": name }), name, MAX_SHOW).await?;
    let shown: Value = serde_json::from_slice(&body)
        .map_err(|_| ModelError::malformed("what the server says about a model is not JSON"))?;
    Ok(read_show(name, &shown))
}

/// The names in an answer of `/api/tags`.
pub(super) fn read_names(list: &Value) -> Result<Vec<String>, ModelError> {
    let models = list
        .get("models")
        .and_then(Value::as_array)
        .ok_or_else(|| ModelError::malformed("the server's list of models has no entries"))?;
    let name = |model: &Value| {
        let found = ["model", "name"].iter().find_map(|field| model.get(field)?.as_str());
        found.filter(|name| !name.is_empty()).map(str::to_owned)
    };
    Ok(models.iter().filter_map(name).collect())
}

/// What an answer of `/api/show` says. The window's key begins with the model's architecture.
pub(super) fn read_show(name: &str, shown: &Value) -> ModelEntry {
    let info = shown.get("model_info").and_then(Value::as_object);
    let window = info.into_iter().flatten().find(|(key, _)| key.ends_with(".context_length"));
    let context_tokens = window.and_then(|(_, value)| value.as_u64()).and_then(|window| u32::try_from(window).ok());
    let capabilities = shown.get("capabilities").and_then(Value::as_array).map(|known| {
        let has = |word: &str| known.iter().any(|one| one == word);
        let named = [
            ("tools", Capability::Tools),
            ("vision", Capability::Images),
            ("thinking", Capability::Reasoning),
            ("embedding", Capability::Embeddings),
            // The server itself keeps every model that completes to a schema.
            ("completion", Capability::StructuredOutput),
        ];
        named.into_iter().filter(|(word, _)| has(word)).map(|(_, capability)| capability).collect()
    });
    ModelEntry { context_tokens, capabilities, ..ModelEntry::named(name) }
}
