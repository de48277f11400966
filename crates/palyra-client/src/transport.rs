//! One HTTP/1.1 exchange with the daemon: open a connection, send, check the status.
//!
//! Each exchange has a connection of its own. On a Unix socket that costs tens of microseconds, and it leaves no pool whose
//! stale connections would make it unclear whether a request was received.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use palyra_common::StableErrorEnvelope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::api::{ErrorResponse, NDJSON};
use crate::endpoint::Endpoint;
use crate::error::ClientError;

/// Largest answer that is read whole. A run's answer and its list of changes stay far below; a peer that sends more is
/// either broken or trying to exhaust memory.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// What a caller wants from the daemon.
pub(crate) struct Call {
    /// What is going on, for error messages: "listing runs".
    pub(crate) doing: &'static str,
    pub(crate) method: Method,
    pub(crate) path_and_query: String,
    pub(crate) body: Option<Vec<u8>>,
    /// How long the daemon may take until the answer begins and, for whole answers, until it is complete.
    pub(crate) patience: Duration,
}

impl Call {
    pub(crate) fn get(doing: &'static str, path: impl Into<String>) -> Self {
        let patience = Duration::from_secs(60);
        Self { doing, method: Method::GET, path_and_query: path.into(), body: None, patience }
    }

    pub(crate) fn post(
        doing: &'static str,
        path: impl Into<String>,
        body: &impl Serialize,
    ) -> Result<Self, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| ClientError::Malformed {
            doing,
            message: format!("cannot encode the request: {error}"),
        })?;
        Ok(Self { method: Method::POST, body: Some(body), ..Self::get(doing, path) })
    }

    /// Appends the parameters as a query string. They are flat records of scalars; anything else is a defect here.
    pub(crate) fn query(mut self, params: &impl Serialize) -> Result<Self, ClientError> {
        let doing = self.doing;
        let refuse = |message: String| ClientError::Malformed { doing, message };
        let value = serde_json::to_value(params).map_err(|error| refuse(error.to_string()))?;
        let Some(fields) = value.as_object() else {
            return Err(refuse("query parameters must be an object".to_owned()));
        };
        // By name: the order of a record's fields is nobody's contract.
        let mut fields: Vec<_> = fields.iter().collect();
        fields.sort_by_key(|(name, _)| name.as_str());
        let mut separator = '?';
        for (name, value) in fields {
            let text = match value {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Bool(_) | serde_json::Value::Number(_) => value.to_string(),
                serde_json::Value::Null => continue,
                _ => return Err(refuse(format!("query parameter `{name}` is not a scalar"))),
            };
            self.path_and_query.push(separator);
            self.path_and_query.push_str(name);
            self.path_and_query.push('=');
            percent_encode(&text, &mut self.path_and_query);
            separator = '&';
        }
        Ok(self)
    }

    pub(crate) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

