//! Those who take their time: a head, a body, a command that never ends. Each is shown out when its time is up, however busily it sends one more byte, and meanwhile
//! everybody else is answered.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use palyra_client::quic::ALPN;
use palyra_identity::TlsVersions;

use crate::hostile::{peak, unharmed};
use crate::quic_support::{credentials, in_time, quic_address, raw};
use crate::raw::loopback_json;
use crate::support::Place;

/// Longer than any of the daemon's limits, by enough for a busy machine.
const LONGEST: Duration = Duration::from_secs(50);

/// Sends the beginning of something and then a byte at a time, until the daemon has had enough; gives what it said.
fn dawdle(address: &str, beginning: &str, byte: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stream.write_all(beginning.as_bytes()).unwrap();
    let mut said = Vec::new();
    let start = std::time::Instant::now();
    loop {
        assert!(start.elapsed() < LONGEST, "it is still waited for: {}", String::from_utf8_lossy(&said));
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => said.extend_from_slice(&chunk[..read]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                let _ = stream.write_all(byte);
            }
            Err(_) => break,
        }
    }
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn whoever_dawdles_is_shown_out() {
    let place = Place::new();
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    let before = peak(&daemon);
    let (address, token) = (daemon.address(), daemon.token());
    let post = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n{{"
    );
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nX-Slow: ");
    let at = address.clone();
    let bodies: Vec<_> = (0..50)
        .map(|_| {
            let (at, post) = (at.clone(), post.clone());
            std::thread::spawn(move || dawdle(&at, &post, b" "))
        })
        .collect();
    let heads: Vec<_> = [head, String::new(), "PRI * HTTP/2".to_owned()]
        .into_iter()
        .map(|beginning| {
            let at = at.clone();
            std::thread::spawn(move || dawdle(&at, &beginning, b""))
        })
        .collect();
    let tls = local.client_config(&[ALPN], TlsVersions::Tls13Only).unwrap();
    let (_endpoint, connection) = raw(quic_address(&daemon), tls).await.unwrap();
    let (mut up, mut down) = connection.open_bi().await.unwrap();
    up.write_all(b"\x00\x00\x10\x00{").await.unwrap();

    assert_eq!(loopback_json(&daemon, "GET /api/v1/runs", Some(&token), "").status, 200);
    unharmed(&daemon, before).await;
    // A command over QUIC that does not come is given up, and its connection is not.
    let given_up = in_time(down.read_to_end(1 << 20)).await;
    assert!(matches!(given_up, Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(_)))), "{given_up:?}");
    assert!(connection.close_reason().is_none());
    tokio::task::spawn_blocking(move || {
        for body in bodies {
            let said = body.join().unwrap();
            assert!(said.starts_with("HTTP/1.1 408") && said.contains("body_too_slow"), "{said}");
        }
        for head in heads {
            let said = head.join().unwrap();
            assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
        }
    })
    .await
    .unwrap();
    unharmed(&daemon, before).await;
}
