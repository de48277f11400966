//! Methods about runs.

use std::sync::Arc;

use palyra_client::api::{AbortRunParams, RunTapeParams};
use palyra_client::command::{About, StreamCommand};
use palyra_proto::gateway::v1 as wire;
use prost::Message as _;
use tonic::Status;

use super::ask::{outcome, unreadable};
use super::{read, write};
use crate::app::App;
use crate::dispatch::{self, Caller, HeldPage, Page};

/// Events of a part of a tape when nobody says how many, and the most of them.
const TAPE_PAGE: u32 = 256;
/// Bytes after which a part of a tape is full, well within the limit on messages: an event may hold a whole result.
const TAPE_BYTES: usize = 2 << 20;

pub(super) async fn abort(
    app: &Arc<App>,
    caller: &Caller,
    request: wire::AbortRunRequest,
) -> Result<wire::AbortRunResponse, Status> {
    let target = read::parsed(&request.run_id, "run_id").map_err(unreadable)?;
    let params = AbortRunParams { reason: request.reason };
    let run = outcome!(app, caller, RunAbort(About { target, params }));
    Ok(wire::AbortRunResponse { run: Some(write::run(run)) })
}

pub(super) async fn list(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::ListRunsRequest,
) -> Result<wire::ListRunsResponse, Status> {
    let params = read::list_runs(request).map_err(unreadable)?;
    let page = outcome!(app, caller, RunList(params));
    Ok(wire::ListRunsResponse {
        runs: page.runs.into_iter().map(write::run).collect(),
        next_page_token: page.next_before.map(|id| id.to_string()).unwrap_or_default(),
    })
}

pub(super) async fn get(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::GetRunRequest,
) -> Result<wire::GetRunResponse, Status> {
    let id = read::parsed(&request.run_id, "run_id").map_err(unreadable)?;
    let detail = outcome!(app, caller, RunGet(About::only(id)));
    Ok(write::run_detail(detail))
}

/// As much of a tape as is asked for and fits into one message.
pub(super) async fn tape(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::GetRunTapeRequest,
) -> Result<wire::GetRunTapeResponse, Status> {
    let target = read::parsed(&request.run_id, "run_id").map_err(unreadable)?;
    let asked = match request.page_size {
        0 => TAPE_PAGE,
        asked => asked.min(TAPE_PAGE),
    };
    // One more than asked for tells whether there is more.
    let limit = u64::from(asked) + 1;
    let params =
        RunTapeParams { from_seq: Some(request.from_seq.max(1)), limit: Some(limit), ..RunTapeParams::default() };
    let mut documents = dispatch::open(app, caller, StreamCommand::RunTape(About { target, params })).await?;
    let mut part = wire::GetRunTapeResponse::default();
    let mut bytes = 0;
    while let Some(HeldPage { page, .. }) = documents.next().await? {
        let Page::Events(events) = page else { continue };
        for event in events {
            let seq = event.seq;
            let full = part.events.len() + part.oversized.len() >= asked as usize;
            match write::event(event) {
                _ if full => {}
                Err(oversized) => {
                    part.oversized.push(oversized);
                    continue;
                }
                Ok(event) => {
                    let size = event.encoded_len();
                    if part.events.is_empty() || bytes + size <= TAPE_BYTES {
                        bytes += size;
                        part.events.push(event);
                        continue;
                    }
                }
            }
            part.next_seq = seq;
            return Ok(part);
        }
    }
    Ok(part)
}
