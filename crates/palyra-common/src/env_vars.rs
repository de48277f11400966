//! Every environment variable that Palyra reads, named once.
//!
//! Each configuration key also has a variable of its own, whose name [`standard_name`] derives from the key.

/// Names the configuration file to use instead of searching for one.
pub const PALYRA_CONFIG: &str = "PALYRA_CONFIG";
/// Moves all state to another directory.
pub const PALYRA_STATE_ROOT: &str = "PALYRA_STATE_ROOT";
/// Second of the two acknowledgements that a public bind needs.
pub const PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK: &str = "PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK";
/// Address of the daemon that the command line speaks to.
pub const PALYRA_ENDPOINT: &str = "PALYRA_ENDPOINT";
/// Token for that daemon.
pub const PALYRA_TOKEN: &str = "PALYRA_TOKEN";
/// File with the authority that is trusted for it.
pub const PALYRA_CA_FILE: &str = "PALYRA_CA_FILE";
/// Names the SMT solver that `palyra policy prove` uses.
pub const PALYRA_SMT_SOLVER: &str = "PALYRA_SMT_SOLVER";
/// Base address of an OpenAI-compatible server.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";
/// Key for an OpenAI-compatible server.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";
/// Model to ask an OpenAI-compatible server for.
pub const OPENAI_MODEL: &str = "OPENAI_MODEL";
/// Key for Anthropic.
pub const ANTHROPIC_API_KEY: &str = "ANTHROPIC_API_KEY";
/// Base address of a server that speaks like Anthropic's.
pub const ANTHROPIC_BASE_URL: &str = "ANTHROPIC_BASE_URL";
/// Key for Google Gemini.
pub const GEMINI_API_KEY: &str = "GEMINI_API_KEY";
/// Key for Google Gemini under its older name.
pub const GOOGLE_API_KEY: &str = "GOOGLE_API_KEY";
/// Key for OpenRouter.
pub const OPENROUTER_API_KEY: &str = "OPENROUTER_API_KEY";
/// Where Ollama listens.
pub const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// Base of the user's configuration directories.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Base of the user's state directories.
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
/// The user's home directory.
pub const HOME: &str = "HOME";

/// One variable with what it does, for reference pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvVariable {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

/// The variables that are not derived from a configuration key.
pub const VARIABLES: &[EnvVariable] = &[
    EnvVariable { name: PALYRA_CONFIG, doc: "Path of the configuration file; it must exist." },
    EnvVariable { name: PALYRA_STATE_ROOT, doc: "Directory that holds all state of this installation." },
    EnvVariable {
        name: PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK,
        doc: "Set to `true`, together with `deployment.dangerous_remote_bind_ack`, to allow a bind that other machines can reach.",
    },
    EnvVariable {
        name: PALYRA_ENDPOINT,
        doc: "Address of the daemon that `palyra` connects to, such as `https://agents.example:7142`; by default the one of the state root.",
    },
    EnvVariable { name: PALYRA_TOKEN, doc: "Token for that daemon, unless `--token` names another source." },
    EnvVariable {
        name: PALYRA_CA_FILE,
        doc: "File with the certificate authority (PEM) to trust for that daemon, instead of the system's.",
    },
    EnvVariable {
        name: PALYRA_SMT_SOLVER,
        doc: "Path of the z3 or cvc5 that `palyra policy prove` uses; by default the first one on PATH.",
    },
    EnvVariable {
        name: OPENAI_BASE_URL,
        doc: "Base address of an OpenAI-compatible server; read for `model.base_url` when PALYRA_MODEL_BASE_URL is not set.",
    },
    EnvVariable {
        name: OPENAI_API_KEY,
        doc: "Key for that server; makes `model.api_key` the reference `env:OPENAI_API_KEY` when PALYRA_MODEL_API_KEY is not set.",
    },
    EnvVariable {
        name: OPENAI_MODEL,
        doc: "Model to ask for; read for `model.name` when PALYRA_MODEL_NAME is not set.",
    },
    EnvVariable {
        name: ANTHROPIC_API_KEY,
        doc: "Key for Anthropic, read when `model.provider` is `anthropic` and no `model.api_key` is set; otherwise offered by `palyra models discover`.",
    },
    EnvVariable {
        name: ANTHROPIC_BASE_URL,
        doc: "Base address of a server that speaks like Anthropic's, used with ANTHROPIC_API_KEY where no `model.base_url` is set; also asked by `palyra models discover`.",
    },
    EnvVariable {
        name: GEMINI_API_KEY,
        doc: "Key for Google Gemini, read when `model.provider` is `gemini` and no `model.api_key` is set; otherwise offered by `palyra models discover`.",
    },
    EnvVariable { name: GOOGLE_API_KEY, doc: "Same as GEMINI_API_KEY, which takes precedence." },
    EnvVariable {
        name: OPENROUTER_API_KEY,
        doc: "Key for OpenRouter, read when `model.provider` is `openrouter` and no `model.api_key` is set; otherwise offered by `palyra models discover`.",
    },
    EnvVariable {
        name: OLLAMA_HOST,
        doc: "Where Ollama listens, read when `model.provider` is `ollama` and no `model.base_url` is set; otherwise offered by `palyra models discover`.",
    },
    EnvVariable {
        name: XDG_CONFIG_HOME,
        doc: "Base of the user's configuration; `palyra/palyra.toml` is read from there.",
    },
    EnvVariable { name: XDG_STATE_HOME, doc: "Base of the user's state; `palyra` below it is the default state root." },
    EnvVariable {
        name: HOME,
        doc: "Home directory, from which the two above default to `.config` and `.local/state`.",
    },
];

/// The variable of a configuration key: `run.max_turns` is `PALYRA_RUN_MAX_TURNS`.
#[must_use]
pub fn standard_name(key: &str) -> String {
    let upper: String =
        key.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    format!("PALYRA_{upper}")
}
