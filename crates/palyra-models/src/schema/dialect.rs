//! What each wire accepts of JSON Schema.

use serde::Serialize;

/// The part of JSON Schema that a wire accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaDialect {
    /// What every server accepts that turns schemas into grammars: llama.cpp and all built on it, Ollama, vLLM, and gateways to anybody.
    /// Objects only (no booleans), a type everywhere, no references, no patterns, small repetitions.
    Portable,
    /// OpenAI's own servers, where tools are not strict.
    OpenAi,
    /// OpenAI's strict answers.
    OpenAiStrict,
    /// Anthropic's own servers.
    Anthropic,
    /// Anthropic's answers of a given shape: closed objects, no bounds.
    AnthropicStrict,
    /// Gemini's `parametersJsonSchema` and `responseJsonSchema`.
    GeminiJson,
    /// Gemini's older `parameters` and `responseSchema`: a subset of OpenAPI's schemas, with one type per schema and `nullable`.
    GeminiOpenApi,
}

/// An assertion or annotation that only some wires accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    MinLength,
    MaxLength,
    Pattern,
    Format,
    MinItems,
    MaxItems,
    UniqueItems,
    PrefixItems,
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
    MultipleOf,
    Default,
    /// Alternatives beside other assertions.
    AnyOfBeside,
}

/// How a schema that accepts anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anything {
    /// Without a type.
    Untyped,
    /// With a list of all types, unless there is nothing to say about it at all.
    AllTypes,
}

/// Everything a dialect accepts. `None` bounds nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepts {
    pub(super) keywords: &'static [Keyword],
    pub(super) formats: &'static [&'static str],
    pub(super) anything: Anything,
    /// Largest count of characters or items: grammars spell repetitions out, and a large one is refused or takes minutes.
    pub(super) most_repeated: Option<u64>,
    /// Largest magnitude of a bound of numbers.
    pub(super) largest_bound: Option<f64>,
}

impl Accepts {
    pub(super) fn takes(&self, keyword: Keyword) -> bool {
        self.keywords.contains(&keyword)
    }
}

/// Formats that vendors document for strings.
const STRING_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// The format of numbers and texts that the OpenAPI subset knows; any other is refused.
const OPEN_API_FORMATS: &[&str] = &["enum", "date-time", "int32", "int64", "float", "double"];
/// Integers beyond this are not exact in the doubles that most servers read them into.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl SchemaDialect {
    /// All dialects.
    pub const ALL: [Self; 7] = [
        Self::Portable,
        Self::OpenAi,
        Self::OpenAiStrict,
        Self::Anthropic,
        Self::AnthropicStrict,
        Self::GeminiJson,
        Self::GeminiOpenApi,
    ];

    /// What a server takes that speaks a vendor's wire: only the vendor's own is known to take more than all do.
    pub(crate) fn of_host(host: Option<&str>) -> Self {
        match host {
            Some("api.openai.com") => Self::OpenAi,
            Some("api.anthropic.com") => Self::Anthropic,
            _ => Self::Portable,
        }
    }

    pub(super) const fn accepts(self) -> Accepts {
        use Keyword as K;
        match self {
            Self::Portable => Accepts {
                keywords: &[K::MinLength, K::MaxLength, K::MinItems, K::MaxItems, K::Minimum, K::Maximum, K::Default],
                formats: &[],
                anything: Anything::AllTypes,
                most_repeated: Some(100),
                largest_bound: Some(EXACT),
            },
            Self::OpenAi | Self::Anthropic => Accepts {
                keywords: &[
                    K::MinLength,
                    K::MaxLength,
                    K::Pattern,
                    K::Format,
                    K::MinItems,
                    K::MaxItems,
                    K::UniqueItems,
                    K::PrefixItems,
                    K::Minimum,
                    K::Maximum,
                    K::ExclusiveMinimum,
                    K::ExclusiveMaximum,
                    K::MultipleOf,
                    K::Default,
                    K::AnyOfBeside,
                ],
                formats: STRING_FORMATS,
                anything: Anything::Untyped,
                most_repeated: None,
                largest_bound: None,
            },
            Self::OpenAiStrict => Accepts {
                keywords: &[
                    K::Pattern,
                    K::Format,
                    K::MinItems,
                    K::MaxItems,
                    K::Minimum,
                    K::Maximum,
                    K::ExclusiveMinimum,
                    K::ExclusiveMaximum,
                    K::MultipleOf,
                ],
                formats: STRING_FORMATS,
                anything: Anything::Untyped,
                most_repeated: None,
                largest_bound: None,
            },
            Self::AnthropicStrict => Accepts {
                keywords: &[K::Format, K::Default],
                formats: STRING_FORMATS,
                anything: Anything::Untyped,
                most_repeated: None,
                largest_bound: None,
            },
            Self::GeminiJson => Accepts {
                keywords: &[K::Format, K::MinItems, K::MaxItems, K::PrefixItems, K::Minimum, K::Maximum, K::Default],
                formats: STRING_FORMATS,
                anything: Anything::Untyped,
                most_repeated: None,
                largest_bound: None,
            },
            Self::GeminiOpenApi => Accepts {
                keywords: &[
                    K::MinLength,
                    K::MaxLength,
                    K::Pattern,
                    K::Format,
                    K::MinItems,
                    K::MaxItems,
                    K::Minimum,
                    K::Maximum,
                    K::Default,
                ],
                formats: OPEN_API_FORMATS,
                anything: Anything::AllTypes,
                most_repeated: None,
                largest_bound: None,
            },
        }
    }
}
