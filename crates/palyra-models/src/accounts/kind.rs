//! The kinds of providers that an account can be with, and what is known of each without asking anybody.

use palyra_common::config::ModelProviderChoice;
use palyra_common::{env_vars, runtime_contract_enum};

use crate::model_entry::Capability;

runtime_contract_enum! {
    /// What a provider speaks.
    pub enum ProviderKind("provider_kind") {
        /// OpenAI.
        Openai = "openai",
        /// Anthropic.
        Anthropic = "anthropic" | "claude",
        /// Google Gemini.
        Gemini = "gemini" | "google",
        /// OpenRouter.
        Openrouter = "openrouter" | "open_router",
        /// Ollama.
        Ollama = "ollama",
        /// Any server that speaks OpenAI's chat completions, such as llama.cpp, vLLM or LM Studio.
        OpenaiCompatible = "openai_compatible",
    }
}

impl ProviderKind {
    /// Where it is reached unless somebody says otherwise; none where only the operator can know.
    #[must_use]
    pub const fn usual_url(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::Openrouter => Some("https://openrouter.ai/api/v1"),
            Self::Ollama => Some("http://127.0.0.1:11434"),
            Self::OpenaiCompatible => None,
        }
    }

    /// Whether its own service answers nobody without a key.
    #[must_use]
    pub const fn wants_key(self) -> bool {
        match self {
            Self::Openai | Self::Anthropic | Self::Gemini | Self::Openrouter => true,
            Self::Ollama | Self::OpenaiCompatible => false,
        }
    }

    /// The environment variables in which its own programs look for a key, strongest first.
    #[must_use]
    pub const fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::Openai => &[env_vars::OPENAI_API_KEY],
            Self::Anthropic => &[env_vars::ANTHROPIC_API_KEY],
            Self::Gemini => &[env_vars::GEMINI_API_KEY, env_vars::GOOGLE_API_KEY],
            Self::Openrouter => &[env_vars::OPENROUTER_API_KEY],
            Self::Ollama | Self::OpenaiCompatible => &[],
        }
    }

    /// A model to begin with, for people who have a key and no opinion; none where the server has to be asked.
    #[must_use]
    pub const fn first_model(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("gpt-5"),
            Self::Anthropic => Some("claude-sonnet-4-5"),
            Self::Gemini => Some("gemini-2.5-pro"),
            Self::Openrouter => Some("openrouter/auto"),
            Self::Ollama | Self::OpenaiCompatible => None,
        }
    }

    /// The window assumed where nobody says: what its present models have at least. Local servers are often started with less.
    #[must_use]
    pub const fn usual_window(self) -> u32 {
        match self {
            Self::Openai | Self::Openrouter => 128_000,
            Self::Anthropic => 200_000,
            Self::Gemini => 1_000_000,
            Self::Ollama | Self::OpenaiCompatible => 32_768,
        }
    }

    /// What its models can do unless somebody says otherwise. Of local models few can see, so that has to be said.
    #[must_use]
    pub const fn usual_capabilities(self) -> &'static [Capability] {
        match self {
            Self::Openai | Self::Anthropic | Self::Gemini | Self::Openrouter => {
                &[Capability::Tools, Capability::Images, Capability::Files, Capability::StructuredOutput]
            }
            Self::Ollama | Self::OpenaiCompatible => &[Capability::Tools, Capability::StructuredOutput],
        }
    }

    /// The kind that a simple configuration means, if it means an account at all.
    #[must_use]
    pub const fn of_choice(choice: ModelProviderChoice) -> Option<Self> {
        match choice {
            ModelProviderChoice::Openai => Some(Self::Openai),
            ModelProviderChoice::Anthropic => Some(Self::Anthropic),
            ModelProviderChoice::Gemini => Some(Self::Gemini),
            ModelProviderChoice::Openrouter => Some(Self::Openrouter),
            ModelProviderChoice::Ollama => Some(Self::Ollama),
            ModelProviderChoice::OpenaiCompatible => Some(Self::OpenaiCompatible),
            ModelProviderChoice::Auto | ModelProviderChoice::Offline | ModelProviderChoice::Scripted => None,
        }
    }
}
