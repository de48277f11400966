//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use http::{HeaderMap, HeaderName};
use palyra_common::{Clock as _, SystemClock, TokenScope};
use serde_json::{Value, json};

use super::begin::{Wish, begin};
use super::chat_document::{self, Chunks, TellUsage};
use super::conversation::request_of;
use super::error::OpenAiResult;
use super::fields::Fields;
use super::params::{self, Common};
use super::tools::{self, Style};
use super::{ids, messages, models, sse, user_of_models, whole};
use crate::app::App;
use crate::dispatch::{Caller, Refusal, Result};
use crate::http::{ApiError, Body};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: std::result::Result<Body, ApiError>,
) -> OpenAiResult<Response> {
    let may_name_workspaces = caller.has(TokenScope::RunsWrite);
    let caller = user_of_models(&app, &caller)?;
    let Body(body) = body?;
    let request = read(&body)?;
    let key = idempotency_key(&headers)?;
    let wish = Wish {
        said: request.said,
        field: "messages",
        tools: request.tools,
        model: models::choose(&app, &request.common.model)?,
        workspace: request.common.workspace,
        may_name_workspaces,
        after: None,
        max_tool_calls: None,
        request: key.as_deref().map(|key| request_of(key, "chat/completions", &body)),
        key,
    };
    let following = begin(&app, caller, wish).await?;
    let (model, created) = (request.common.model, now());
    if request.common.stream {
        let id = ids::completion(following.run_id(), following.begins_at());
        return Ok(sse::respond(following, Chunks { id, model, created, usage: request.usage }));
    }
    let whole = whole::collect(&app, following).await?;
    Ok(Json(chat_document::whole(whole, &model, created)).into_response())
}

pub(super) struct Request {
    common: Common,
    said: Vec<messages::Said>,
    tools: Vec<palyra_client::api::ClientToolParams>,
    usage: TellUsage,
}

pub(super) fn read(body: &[u8]) -> Result<Request> {
    let mut fields = Fields::of_body(body)?;
    let common = params::common(&mut fields)?;
    let said = messages::read(fields.list("messages")?)?;
    let tools = tools::read(&mut fields, Style::Nested)?;
    let usage = match fields.record("stream_options")? {
        None => TellUsage::Never,
        Some(_) if !common.stream => return Err(Refusal::field("stream_options", "it needs `stream`")),
        Some(mut options) => {
            let wanted = options.flag("include_usage")?;
            options.pass_over(&["include_obfuscation"]);
            options.end()?;
            if wanted { TellUsage::AtTheEnd } else { TellUsage::Never }
        }
    };
    fields.pass_over(&["reasoning_effort", "verbosity"]);
    fields.only_if("n", |value| *value == json!(1), "only one answer is generated")?;
    fields.only_if("logprobs", |value| *value == json!(false), "log probabilities are not available")?;
    fields.only_if("stop", |value| *value == json!([]), "stop sequences are not supported")?;
    fields.only_if("modalities", |value| *value == json!(["text"]), "only text output is supported")?;
    fields.only_if("audio", |_| false, "only text output is supported")?;
    fields.only_if("response_format", is_text, "the answer's format cannot be guaranteed")?;
    fields.only_if("prediction", |_| false, "predicted outputs are not supported")?;
    fields.only_if("web_search_options", |_| false, "Palyra's own tools are always available")?;
    fields.only_if("functions", |_| false, "use `tools`")?;
    fields.only_if("function_call", |_| false, "use `tool_choice`")?;
    fields.end()?;
    Ok(Request { common, said, tools, usage })
}

/// Whether a format is what answers are anyway.
pub(super) fn is_text(format: &Value) -> bool {
    *format == json!({ "type": "text" })
}

/// The key by which a repeated request is known.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>> {
    match headers.get(&IDEMPOTENCY_KEY).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(key)) => Ok(Some(key.to_owned())),
        Some(Err(_)) => Err(Refusal::field(IDEMPOTENCY_KEY.as_str(), "it is not text")),
    }
}

/// Now, in seconds.
pub(super) fn now() -> u64 {
    u64::try_from(SystemClock.now().0 / 1000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: Value) -> std::result::Result<(), String> {
        let mut request = json!({ "model": "palyra", "messages": [{ "role": "user", "content": "x" }] });
        request[name] = value;
        match read(request.to_string().as_bytes()) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.into_envelope().validation_errors[0].field.clone()),
        }
    }

    #[test]
    fn harmless_parameters_are_taken_and_others_refused_by_name() {
        for (name, value) in [
            ("temperature", json!(0.2)),
            ("seed", json!(7)),
            ("user", json!("ada")),
            ("n", json!(1)),
            ("stop", json!(null)),
            ("response_format", json!({"type": "text"})),
            ("logit_bias", json!({})),
            ("logprobs", json!(false)),
            ("max_tokens", json!(5)),
            ("metadata", json!({"workspace": "/w"})),
        ] {
            assert_eq!(with(name, value.clone()), Ok(()), "{name} {value}");
        }
        for (name, value) in [
            ("n", json!(2)),
            ("logprobs", json!(true)),
            ("top_logprobs", json!(3)),
            ("stop", json!("x")),
            ("audio", json!({})),
            ("modalities", json!(["audio"])),
            ("response_format", json!({"type": "json_object"})),
            ("response_format", json!({"type": "json_schema", "json_schema": {}})),
            ("functions", json!([])),
            ("logit_bias", json!({"50256": -100})),
            ("metadata", json!({"workspace": 7})),
            ("stream_options", json!({"include_usage": true})),
            ("frobnicate", json!(1)),
            ("stream", json!("yes")),
            ("model", json!(null)),
            ("messages", json!({})),
        ] {
            assert_eq!(with(name, value.clone()), Err(name.to_owned()), "{name} {value}");
        }
    }
}
