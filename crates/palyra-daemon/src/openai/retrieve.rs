//! `GET /v1/responses/{id}`: a response of before, read from its run's tape, at once or with `stream`.
//!
//! Nothing was kept about it besides the run, so what the request said about itself (its instructions, its metadata, its tools) is not told again. A response that is
//! under way is told as such, without waiting; as a stream it is followed to its end.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse as _, Response as HttpResponse};
use axum::{Extension, Json};
use palyra_agent::RunRow;
use palyra_models::Usage;
use serde_json::{Map, json};

use super::begin::{follow, own_run, unknown_response};
use super::error::OpenAiResult;
use super::following::{Ending, Piece};
use super::response_document::{self, Response, Standing};
use super::response_stream::Parts;
use super::{ids, sse, unsupported, user_of_models};
use crate::app::App;
use crate::dispatch::{Caller, Refusal, Result};

/// How long the tape of a run that is not over may be silent before its response counts as under way.
const A_MOMENT: Duration = Duration::from_millis(250);

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    name: std::result::Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> OpenAiResult<HttpResponse> {
    let caller = user_of_models(&app, &caller)?;
    let Ok(Path(name)) = name else { return Err(unknown_response("(not a text)").into()) };
    let in_parts = in_parts(query.as_deref().unwrap_or_default())?;
    let Some((run_id, from_seq)) = ids::read_response_place(&name) else { return Err(unknown_response(&name).into()) };
    let run = begun(&app, &caller, run_id, from_seq).await?.ok_or_else(|| unknown_response(&name))?;
    let response = Response {
        id: name,
        created: u64::try_from(run.created_at.0 / 1000).unwrap_or(0),
        model: run.model.split_once('/').map_or(run.model.as_str(), |(_, model)| model).to_owned(),
        instructions: None,
        previous: None,
        metadata: Map::new(),
        tools: json!([]),
    };
    if in_parts {
        let following = follow(&app, caller, run_id, from_seq, None).await?;
        return Ok(sse::respond(following, Parts::new(response)));
    }
    let told = tell(&app, caller, &run, from_seq).await?;
    let message = |status| match told.text.as_str() {
        "" => Vec::new(),
        text => vec![response.message(text, status)],
    };
    let document = match &told.end {
        End::Ended(ending) => {
            let mut output = message("completed");
            if let Ending::Calls(calls) = ending {
                output.extend(calls.iter().map(|call| response_document::call(call, "completed")));
            }
            response.document(&Standing::Ended(ending), &output, Some(told.usage))
        }
        // What was said in a turn that is not over may be said differently yet.
        End::UnderWay => response.document(&Standing::InProgress, &[], None),
        End::Failed(why) => response.document(&Standing::Failed(why.clone()), &message("incomplete"), Some(told.usage)),
    };
    Ok(Json(document).into_response())
}

/// Reads the query: whether the response is wanted in parts. What cannot be honoured is refused by name.
fn in_parts(query: &str) -> Result<bool> {
    let mut in_parts = false;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match (&*name, &*value) {
            ("stream", "true") => in_parts = true,
            ("stream", "false") | ("include_obfuscation", _) => {}
            ("stream", _) => return Err(Refusal::field("stream", "it must be true or false")),
            ("starting_after", _) => {
                return Err(unsupported("starting_after", "a response is always streamed from its beginning"));
            }
            (other, _) => return Err(unsupported(other, "no additional data is available")),
        }
    }
    Ok(in_parts)
}

/// The run of a response that begins at this position of its tape, if it is the caller's and did begin.
pub(super) async fn begun(
    app: &App,
    caller: &Caller,
    run_id: palyra_common::RunId,
    from_seq: u64,
) -> Result<Option<RunRow>> {
    let Ok(run) = own_run(app, caller, run_id).await else { return Ok(None) };
    let last = app.engine.last_seq(run_id).await?;
    Ok((1..=last).contains(&from_seq).then_some(run))
}

/// What a tape tells of a response.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) text: String,
    pub(super) end: End,
    pub(super) usage: Usage,
}

/// How far a response is.
#[derive(Debug)]
pub(super) enum End {
    Ended(Ending),
    UnderWay,
    Failed(String),
}

/// Reads a response from its run's tape, without waiting for what is not there yet.
pub(super) async fn tell(app: &Arc<App>, caller: Caller, run: &RunRow, from_seq: u64) -> Result<Told> {
    let is_over = run.phase.is_terminal();
    let mut following = follow(app, caller, run.run_id, from_seq, None).await?.no_longer_silent_than(A_MOMENT);
    let mut text = String::new();
    let end = loop {
        match following.next().await {
            Ok(Some(Piece::Text(more))) => text.push_str(&more),
            Ok(Some(Piece::Done(ending))) => break End::Ended(ending),
            Ok(Some(Piece::Silence | Piece::Waiting(_))) if !is_over => break End::UnderWay,
            Ok(Some(_)) => {}
            Ok(None) => return Err(Refusal::internal("a response ended without its final event")),
            Err(refusal) if is_over && refusal.envelope().code == "run_without_answer" => {
                break End::Failed(refusal.envelope().message.clone());
            }
            Err(refusal) => return Err(refusal),
        }
    };
    Ok(Told { text, end, usage: following.usage() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_query_asks_for_is_done_or_refused_by_name() {
        assert_eq!(in_parts("").ok(), Some(false));
        assert_eq!(in_parts("stream=true&include_obfuscation=true").ok(), Some(true));
        for (query, field) in [("stream=1", "stream"), ("starting_after=3", "starting_after"), ("x=1", "x"), ("=", "")]
        {
            let envelope = in_parts(query).unwrap_err().into_envelope();
            assert_eq!(envelope.validation_errors[0].field, field, "{query}");
        }
    }
}
