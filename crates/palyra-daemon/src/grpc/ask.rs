//! One command, one outcome: what every unary method does between reading and writing.

use std::sync::Arc;

use palyra_client::command::{Command, Outcome};
use palyra_common::ToStableError as _;
use palyra_proto::ProtoError;
use tonic::{Request, Status};

use super::status;
use crate::app::App;
use crate::dispatch::{self, Answer, Asked, Caller, Refusal};

/// Who calls, as `admit` found out.
pub(super) fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .ok_or_else(|| Refusal::internal("a call came in past the gate").into())
}

/// A message that means nothing.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
pub(super) fn unreadable(error: ProtoError) -> Status {
    status::of_envelope(&error.to_stable())
}

/// Gives a command and takes its outcome.
pub(super) async fn ask(app: &Arc<App>, caller: &Caller, asked: impl Into<Asked>) -> Result<Outcome, Status> {
    match dispatch::dispatch(app, caller, asked.into()).await? {
        Answer::Fresh(outcome) => Ok(outcome),
        // Methods put keys into their parameters; only an envelope has a key around its command.
        Answer::Stored(_) => Err(Refusal::internal("an answer was stored for a command without a key").into()),
    }
}

/// An outcome that does not belong to its command.
pub(super) fn mismatch(command: &Command) -> Status {
    Refusal::internal(format!("`{}` came to something else", command.name())).into()
}

/// Gives the command of this name and takes its result.
macro_rules! outcome {
    ($app:expr, $caller:expr, $variant:ident($params:expr)) => {
        outcome!($app, $caller, $variant($params), version None)
    };
    ($app:expr, $caller:expr, $variant:ident($params:expr), version $version:expr) => {{
        let command = palyra_client::command::Command::$variant($params);
        let asked = $crate::dispatch::Asked { command: command.clone(), idempotency_key: None, expected_version: $version };
        match $crate::grpc::ask::ask($app, $caller, asked).await? {
            palyra_client::command::Outcome::$variant(result) => *result,
            _ => return Err($crate::grpc::ask::mismatch(&command)),
        }
    }};
}

pub(super) use outcome;
