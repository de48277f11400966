//! What lasts ends with the credential that it was begun with: streams, sockets, connections, sessions of the console. And how often one may ask.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use palyra_client::api::{DeviceView, ListDevicesResponse, RunView};
use palyra_client::command::{About, Command, NoParams};
use palyra_common::RequestId;
use palyra_identity::TlsVersions;
use quinn::ConnectionError;
use serde_json::{Value, json};

use crate::quic_support::{asks, create, credentials, framed, in_time, question, quic, quic_address, raw};
use crate::raw::{exchange_with, loopback_json, unix};
use crate::support::{Daemon, Place, code};

fn token(daemon: &Daemon, params: &Value) -> (String, String) {
    let made = unix(daemon, "POST /api/v1/tokens", params.to_string().as_bytes()).json();
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    (text(&made["secret"]), text(&made["token"]["token_id"]))
}

/// Opens a WebSocket by hand and reads until the daemon closes it; the code of the close frame.
pub(crate) fn closed_with(daemon: &Daemon, token: &str) -> u16 {
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(
        stream,
        "GET /acp/v1/ws HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        daemon.address()
    )
    .unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("an answer") + 4;
    assert!(bytes.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&bytes));
    let mut frames = &bytes[head..];
    // Frames of a server are not masked, and these are short: pings, then the close.
    while let [first, length, rest @ ..] = frames {
        let (body, next) = rest.split_at(usize::from(*length));
        if first & 0x0f == 8 {
            return u16::from_be_bytes([body[0], body[1]]);
        }
        frames = next;
    }
    panic!("no close frame");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lives_for_ten_years_at_most() {
    let place = Place::new();
    let daemon = place.start().await;
    let ten_years: u64 = 3650 * 24 * 3600;
    token(&daemon, &json!({"name": "long", "role": "viewer", "expires_in_seconds": ten_years}));
    for absurd in [0, ten_years + 1, 999_999_999 * 24 * 3600, u64::MAX] {
        let params = json!({"name": "absurd", "role": "viewer", "expires_in_seconds": absurd});
        let refused = unix(&daemon, "POST /api/v1/tokens", params.to_string().as_bytes());
        assert_eq!(refused.status, 422, "{absurd}: {refused:?}");
        assert!(refused.body.contains("expires_in_seconds"), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_sockets_end_when_their_token_does() {
    let place = asks();
    let daemon = place.start().await;
    let run = daemon.create("write it").await;
    question(&daemon).await;
    let (brief, _) = token(&daemon, &json!({"name": "brief", "role": "owner", "expires_in_seconds": 2}));
    let events = format!("GET /api/v1/runs/{}/events", run.run_id);
    let tape = format!("GET /api/v1/runs/{}/tape?follow=true", run.run_id);
    std::thread::scope(|scope| {
        let followed = scope.spawn(|| loopback_json(&daemon, &events, Some(&brief), ""));
        let lines = scope.spawn(|| loopback_json(&daemon, &tape, Some(&brief), ""));
        let socket = scope.spawn(|| closed_with(&daemon, &brief));
        let followed = followed.join().unwrap();
        assert!(followed.body.contains("credential_expired") && !followed.body.contains("event: end"), "{followed:?}");
        let lines = lines.join().unwrap();
        assert!(lines.body.trim_end().trim_end_matches("\r\n0").contains("credential_expired"), "{lines:?}");
        assert_eq!(socket.join().unwrap(), 1008);
    });

    // One that is taken back loses its streams at once, not at the next look.
    let (taken, id) = token(&daemon, &json!({"name": "taken", "role": "owner"}));
    std::thread::scope(|scope| {
        let followed = scope.spawn(|| loopback_json(&daemon, &events, Some(&taken), ""));
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(unix(&daemon, &format!("POST /api/v1/tokens/{id}/revoke"), b"").status, 200);
        let followed = followed.join().unwrap();
        assert!(followed.body.contains("credential_revoked"), "{followed:?}");
    });
}

#[tokio::test]
async fn a_session_of_the_console_ends_with_its_token() {
    let place = Place::new();
    let daemon = place.start().await;
    let (brief, _) = token(&daemon, &json!({"name": "brief", "role": "owner", "expires_in_seconds": 2}));
    let entered = exchange_with(&daemon, "POST /console/v1/login", &[], &json!({"token": brief}).to_string());
    let cookie = entered.raw_header("set-cookie");
    let cookie = cookie.split(';').next().unwrap();
    let ask = || exchange_with(&daemon, "GET /console/v1/session", &[("Cookie", cookie)], "");
    assert_eq!(ask().status, 200);
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_eq!(ask().refusal(), (401, "credential_expired".to_owned()));
}

#[tokio::test]
async fn a_revoked_device_loses_its_connection_and_its_streams() {
    let place = asks();
    let daemon = place.start().await;
    let owner = quic(&daemon).await;
    let run: RunView = owner.ask(&create(&daemon, "write it")).await.unwrap();
    question(&daemon).await;
    let local = credentials(&daemon).await;
    let listed = daemon.client.execute::<ListDevicesResponse>(&Command::DeviceList(NoParams {})).await.unwrap();
    let device = listed.devices.iter().find(|device| device.device_id == local.identity.device).unwrap();
    assert_eq!(device.certificates[0].serial, local.identity.serial.as_str());
    assert_eq!(device.certificates[0].revoked_at, None);

    let tls = local.client_config(&[b"palyra-quic-v1"], TlsVersions::Tls13Only).unwrap();
    let (_endpoint, connection) = raw(quic_address(&daemon), tls).await.unwrap();
    let (mut up, mut down) = connection.open_bi().await.unwrap();
    let asked = json!({"request_id": RequestId::generate(), "command": "run.tape", "params": {"run_id": run.run_id, "follow": true}});
    up.write_all(&framed(&asked.to_string())).await.unwrap();
    up.finish().unwrap();
    assert!(in_time(down.read_chunk(64, true)).await.unwrap().is_some(), "the stream had begun");

    let revoke = Command::DeviceRevoke(About::only(local.identity.device));
    let revoked: DeviceView = daemon.client.execute(&revoke).await.unwrap();
    assert!(revoked.certificates[0].revoked_at.is_some());
    match in_time(connection.closed()).await {
        ConnectionError::ApplicationClosed(close) => assert_eq!(close.error_code.into_inner(), 2),
        other => panic!("{other}"),
    }
    let tail = unix(&daemon, "GET /api/v1/journal/tail?n=50", b"").body;
    assert!(tail.contains("device.revoked"), "{tail}");
    let unknown = Command::DeviceRevoke(About::only(palyra_common::DeviceId::from_u128(7)));
    assert_eq!(code(daemon.client.execute::<DeviceView>(&unknown).await), "device_not_found");
}

#[tokio::test]
async fn rates_are_configured_and_a_token_may_have_less() {
    let place = Place::new().with("PALYRA_RATE_PER_MINUTE", "1").with("PALYRA_RATE_BURST", "3");
    let daemon = place.start().await;
    let (all, _) = token(&daemon, &json!({"name": "all", "role": "viewer", "subject": "ada"}));
    let (less, _) = token(&daemon, &json!({"name": "less", "role": "viewer", "subject": "bob", "rate_per_minute": 1}));
    let ask = |token: &str| loopback_json(&daemon, "GET /api/v1/principal", Some(token), "").status;
    assert_eq!([(); 4].map(|()| ask(&all)), [200, 200, 200, 429]);
    assert_eq!([(); 2].map(|()| ask(&less)), [200, 429]);
    assert_eq!(
        [(); 5].map(|()| unix(&daemon, "GET /api/v1/principal", b"").status),
        [200; 5],
        "the owner is not counted"
    );
}
