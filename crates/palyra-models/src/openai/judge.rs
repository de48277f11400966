//! What OpenAI's refusals mean, beyond what all servers have in common.

use crate::error::ModelErrorClass;
use crate::wire::{Refusal, Verdict};

/// OpenAI's own codes.
pub(super) fn judge(refusal: &Refusal) -> Verdict {
    let message = refusal.message.to_ascii_lowercase();
    let code = |word: &str| refusal.codes.contains(word);
    let class = if message.contains("request too large") {
        // More than the account may send in a minute: no waiting helps, a shorter request does.
        Some(ModelErrorClass::ContextTooLong)
    } else if code("invalid_prompt") || code("safety") || message.contains("violating our usage policy") {
        Some(ModelErrorClass::ContentPolicy)
    } else if code("billing_not_active")
        || code("billing_hard_limit")
        || message.contains("exceeded your current quota")
    {
        Some(ModelErrorClass::Quota)
    } else if code("unsupported_country") || code("organization_") || message.contains("must be verified") {
        Some(ModelErrorClass::Permission)
    } else if code("image_parse_error") || code("invalid_image") || code("invalid_base64") || code("image_too_") {
        Some(ModelErrorClass::Permanent)
    } else {
        None
    };
    Verdict { class, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_only_openai_has_are_known() {
        let table = [
            (
                "rate_limit_exceeded tokens",
                "Request too large for m in organization o",
                Some(ModelErrorClass::ContextTooLong),
            ),
            ("invalid_prompt", "", Some(ModelErrorClass::ContentPolicy)),
            ("billing_not_active", "", Some(ModelErrorClass::Quota)),
            ("unsupported_country_region_territory", "", Some(ModelErrorClass::Permission)),
            ("invalid_image_format", "", Some(ModelErrorClass::Permanent)),
            ("rate_limit_exceeded", "slow", None),
        ];
        for (codes, message, class) in table {
            let refusal = Refusal { codes: codes.into(), message: message.into(), ..Refusal::default() };
            assert_eq!(judge(&refusal).class, class, "{codes}");
        }
    }
}
