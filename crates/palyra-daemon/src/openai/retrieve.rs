//! `GET /v1/responses/{id}`: a response of before, read from its run's tape.
//!
//! Nothing was kept about it besides the run, so what the request said about itself (its instructions, its metadata, its tools) is not told again. A response that is
//! under way is told as such, without waiting.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};

use super::begin::{follow, own_run, unknown_response};
use super::error::OpenAiResult;
use super::following::{Ending, Piece};
use super::response_document::{self, Response, Standing};
use super::{ids, user_of_models};
use crate::app::App;
use crate::dispatch::{Caller, Refusal};

/// How long the tape of a run that is not over may be silent before its response counts as under way.
const A_MOMENT: Duration = Duration::from_millis(250);

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
) -> OpenAiResult<Json<Value>> {
    let caller = user_of_models(&app, &caller)?;
    let Ok(Path(name)) = name else { return Err(unknown_response("(not a text)").into()) };
    let Some((run_id, from_seq)) = ids::read_response_place(&name) else { return Err(unknown_response(&name).into()) };
    let run = own_run(&app, &caller, run_id).await.map_err(|_| unknown_response(&name))?;
    if from_seq == 0 || from_seq > app.engine.last_seq(run_id).await.map_err(Refusal::from)? {
        return Err(unknown_response(&name).into());
    }
    let response = Response {
        id: name,
        created: u64::try_from(run.created_at.0 / 1000).unwrap_or(0),
        model: run.model.split_once('/').map_or(run.model.as_str(), |(_, model)| model).to_owned(),
        instructions: None,
        previous: None,
        metadata: Map::new(),
        tools: json!([]),
    };
    let is_over = run.phase.is_terminal();
    let mut following = follow(&app, caller, run_id, from_seq, None).await?.no_longer_silent_than(A_MOMENT);
    let mut text = String::new();
    let document = loop {
        match following.next().await {
            Ok(Some(Piece::Text(more))) => text.push_str(&more),
            Ok(Some(Piece::Done(ending))) => {
                let mut output = said(&response, &text, "completed");
                if let Ending::Calls(calls) = &ending {
                    output.extend(calls.iter().map(|call| response_document::call(call, "completed")));
                }
                break response.document(&Standing::Ended(&ending), &output, Some(following.usage()));
            }
            // What was said in a turn that is not over may be said differently yet.
            Ok(Some(Piece::Silence | Piece::Waiting(_))) if !is_over => {
                break response.document(&Standing::InProgress, &[], None);
            }
            Ok(Some(_)) => {}
            Ok(None) => return Err(Refusal::internal("a response ended without an end").into()),
            Err(refusal) if is_over && refusal.envelope().code == "run_without_answer" => {
                let why = refusal.envelope().message.clone();
                let output = said(&response, &text, "incomplete");
                break response.document(&Standing::Failed(why), &output, Some(following.usage()));
            }
            Err(refusal) => return Err(refusal.into()),
        }
    };
    Ok(Json(document))
}

fn said(response: &Response, text: &str, status: &str) -> Vec<Value> {
    if text.is_empty() { Vec::new() } else { vec![response.message(text, status)] }
}
