//! What a client may say to the run that it follows.

use std::sync::Arc;

use palyra_client::api::AbortRunParams;
use palyra_client::command::{About, Command};
use palyra_common::{ApprovalId, ErrorCategory, RunId, StableErrorEnvelope};
use palyra_proto::gateway::v1::run_stream_request::Body as Up;

use super::read;
use crate::app::App;
use crate::dispatch::{self, Asked, Caller, Refusal, Result};

/// Does what a later message asks for.
pub(super) async fn carry_out(app: &Arc<App>, caller: &Caller, run_id: RunId, body: Up) -> Result<()> {
    let command = match body {
        Up::Start(_) | Up::Resume(_) => {
            return Err(Refusal::field("body", "`start` and `resume` are for the first message; open another stream"));
        }
        Up::Approval(answer) => {
            let target: ApprovalId = read::parsed(&answer.approval_id, "approval.approval_id")?;
            of_this_run(app, caller, run_id, target).await?;
            let params = read::decision(answer.decision, answer.scope, answer.minutes, answer.reason)?;
            Command::ApprovalDecide(About { target, params })
        }
        Up::Steer(steer) => Command::RunInput(About { target: run_id, params: read::input(steer)? }),
        Up::Abort(stop) => Command::RunAbort(About { target: run_id, params: AbortRunParams { reason: stop.reason } }),
        Up::Deliver(deliver) => Command::RunDeliver(About { target: run_id, params: read::results(deliver) }),
    };
    dispatch::dispatch(app, caller, Asked::from(command)).await.map(drop)
}

/// A stream answers the questions of its own run, so that a mixed-up client does not agree to another run's effect.
async fn of_this_run(app: &Arc<App>, caller: &Caller, run_id: RunId, approval_id: ApprovalId) -> Result<()> {
    let look = Command::ApprovalGet(About::only(approval_id));
    let found = dispatch::dispatch(app, caller, Asked::from(look)).await?;
    if let dispatch::Answer::Fresh(palyra_client::command::Outcome::ApprovalGet(view)) = found
        && view.run_id == Some(run_id)
    {
        return Ok(());
    }
    let message = format!("`{approval_id}` is not an approval of the run `{run_id}`");
    Err(StableErrorEnvelope::new("approval_not_found", ErrorCategory::NotFound, message)
        .hint("answer it on its own run's stream, or with ApprovalsService")
        .into())
}
