//! Any command of the catalogue, without a method of its own.

use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope, RequestId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::paths;
use crate::client::{Client, LONG_PATIENCE};
use crate::command::{self, Command, CommandSpec, HttpMethod, StreamCommand, TargetKind};
use crate::error::ClientError;
use crate::ndjson::NdjsonStream;
use crate::transport::{Call, exchange, open_stream, percent_encode};

const DOING: &str = "sending a command";

impl Client {
    /// Gives a command and reads its result as the type that the catalogue names.
    pub async fn execute<T: DeserializeOwned>(&self, command: &Command) -> Result<T, ClientError> {
        let value = command.to_value().map_err(|error| unwritable(&error))?;
        let call = call(command::spec(command.name()), value, command.target())?;
        let call = if takes_its_time(command) { call.patience(LONG_PATIENCE) } else { call };
        exchange(self.endpoint(), call).await
    }

    /// The same for a change that only counts if what it changes is still at this version.
    pub async fn execute_at<T: DeserializeOwned>(
        &self,
        command: &Command,
        expected_version: Option<u64>,
    ) -> Result<T, ClientError> {
        let envelope = AcpCommandEnvelope {
            request_id: RequestId::generate(),
            command: command.name(),
            params: command.to_value().map_err(|error| unwritable(&error))?,
            idempotency_key: None,
            expected_version,
        };
        let value =
            self.envelope(&envelope).await?.into_outcome().map_err(|error| ClientError::Refused(Box::new(error)))?;
        serde_json::from_value(value).map_err(|error| ClientError::Malformed {
            doing: DOING,
            message: format!("cannot read the result: {error}"),
        })
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

/// A model takes its time, and may have to wait for its turn before. So does a skill that is compiled first: one that carries an interpreter takes minutes on a
/// small machine.
const fn takes_its_time(command: &Command) -> bool {
    matches!(
        command,
        Command::AuxiliaryRun(_)
            | Command::ModelsTest(_)
            | Command::SkillInstall(_)
            | Command::SkillEnable(_)
            | Command::SkillCall(_)
    )
}

fn unwritable(error: &serde_json::Error) -> ClientError {
    ClientError::Malformed { doing: DOING, message: format!("cannot encode the command: {error}") }
}

/// The request of a command: what it is about in the address, the rest in the query or the body.
fn call(
    spec: Option<&CommandSpec>,
    mut params: Value,
    target: Option<(TargetKind, String)>,
) -> Result<Call, ClientError> {
    let Some(spec) = spec else {
        return Err(ClientError::Malformed { doing: DOING, message: "the command has no address".to_owned() });
    };
    let mut path = spec.path.to_owned();
    if let (Some((kind, id)), Value::Object(fields)) = (target, &mut params) {
        let field = kind.field();
        fields.remove(field);
        if id.is_empty() {
            return Err(ClientError::Refused(Box::new(command::invalid_field(field, "it is missing"))));
        }
        // What a person types stays one part of the address, whatever is in it.
        let mut segment = String::new();
        percent_encode(&id, &mut segment);
        path = path.replace(&format!("{{{field}}}"), &segment);
    }
    match spec.method {
        HttpMethod::Get => Call::get(DOING, path).query(&params),
        HttpMethod::Post => Call::post(DOING, path, &params),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{About, SkillName};

    fn address(name: &str) -> Result<String, ClientError> {
        let command = Command::SkillAudit(About::only(SkillName(name.to_owned())));
        let call = call(command::spec(command.name()), command.to_value().unwrap(), command.target())?;
        Ok(call.path_and_query)
    }

    #[test]
    fn a_name_cannot_become_another_address() {
        assert_eq!(address("acme.notes").unwrap(), "/api/v1/skills/acme.notes/audit");
        assert_eq!(address("../runs").unwrap(), "/api/v1/skills/..%2Fruns/audit");
        assert_eq!(address("a?b#c d\n").unwrap(), "/api/v1/skills/a%3Fb%23c%20d%0A/audit");
        assert!(matches!(address(""), Err(ClientError::Refused(error)) if error.code == "request_invalid"));
    }
}
