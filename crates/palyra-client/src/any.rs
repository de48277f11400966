//! Any command of the catalogue, without a method of its own.

use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::paths;
use crate::client::{Client, LONG_PATIENCE};
use crate::command::{self, Command, CommandSpec, HttpMethod, StreamCommand};
use crate::error::ClientError;
use crate::ndjson::NdjsonStream;
use crate::transport::{Call, exchange, open_stream};

const DOING: &str = "giving a command";

impl Client {
    /// Gives a command and reads its result as the type that the catalogue names.
    pub async fn execute<T: DeserializeOwned>(&self, command: &Command) -> Result<T, ClientError> {
        let value = command.to_value().map_err(|error| unwritable(&error))?;
        let call = call(command::spec(command.name()), value, command.target())?;
        // A model takes its time, and may have to wait for its turn before.
        let call = if matches!(command, Command::AuxiliaryRun(_)) { call.patience(LONG_PATIENCE) } else { call };
        exchange(self.endpoint(), call).await
    }

    /// Opens the stream of a command.
    pub async fn documents(&self, command: &StreamCommand) -> Result<NdjsonStream<Value>, ClientError> {
        let value = command.to_value().map_err(|error| unwritable(&error))?;
        let call = call(command::spec(command.name()), value, command.target())?;
        Ok(NdjsonStream::new(DOING, open_stream(self.endpoint(), call).await?))
    }

    /// Sends an envelope as it is. A refused command is an answer, not an error.
    pub async fn envelope(&self, envelope: &AcpCommandEnvelope) -> Result<AcpCommandResultEnvelope, ClientError> {
        exchange(self.endpoint(), Call::post(DOING, paths::ACP_COMMAND, envelope)?).await
    }
}

fn unwritable(error: &serde_json::Error) -> ClientError {
    ClientError::Malformed { doing: DOING, message: format!("cannot encode the command: {error}") }
}

/// The request of a command: what it is about in the address, the rest in the query or the body.
fn call(
    spec: Option<&CommandSpec>,
    mut params: Value,
    target: Option<(&'static str, String)>,
) -> Result<Call, ClientError> {
    let Some(spec) = spec else {
        return Err(ClientError::Malformed { doing: DOING, message: "the command has no address".to_owned() });
    };
    let mut path = spec.path.to_owned();
    if let (Some((field, id)), Value::Object(fields)) = (target, &mut params) {
        fields.remove(field);
        path = path.replace(&format!("{{{field}}}"), &id);
    }
    match spec.method {
        HttpMethod::Get => Call::get(DOING, path).query(&params),
        HttpMethod::Post => Call::post(DOING, path, &params),
    }
}
