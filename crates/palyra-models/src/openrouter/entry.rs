//! OpenRouter's list of models: windows, abilities and prices.

use serde_json::Value;

use crate::chat::{entry, micro_usd};
use crate::model_entry::{Capability, ModelEntry};

/// Tokens that the prices of our entries are for.
const MILLION: f64 = 1_000_000.0;

/// Reads one entry of the list.
pub(super) fn read(value: &Value) -> Option<ModelEntry> {
    let plain = entry(value)?;
    let number = |path: &str| value.pointer(path).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    Some(ModelEntry {
        name: value.get("name").and_then(Value::as_str).map(str::to_owned),
        max_output_tokens: number("/top_provider/max_completion_tokens"),
        capabilities: capabilities(value),
        input_price: price(value, "/pricing/prompt"),
        output_price: price(value, "/pricing/completion"),
        ..plain
    })
}

/// Dollars for a token, written as text. Negative ones mean that it depends.
fn price(value: &Value, path: &str) -> Option<u64> {
    let text = value.pointer(path)?;
    let dollars = text.as_str().and_then(|text| text.parse::<f64>().ok()).or_else(|| text.as_f64())?;
    micro_usd((dollars * MILLION * 1e6).round() / 1e6)
}

fn capabilities(value: &Value) -> Option<Vec<Capability>> {
    let words = |path: &str| value.pointer(path).and_then(Value::as_array);
    let has = |path: &str, word: &str| words(path).is_some_and(|list| list.iter().any(|known| known == word));
    let (parameters, inputs) = ("/supported_parameters", "/architecture/input_modalities");
    words(parameters)?;
    let known = [
        (has(parameters, "tools"), Capability::Tools),
        (has(inputs, "image"), Capability::Images),
        (has(inputs, "file"), Capability::Files),
        (has(parameters, "reasoning"), Capability::Reasoning),
        (has(parameters, "structured_outputs"), Capability::StructuredOutput),
    ];
    Some(known.into_iter().filter(|(has, _)| *has).map(|(_, capability)| capability).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn windows_abilities_and_prices_are_read() {
        let value = json!({
            "id": "vendor/model", "name": "Vendor: Model", "context_length": 1_000_000,
            "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
            "pricing": {"prompt": "0.00000125", "completion": "0.00001", "request": "0"},
            "top_provider": {"context_length": 200_000, "max_completion_tokens": 8192},
            "supported_parameters": ["tools", "reasoning", "max_tokens"],
        });
        let expected = ModelEntry {
            name: Some("Vendor: Model".into()),
            context_tokens: Some(200_000),
            max_output_tokens: Some(8192),
            capabilities: Some(vec![Capability::Tools, Capability::Images, Capability::Reasoning]),
            input_price: Some(1_250_000),
            output_price: Some(10_000_000),
            ..ModelEntry::named("vendor/model")
        };
        assert_eq!(read(&value), Some(expected));
        let auto = json!({"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "what"}});
        assert_eq!(read(&auto), Some(ModelEntry::named("openrouter/auto")));
        assert_eq!(read(&json!({})), None);
    }
}
