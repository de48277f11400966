//! What OpenRouter's refusals mean, beyond what all servers have in common.

use serde_json::Value;

use crate::error::ModelErrorClass;
use crate::wire::{Refusal, Verdict};

/// OpenRouter's own habits: numbers for codes, and the cause in `metadata`.
pub(super) fn judge(refusal: &Refusal) -> Verdict {
    let code = refusal.status.or_else(|| code_of(&refusal.body));
    let metadata = refusal.body.pointer("/error/metadata").or_else(|| refusal.body.get("metadata"));
    let flagged = metadata.and_then(|known| known.get("reasons")).is_some_and(Value::is_array);
    let in_flight = metadata
        .and_then(|known| known.get("limit_source"))
        .is_some_and(|source| source == "openrouter_in_flight_budget");
    let message = refusal.message.to_ascii_lowercase();
    let class = match code {
        Some(403) if flagged => Some(ModelErrorClass::ContentPolicy),
        // Too much is under way at the same time; this one passes.
        Some(402) if in_flight => Some(ModelErrorClass::RateLimit),
        Some(402) => Some(ModelErrorClass::Quota),
        // Nobody behind it can serve the request as it is; waiting does not change that.
        Some(404 | 503) if message.contains("no endpoints found") || message.contains("no allowed providers") => {
            Some(ModelErrorClass::Permanent)
        }
        Some(502..=504 | 520..=530) => Some(ModelErrorClass::Transient),
        _ => None,
    };
    Verdict { class, retry_after: None }
}

fn code_of(body: &Value) -> Option<u16> {
    let code = body.pointer("/error/code").or_else(|| body.get("code"))?;
    code.as_u64().and_then(|code| u16::try_from(code).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_metadata_are_understood() {
        let table = [
            (
                json!({"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}}),
                Some(ModelErrorClass::ContentPolicy),
            ),
            (json!({"code": 402, "message": "Insufficient credits"}), Some(ModelErrorClass::Quota)),
            (json!({"code": 502, "message": "Provider returned error"}), Some(ModelErrorClass::Transient)),
            (json!({"code": 403, "message": "not yours"}), None),
        ];
        for (body, class) in table {
            let refusal = Refusal { body: body.clone(), ..Refusal::default() };
            assert_eq!(judge(&refusal).class, class, "{body}");
        }
        let nobody = Refusal {
            status: Some(404),
            message: "No endpoints found that support tool use".into(),
            ..Refusal::default()
        };
        assert_eq!(judge(&nobody).class, Some(ModelErrorClass::Permanent));
    }
}
