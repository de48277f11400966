//! Connections that nobody uses: the daemon closes them, whatever protocol they speak, and never one with a request under way.

use palyra_client::quic::{ALPN, CloseCode};
use palyra_identity::TlsVersions;
use quinn::ConnectionError;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UnixStream};

use crate::quic_support::{credentials, in_time, quic, quic_address, raw, show, tape_of};
use crate::support::{Daemon, Place};

/// A daemon that closes what nobody has used for a second.
fn place() -> Place {
    Place::new().with("PALYRA_DAEMON_IDLE_TIMEOUT_SECONDS", "1")
}

/// One question over HTTP/2, with or without a token; then waits until the daemon closes the connection.
async fn asked_and_closed(daemon: &Daemon, path: &str, token: Option<&str>) {
    let socket = TcpStream::connect(daemon.address()).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    let closed = tokio::spawn(connection);
    let mut request = http::Request::get(format!("http://{}{path}", daemon.address()));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut client = in_time(client.ready()).await.unwrap();
    let (answer, _) = client.send_request(request.body(()).unwrap(), true).unwrap();
    assert_eq!(in_time(answer).await.unwrap().status(), 200);
    // The client itself would keep it open: it still holds its end.
    let ended = in_time(closed).await.unwrap();
    assert!(ended.is_ok(), "{ended:?}");
    let refused = client.ready().await.and_then(|mut client| {
        let request = http::Request::get("http://localhost/healthz").body(()).unwrap();
        client.send_request(request, true)
    });
    assert!(refused.is_err(), "a closed connection takes requests");
}

#[tokio::test]
async fn an_idle_connection_of_http2_is_closed_by_the_daemon() {
    let place = place();
    let daemon = place.start().await;
    asked_and_closed(&daemon, "/healthz", None).await;
    asked_and_closed(&daemon, "/api/v1/runs", Some(&daemon.token())).await;
}

#[tokio::test]
async fn connections_on_which_nothing_is_said_are_closed() {
    let place = place();
    let daemon = place.start().await;
    let (mut rest, mut nothing) = (TcpStream::connect(daemon.address()).await.unwrap(), Vec::new());
    in_time(rest.read_to_end(&mut nothing)).await.unwrap();
    let mut rest = UnixStream::connect(daemon.state_root.join("palyrad.sock")).await.unwrap();
    in_time(rest.read_to_end(&mut nothing)).await.unwrap();
    let grpc = std::fs::read_to_string(daemon.state_root.join("grpc.addr")).unwrap();
    let (client, connection) = h2::client::handshake(TcpStream::connect(grpc.trim()).await.unwrap()).await.unwrap();
    let ended = in_time(connection).await;
    assert!(ended.is_ok(), "{ended:?}");
    drop(client);
}

#[tokio::test]
async fn an_idle_connection_of_quic_is_closed_and_one_that_follows_a_run_is_not() {
    let place = place().with_script("[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.write\"\narguments = { path = \"a\", content = \"b\" }\n[[turn]]\ntext = \"done\"\n");
    let place = place.with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    let run = daemon.create("write it").await;
    let following = quic(&daemon).await;
    let mut documents = following.stream(&tape_of(run.run_id, 1)).await.unwrap();
    in_time(documents.next()).await.unwrap().unwrap();
    let tls = local.client_config(&[ALPN], TlsVersions::Tls13Only).unwrap();
    // Longer than a second altogether, one after the other.
    for _ in 0..3 {
        let (_endpoint, idle) = raw(quic_address(&daemon), tls.clone()).await.unwrap();
        let ConnectionError::ApplicationClosed(close) = in_time(idle.closed()).await else {
            panic!("it was not closed by the daemon: {:?}", idle.close_reason())
        };
        assert_eq!(CloseCode::of(close.error_code.into_inner()), Some(CloseCode::Done));
    }
    // The one that follows gets what comes next on its stream, which a new connection would not.
    daemon.client.abort_run(run.run_id, &Default::default()).await.unwrap();
    while in_time(documents.next()).await.unwrap().is_some() {}
    // Whoever was closed and asks again is connected anew.
    in_time(following.command(&show())).await.unwrap();
}