pub(crate) fn percent_encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            into.push(char::from(byte));
        } else {
            into.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// An answer whose head is in and whose status is a success. Dropping it closes the connection.
pub(crate) struct Answer {
    pub(crate) body: Incoming,
    media_type: String,
    _connection: OwnedTask,
}

/// A task that ends with its owner.
struct OwnedTask(JoinHandle<()>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a call and waits for the head of the answer. A refusal becomes [`ClientError::Refused`].
pub(crate) async fn send(endpoint: &Endpoint, call: Call) -> Result<Answer, ClientError> {
    let Call { doing, method, path_and_query, body, patience } = call;
    let (io, authorization) = endpoint.open().await?;
    let broken = |source: hyper::Error| ClientError::Disconnected { doing, source: Box::new(source) };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.map_err(broken)?;
    let connection = OwnedTask(tokio::spawn(async move {
        // The error, if any, also reaches whoever reads the answer, with more context.
        let _ = connection.await;
    }));

    let mut request =
        Request::builder().method(method).uri(path_and_query).header(HOST, endpoint.host()).header(ACCEPT, "*/*");
    if let Some(authorization) = authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request
        .body(Full::new(Bytes::from(body.unwrap_or_default())))
        .map_err(|error| ClientError::Malformed { doing, message: error.to_string() })?;

    let response = timeout(patience, sender.send_request(request))
        .await
        .map_err(|_| ClientError::TimedOut { doing, after: patience })?
        .map_err(broken)?;
    if response.status().is_success() {
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        return Ok(Answer { body: response.into_body(), media_type, _connection: connection });
    }
    Err(refusal(doing, response, patience).await)
}

/// Sends a call and reads the answer whole.
pub(crate) async fn exchange<T: DeserializeOwned>(endpoint: &Endpoint, call: Call) -> Result<T, ClientError> {
    let (doing, patience) = (call.doing, call.patience);
    let Answer { body, _connection, .. } = send(endpoint, call).await?;
    let bytes = collect(doing, body, patience).await?;
    serde_json::from_slice(&bytes).map_err(|error| ClientError::Malformed { doing, message: error.to_string() })
}

/// Sends a call whose answer is a stream of lines.
pub(crate) async fn open_stream(endpoint: &Endpoint, call: Call) -> Result<Answer, ClientError> {
    let doing = call.doing;
    let answer = send(endpoint, call).await?;
    if answer.media_type.starts_with(NDJSON) {
        Ok(answer)
    } else {
        let message = format!("expected {NDJSON}, got `{}`", answer.media_type);
        Err(ClientError::Malformed { doing, message })
    }
}

/// Reads the body of an answer that is not a success.
async fn refusal(doing: &'static str, response: Response<Incoming>, patience: Duration) -> ClientError {
    let status = response.status();
    match collect(doing, response.into_body(), patience).await {
        Err(error) => error,
        Ok(bytes) => match serde_json::from_slice::<ErrorResponse>(&bytes) {
            Ok(ErrorResponse { error }) => ClientError::Refused(Box::new(one_line(error))),
            Err(_) => ClientError::Malformed { doing, message: format!("status {status} without an error envelope") },
        },
    }
}

/// An envelope's message is one line by contract; it is shown raw on terminals, so the contract is enforced here.
pub(crate) fn one_line(mut error: StableErrorEnvelope) -> StableErrorEnvelope {
    error.message = without_controls(&error.message);
    error.recovery_hint = error.recovery_hint.as_deref().map(without_controls);
    error
}

fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

async fn collect(doing: &'static str, mut body: Incoming, patience: Duration) -> Result<Bytes, ClientError> {
    let reading = async {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|source| ClientError::Disconnected { doing, source: Box::new(source) })?;
            if let Some(data) = frame.data_ref() {
                if bytes.len() + data.len() > LARGEST_ANSWER {
                    let message = format!("it is larger than {} MiB", LARGEST_ANSWER / (1024 * 1024));
                    return Err(ClientError::Malformed { doing, message });
                }
                bytes.extend_from_slice(data);
            }
        }
        Ok(bytes.freeze())
    };
    timeout(patience, reading).await.unwrap_or(Err(ClientError::TimedOut { doing, after: patience }))
}

#[cfg(test)]
mod tests {
    use palyra_common::{RunId, RunLifecyclePhase};

    use super::*;
    use crate::api::{ListRunsParams, RunTapeParams};

    #[test]
    fn parameters_become_a_query_without_the_absent_ones() {
        let id = RunId::from_u128(7);
        let params = ListRunsParams { phase: Some(RunLifecyclePhase::Running), before: Some(id), ..Default::default() };
        let call = Call::get("testing", "/api/v1/runs").query(&params).unwrap();
        assert_eq!(call.path_and_query, format!("/api/v1/runs?before={id}&phase=running"));
        let call = Call::get("testing", "/t").query(&RunTapeParams::default()).unwrap();
        assert_eq!(call.path_and_query, "/t");
    }

    #[test]
    fn a_query_value_cannot_break_out() {
        let call = Call::get("testing", "/t").query(&serde_json::json!({ "a": "1&b=2 #ä/" })).unwrap();
        assert_eq!(call.path_and_query, "/t?a=1%26b%3D2%20%23%C3%A4%2F");
        assert!(Call::get("testing", "/t").query(&serde_json::json!({ "a": [1] })).is_err());
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        use palyra_common::ErrorCategory;
        let error = StableErrorEnvelope::new("x", ErrorCategory::Internal, "a\u{1b}[2Jb\nc").hint("d\re");
        let error = one_line(error);
        assert_eq!((error.message.as_str(), error.recovery_hint.as_deref()), ("a [2Jb c", Some("d e")));
    }
}
