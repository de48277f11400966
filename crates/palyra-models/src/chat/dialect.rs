//! What a server has refused so far.
//!
//! Servers differ in which optional fields they know, and so do the models of one server. The first request has everything that was
//! asked for; a refusal that names a field teaches to leave it out or to say it differently, for this model, as long as the
//! process lives. What has been learned is never unlearned, so every request is refused at most once per field.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::error::ModelError;

/// Most models whose habits are remembered; who asks for more starts over.
const MAX_MODELS: usize = 256;

/// What a model turned out not to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lacks {
    /// `stream_options`.
    StreamOptions,
    /// `max_tokens`: the newer field is wanted.
    MaxTokens,
    /// `max_completion_tokens`: the older field is wanted.
    MaxCompletionTokens,
    /// `response_format` with a schema.
    JsonSchema,
    /// `response_format` at all.
    ResponseFormat,
    /// How much to think.
    Effort,
    /// Sealed thoughts.
    SealedReasoning,
    /// Thoughts given back.
    GivenBack,
    /// `tool_choice`.
    ToolChoice,
    /// `prompt_cache_key`.
    CacheKey,
}

/// Whether a refusal taught something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learned {
    /// The next request will look different.
    Something,
    /// The same request would be sent again.
    Nothing,
}

/// Words of a refusal and what they mean, the more exact first.
const LESSONS: &[(&[&str], Lacks)] = &[
    (&["stream_options"], Lacks::StreamOptions),
    (&["include_usage"], Lacks::StreamOptions),
    (&["encrypted content"], Lacks::SealedReasoning),
    (&["encrypted_content"], Lacks::SealedReasoning),
    (&["reasoning_content"], Lacks::GivenBack),
    (&["reasoning_details"], Lacks::GivenBack),
    (&["reasoning_effort"], Lacks::Effort),
    (&["reasoning.effort"], Lacks::Effort),
    (&["reasoning.summary"], Lacks::Effort),
    (&["prompt_cache_key"], Lacks::CacheKey),
    (&["json_schema"], Lacks::JsonSchema),
    (&["response_format"], Lacks::ResponseFormat),
    (&["tool_choice"], Lacks::ToolChoice),
];

/// What is known about the models of one server.
#[derive(Debug, Default)]
pub(crate) struct Dialect(Mutex<BTreeMap<String, BTreeSet<Lacks>>>);

impl Dialect {
    /// What this model does not know.
    pub(crate) fn of(&self, model: &str) -> BTreeSet<Lacks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(model).cloned().unwrap_or_default()
    }

    /// Learns from a refusal.
    pub(crate) fn learn(&self, model: &str, refusal: &ModelError) -> Learned {
        if !matches!(refusal.status, Some(400 | 404 | 415 | 422)) {
            return Learned::Nothing;
        }
        let Some(lack) = lesson(&refusal.message.to_ascii_lowercase()) else { return Learned::Nothing };
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() >= MAX_MODELS && !models.contains_key(model) {
            models.clear();
        }
        let known = models.entry(model.to_owned()).or_default();
        // A schema that is refused twice means that the whole field is.
        let lack = if lack == Lacks::JsonSchema && known.contains(&lack) { Lacks::ResponseFormat } else { lack };
        if known.insert(lack) { Learned::Something } else { Learned::Nothing }
    }
}

fn lesson(text: &str) -> Option<Lacks> {
    if text.contains("max_completion_tokens") && text.contains("max_tokens") {
        // The field that is refused is named first.
        let (older, newer) = (text.find("max_tokens"), text.find("max_completion_tokens"));
        return Some(if older < newer { Lacks::MaxTokens } else { Lacks::MaxCompletionTokens });
    }
    if text.contains("max_completion_tokens") {
        return Some(Lacks::MaxCompletionTokens);
    }
    LESSONS.iter().find(|(words, _)| words.iter().all(|word| text.contains(word))).map(|(_, lack)| *lack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ModelErrorClass;

    fn refusal(text: &str) -> ModelError {
        ModelError::new(ModelErrorClass::Permanent, text).status(400)
    }

    #[test]
    fn refusals_teach_once_and_one_model_only() {
        let dialect = Dialect::default();
        let table = [
            ("unknown model", None),
            ("extra field: stream_options", Some(Lacks::StreamOptions)),
            ("'max_tokens' is not supported, use 'max_completion_tokens' instead", Some(Lacks::MaxTokens)),
            ("Unrecognized request argument supplied: reasoning_effort", Some(Lacks::Effort)),
            ("'response_format' of type 'json_schema' is not supported with this model", Some(Lacks::JsonSchema)),
            ("Encrypted content is not supported with this model.", Some(Lacks::SealedReasoning)),
            ("tool_choice must be auto", Some(Lacks::ToolChoice)),
        ];
        for (text, lack) in table {
            let expected = if lack.is_some() { Learned::Something } else { Learned::Nothing };
            assert_eq!(dialect.learn("m", &refusal(text)), expected, "{text}");
            assert!(lack.is_none_or(|lack| dialect.of("m").contains(&lack)), "{text}");
        }
        assert_eq!(dialect.learn("m", &refusal("extra field: stream_options")), Learned::Nothing);
        assert_eq!(dialect.learn("m", &refusal("json_schema?")), Learned::Something, "the whole field now");
        assert_eq!(dialect.learn("m", &refusal("json_schema?")), Learned::Nothing);
        assert!(dialect.of("other").is_empty());
        let server_error = ModelError::new(ModelErrorClass::Transient, "stream_options").status(500);
        assert_eq!(dialect.learn("other", &server_error), Learned::Nothing);
    }

    #[test]
    fn the_refused_length_field_is_the_one_named_first() {
        let newer = "unsupported parameter max_completion_tokens, did you mean max_tokens?";
        assert_eq!(lesson(newer), Some(Lacks::MaxCompletionTokens));
    }
}
