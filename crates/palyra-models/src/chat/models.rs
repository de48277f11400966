//! Lists of models, as servers of this wire give them.

use serde_json::Value;

use crate::error::ModelError;
use crate::model_entry::ModelEntry;

/// Where servers say how much fits into a call, the one that is really served before the one the model could have.
const WINDOWS: &[&str] = &[
    "/meta/n_ctx",
    "/max_model_len",
    "/loaded_context_length",
    "/top_provider/context_length",
    "/context_length",
    "/context_window",
    "/max_context_length",
];

/// Reads a list with this reader of entries.
pub(crate) fn read(list: &Value, entry: fn(&Value) -> Option<ModelEntry>) -> Result<Vec<ModelEntry>, ModelError> {
    let entries = ["data", "models"]
        .iter()
        .find_map(|field| list.get(field).and_then(Value::as_array))
        .or_else(|| list.as_array())
        .ok_or_else(|| ModelError::malformed("the server's list of models has no entries"))?;
    Ok(entries.iter().filter_map(entry).collect())
}

/// What any server of this wire may say about a model.
pub(crate) fn entry(value: &Value) -> Option<ModelEntry> {
    let found = ["id", "name", "model"].iter().find_map(|field| value.get(field).and_then(Value::as_str));
    let id = found.or_else(|| value.as_str()).filter(|id| !id.is_empty())?;
    let window = WINDOWS.iter().find_map(|path| value.pointer(path).and_then(Value::as_u64));
    let context_tokens = window.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0);
    Some(ModelEntry { context_tokens, ..ModelEntry::named(id) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_every_server_are_read() {
        let lists = [
            json!({"object": "list", "data": [{"id": "m", "max_model_len": 4096}, {"object": "no name"}]}),
            json!({"models": [{"name": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}]}),
            json!([{"model": "m", "context_length": 4096}]),
        ];
        for list in lists {
            let expected = ModelEntry { context_tokens: Some(4096), ..ModelEntry::named("m") };
            assert_eq!(read(&list, entry).unwrap(), [expected], "{list}");
        }
        assert_eq!(read(&json!(["m"]), entry).unwrap(), [ModelEntry::named("m")]);
        assert!(read(&json!({"hello": "world"}), entry).is_err());
    }
}
