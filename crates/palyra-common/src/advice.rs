//! What to do about a model that failed, by the stable code of the failure.
//!
//! One place for all who tell a person: the errors of model calls carry it as their hint, and the command line adds it to the line that says why a run
//! ended.

/// What a person can do about a failure of this code; nothing is known about codes that have nothing to do with models.
#[must_use]
pub fn model_advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "model_auth_failed" => {
            "check the key (`model.api_key`, models.toml or the vendor's variable such as OPENAI_API_KEY) and that it belongs to this server; a \
             running daemon keeps the environment it was started with, so restart it with `palyra daemon stop`; `palyra models test` checks the \
             key"
        }
        "model_permission_denied" => {
            "the key is valid but has no access to this model; choose another with `palyra models set-default`"
        }
        "model_rate_limited" => "wait a moment and try again, or lower `run.max_concurrent`",
        "model_quota_exhausted" => "add credit at the provider or use another key; waiting does not help",
        "model_unavailable" => "try again later, or use another model",
        "model_request_rejected" => {
            "`palyra models list` followed by the provider's name lists the models that its server offers; `palyra models test` checks one"
        }
        "model_context_too_long" => {
            "use a model with a larger window (`palyra models list`) or start its server with one (llama.cpp: `--ctx-size 16384`); in a long \
             conversation, start a new session or shorten the task or its attachments; `context_tokens` in models.toml (`model.context_tokens` \
             without one) says how large the window is, and must not say more than the server has"
        }
        "model_content_refused" | "content_policy" => "rephrase the task, or use another model",
        "model_answer_malformed" => {
            "try again; if the error persists, use another model, or check that the configured provider matches the server"
        }
        "model_empty_answer" => "try again, or use another model",
        "model_unreachable" => {
            "check the network, that the server is running, and the base URL (OPENAI_BASE_URL, `model.base_url` or models.toml); `palyra models test` checks the connection"
        }
        "model_timeout" => {
            "raise `model.connect_timeout_seconds` or `model.idle_timeout_seconds` if the model is slow to answer"
        }
        _ => return None,
    })
}
