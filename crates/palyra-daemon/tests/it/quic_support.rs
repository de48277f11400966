//! Clients of QUIC: our own, and one that sends exactly what it is told.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use palyra_client::ClientError;
use palyra_client::api::{ApprovalView, DecideApprovalParams, ListApprovalsParams, RunTapeParams};
use palyra_client::command::{About, Command, NoParams, StreamCommand};
use palyra_client::quic::{FrameDecoder, LOCAL_IDENTITY, QuicClient, encode_message};
use palyra_common::{
    ApprovalDecision, ApprovalScope, DeviceId, PrincipalRole, RunId, RunStreamBody, RunStreamEvent, SystemClock,
};
use palyra_identity::{Authority, AuthorityOptions, ClientCredentials, ClientRequest, PrincipalId};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint};
use serde_json::Value;

use crate::support::{Daemon, Place};

/// Longer than anything here takes, so that a hang fails instead of blocking.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it takes too long")
}

/// The certificate that the daemon issued to its owner; it does so after its start.
pub(crate) async fn credentials(daemon: &Daemon) -> ClientCredentials {
    let directory = daemon.state_root.join(LOCAL_IDENTITY);
    let start = Instant::now();
    loop {
        if let Ok(Some(found)) = ClientCredentials::read(&directory) {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "no certificate in {}", directory.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn quic_address(daemon: &Daemon) -> SocketAddr {
    std::fs::read_to_string(daemon.state_root.join("quic.addr")).unwrap().trim().parse().unwrap()
}

pub(crate) async fn quic(daemon: &Daemon) -> QuicClient {
    credentials(daemon).await;
    in_time(QuicClient::connect_local(&daemon.state_root)).await.unwrap()
}

/// The authority of a daemon, opened a second time, as its own tools would.
pub(crate) fn authority(state_root: &Path) -> Authority {
    Authority::open_or_create(&state_root.join("identity"), AuthorityOptions::default(), Arc::new(SystemClock)).unwrap()
}

/// A connection with any TLS.
pub(crate) async fn raw(
    address: SocketAddr,
    tls: Arc<quinn::rustls::ClientConfig>,
) -> Result<(Endpoint, Connection), ConnectionError> {
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let connection = in_time(endpoint.connect_with(config, address, "localhost").unwrap()).await?;
    Ok((endpoint, connection))
}

/// Sends bytes on a stream of their own and reads what comes back.
pub(crate) async fn send(connection: &Connection, bytes: &[u8]) -> Result<Vec<Value>, String> {
    let talking = async {
        let (mut up, mut down) = connection.open_bi().await.map_err(|error| error.to_string())?;
        // A daemon that has read enough may stop the rest.
        let _ = up.write_all(bytes).await;
        let _ = up.finish();
        let answer = down.read_to_end(8 << 20).await.map_err(|error| error.to_string())?;
        let mut decoder = FrameDecoder::of_answers();
        decoder.push(&answer);
        let mut found = Vec::new();
        while let Some(message) = decoder.next_message().unwrap() {
            found.push(serde_json::from_slice(&message).unwrap());
        }
        decoder.finish().unwrap();
        Ok(found)
    };
    in_time(talking).await
}

pub(crate) fn framed(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_message(text.as_bytes(), &mut bytes);
    bytes
}

/// Why a connection was refused, if it was: the alert of TLS or the code of the daemon. In TLS 1.3 a client learns that after its own handshake.
pub(crate) async fn verdict(address: SocketAddr, tls: Arc<quinn::rustls::ClientConfig>) -> Result<(), String> {
    let said = |error: ConnectionError| match error {
        ConnectionError::ConnectionClosed(close) => {
            format!("alert {}", u64::from(close.error_code).wrapping_sub(0x100))
        }
        ConnectionError::ApplicationClosed(close) => format!("code {}", close.error_code),
        other => other.to_string(),
    };
    let (_endpoint, connection) = raw(address, tls).await.map_err(said)?;
    let asked = format!(r#"{{"request_id":"{}","command":"principal.show"}}"#, palyra_common::RequestId::generate());
    match send(&connection, &framed(&asked)).await {
        Ok(replies) => {
            assert_eq!(replies[0]["ok"], true, "{replies:?}");
            Ok(())
        }
        Err(_) => Err(said(in_time(connection.closed()).await)),
    }
}

/// Waits until a run asks.
pub(crate) async fn question(daemon: &Daemon) -> ApprovalView {
    let start = Instant::now();
    loop {
        let listed = daemon.client.approvals(&ListApprovalsParams::default()).await.unwrap();
        if let Some(approval) = listed.approvals.into_iter().next() {
            return approval;
        }
        assert!(start.elapsed() < PATIENCE, "nobody asks");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Answers the question that a run has asked.
pub(crate) async fn allow(daemon: &Daemon) {
    let asked = question(daemon).await;
    let params = DecideApprovalParams {
        decision: ApprovalDecision::Allow,
        scope: ApprovalScope::Once,
        minutes: None,
        reason: None,
    };
    daemon.client.decide_approval(asked.approval_id, &params).await.unwrap();
}

/// The code of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, ClientError>) -> String {
    crate::support::code(result)
}

pub(crate) const WRITES: &str = r#"
[[turn]]
text = ["Writing ", "it."]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "made.txt", content = "one\n" }
[[turn]]
text = "Done."
"#;

pub(crate) fn asks() -> Place {
    Place::new().with_script(WRITES).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write")
}

pub(crate) fn create(daemon: &Daemon, prompt: &str) -> Command {
    Command::RunCreate(daemon.task(prompt))
}

pub(crate) fn show() -> Command {
    Command::PrincipalShow(NoParams {})
}

pub(crate) fn tape_of(target: RunId, from_seq: u64) -> StreamCommand {
    let params = RunTapeParams { from_seq: Some(from_seq), follow: Some(true), ..RunTapeParams::default() };
    StreamCommand::RunTape(About { target, params })
}

pub(crate) fn is_question(event: &RunStreamEvent) -> bool {
    matches!(event.body, RunStreamBody::ToolApprovalRequest(_))
}

/// A client certificate of a daemon's own authority.
pub(crate) fn issued(daemon: &Daemon, role: PrincipalRole, life: Duration) -> ClientCredentials {
    let principal: PrincipalId = "user:guest".parse().unwrap();
    let request = ClientRequest { device: DeviceId::generate(), principal, role, life };
    authority(&daemon.state_root).issue_client(&request).unwrap()
}
