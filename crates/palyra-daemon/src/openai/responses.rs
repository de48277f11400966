//! `POST /v1/responses`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response as HttpResponse};
use axum::{Extension, Json};
use http::HeaderMap;
use palyra_client::api::ClientToolParams;
use palyra_common::{RunId, TokenScope};
use serde_json::{Value, json};

use super::begin::{Wish, begin, own_run, unknown_response};
use super::chat::{idempotency_key, is_text, now};
use super::conversation::request_of;
use super::error::OpenAiResult;
use super::fields::Fields;
use super::following::Ending;
use super::items::Item;
use super::messages::Said;
use super::params::{self, Common};
use super::response_document::{self, Response, Standing};
use super::response_stream::Parts;
use super::tools::{self, Style};
use super::whole::Whole;
use super::{ids, items, models, references, sse, user_of_models, whole};
use crate::app::App;
use crate::dispatch::{Caller, Result};
use crate::http::{ApiError, Body};

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: std::result::Result<Body, ApiError>,
) -> OpenAiResult<HttpResponse> {
    let may_name_workspaces = caller.has(TokenScope::RunsWrite);
    let caller = user_of_models(&app, &caller)?;
    let Body(body) = body?;
    let request = read(&body)?;
    let after = match &request.previous {
        Some(name) => Some(previous_run(&app, &caller, name).await?),
        None => None,
    };
    let key = idempotency_key(&headers)?;
    let mut said: Vec<Said> = request.instructions.iter().cloned().map(Said::Instructions).collect();
    said.extend(references::resolve(&app, &caller, request.input).await?);
    let wish = Wish {
        said,
        field: "input",
        tools: request.tools,
        model: models::choose(&app, &request.common.model)?,
        workspace: request.common.workspace,
        may_name_workspaces,
        after,
        max_tool_calls: request.max_tool_calls,
        request: key.as_deref().map(|key| request_of(key, "responses", &body)),
        key,
    };
    let following = begin(&app, caller, wish).await?;
    let response = Response {
        id: ids::response(following.run_id(), following.begins_at()),
        created: now(),
        model: request.common.model,
        instructions: request.instructions,
        previous: request.previous,
        metadata: request.common.metadata,
        tools: request.shown_tools,
    };
    if request.common.stream {
        return Ok(sse::respond(following, Parts::new(response)));
    }
    let whole = whole::collect(&app, following).await?;
    Ok(Json(document(&response, &whole)).into_response())
}

fn document(response: &Response, whole: &Whole) -> Value {
    let mut output = Vec::new();
    if !whole.text.is_empty() {
        output.push(response.message(&whole.text, "completed"));
    }
    if let Ending::Calls(calls) = &whole.ending {
        output.extend(calls.iter().map(|call| response_document::call(call, "completed")));
    }
    response.document(&Standing::Ended(&whole.ending), &output, Some(whole.usage))
}

async fn previous_run(app: &Arc<App>, caller: &Caller, name: &str) -> Result<RunId> {
    let Some(run_id) = ids::read_response(name) else { return Err(unknown_response(name)) };
    own_run(app, caller, run_id).await.map_err(|_| unknown_response(name))?;
    Ok(run_id)
}

pub(super) struct Request {
    common: Common,
    input: Vec<Item>,
    instructions: Option<String>,
    previous: Option<String>,
    tools: Vec<ClientToolParams>,
    /// The same tools as they are shown in the answer.
    shown_tools: Value,
    max_tool_calls: Option<u32>,
}

pub(super) fn read(body: &[u8]) -> Result<Request> {
    let mut fields = Fields::of_body(body)?;
    let common = params::common(&mut fields)?;
    let instructions = fields.text("instructions")?;
    let input = items::read(fields.take("input"))?;
    let previous = fields.text("previous_response_id")?;
    let tools = tools::read(&mut fields, Style::Flat)?;
    let shown_tools = tools
        .iter()
        .map(|tool| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.input_schema, "strict": false,
            })
        })
        .collect();
    let max_tool_calls = fields.count("max_tool_calls")?;
    if let Some(mut text) = fields.record("text")? {
        text.pass_over(&["verbosity"]);
        text.only_if("format", is_text, "the answer's format cannot be guaranteed")?;
        text.end()?;
    }
    if let Some(mut options) = fields.record("stream_options")? {
        options.pass_over(&["include_obfuscation"]);
        options.end()?;
    }
    // How a model thinks, and what a provider keeps: hints without effect here.
    fields.pass_over(&["reasoning", "max_output_tokens", "truncation"]);
    fields.only_if("include", |value| *value == json!([]), "no additional data is available")?;
    fields.only_if(
        "background",
        |value| *value == json!(false),
        "background responses are not supported; runs continue without a client anyway",
    )?;
    fields.only_if("conversation", |_| false, "use `previous_response_id`")?;
    fields.only_if("prompt", |_| false, "stored prompts are not supported")?;
    fields.end()?;
    Ok(Request { common, input, instructions, previous, tools, shown_tools, max_tool_calls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_honoured_taken_or_refused_by_name() {
        let with = |name: &str, value: Value| {
            let mut request = json!({ "model": "palyra", "input": "x" });
            request[name] = value;
            match read(request.to_string().as_bytes()) {
                Ok(_) => Ok(()),
                Err(refusal) => Err(refusal.into_envelope().validation_errors[0].field.clone()),
            }
        };
        for (name, value) in [
            ("instructions", json!("be brief")),
            ("reasoning", json!({"effort": "low"})),
            ("text", json!({"format": {"type": "text"}, "verbosity": "low"})),
            ("background", json!(false)),
            ("include", json!([])),
            ("store", json!(false)),
            ("max_tool_calls", json!(3)),
        ] {
            assert_eq!(with(name, value.clone()), Ok(()), "{name} {value}");
        }
        for (name, value, field) in [
            ("text", json!({"format": {"type": "json_schema"}}), "text.format"),
            ("background", json!(true), "background"),
            ("conversation", json!("conv_1"), "conversation"),
            ("include", json!(["message.output_text.logprobs"]), "include"),
            ("tools", json!([{"type": "web_search"}]), "tools[0].type"),
            ("max_tool_calls", json!(-1), "max_tool_calls"),
            ("previous_response_id", json!(7), "previous_response_id"),
            ("input", json!(null), "input"),
            ("messages", json!([]), "messages"),
        ] {
            assert_eq!(with(name, value.clone()), Err(field.to_owned()), "{name} {value}");
        }
    }
}
