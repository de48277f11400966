//! QUIC that is made to hurt. Who is refused by its certificate or protocol, and frames that are none, are in `quic_refusals`.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use palyra_client::quic::ALPN;
use palyra_identity::TlsVersions;

use crate::hostile::{peak, unharmed};
use crate::quic_support::{credentials, in_time, quic, quic_address, raw, show};
use crate::support::{Daemon, Place};

async fn another_is_answered(daemon: &Daemon) {
    let other = quic(daemon).await;
    in_time(other.command(&show())).await.unwrap();
    other.close().await;
}

#[tokio::test]
async fn packets_that_are_none_cost_nothing() {
    let place = Place::new();
    let daemon = place.start().await;
    credentials(&daemon).await;
    let before = peak(&daemon);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = quic_address(&daemon);
    // Any numbers will do, as long as they are the same each time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut number = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..20_000_u64 {
        let length = usize::try_from(number() % 1400).unwrap();
        let mut packet: Vec<u8> = (0..length).map(|_| number().to_le_bytes()[0]).collect();
        // Half of them look like the beginning of a connection: a long head, the version, ids of some length.
        if round % 2 == 0 && length > 32 {
            packet[0] = 0xc0 | (packet[0] & 0x3f);
            packet[1..5].copy_from_slice(&1_u32.to_be_bytes());
            packet[5] = 8;
            packet[14] = 8;
        }
        // The system drops what the daemon does not take in time.
        let _ = socket.send_to(&packet, address);
    }
    another_is_answered(&daemon).await;
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn streams_without_end_wait_for_their_own_connection() {
    let place = Place::new();
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    let before = peak(&daemon);
    let tls = local.client_config(&[ALPN], TlsVersions::Tls13Only).unwrap();
    let (_endpoint, connection) = raw(quic_address(&daemon), tls).await.unwrap();
    // Each begins a command and never ends it: a byte at a time, or a frame that is announced and does not come.
    let mut open = Vec::new();
    let opening = async {
        for number in 0..1000 {
            let (mut up, down) = connection.open_bi().await.unwrap();
            let said: &[u8] = if number % 2 == 0 { b"\x00" } else { b"\x00\x07\xff\xff{" };
            up.write_all(said).await.unwrap();
            open.push((up, down));
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(2), opening).await.is_err(), "a thousand streams were opened");
    let most = open.len();
    assert!((1..=64).contains(&most), "{most} streams are open");
    another_is_answered(&daemon).await;
    // Where they are given up, others may come; the protocol tells so for several at once.
    for (mut up, _down) in open.drain(..most / 2) {
        up.reset(0_u32.into()).unwrap();
    }
    in_time(connection.open_bi()).await.unwrap();
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_waiting() {
    let place = Place::new();
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    let before = peak(&daemon);
    let tls = local.client_config(&[ALPN], TlsVersions::Tls13Only).unwrap();
    // More than half of what is taken, so that the last of them had to show where they are.
    let mut silent = Vec::new();
    for _ in 0..140 {
        silent.push(raw(quic_address(&daemon), tls.clone()).await.unwrap());
    }
    another_is_answered(&daemon).await;
    unharmed(&daemon, before).await;
}

/// Whoever makes up where they are begins handshakes that cannot go on: what the daemon answers reaches nobody.
#[tokio::test]
async fn handshakes_that_cannot_go_on_keep_nobody_out() {
    let place = Place::new();
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    let before = peak(&daemon);
    let any = (Ipv4Addr::LOCALHOST, 0);
    let (inside, outside) = (UdpSocket::bind(any).unwrap(), UdpSocket::bind(any).unwrap());
    inside.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    outside.connect(quic_address(&daemon)).unwrap();
    let relay = inside.local_addr().unwrap();
    let relaying = std::thread::spawn(move || {
        let (mut packet, mut relayed) = (vec![0; 64 * 1024], 0);
        // Until nothing has come for a while.
        while let Ok(length) = inside.recv(&mut packet) {
            let _ = outside.send(&packet[..length]);
            relayed += 1;
        }
        relayed
    });
    let tls = local.client_config(&[ALPN], TlsVersions::Tls13Only).unwrap();
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let config = quinn::ClientConfig::new(std::sync::Arc::new(crypto));
    let endpoint = quinn::Endpoint::client(any.into()).unwrap();
    // More than all that the daemon takes.
    let begun: Vec<_> = (0..300).map(|_| endpoint.connect_with(config.clone(), relay, "localhost").unwrap()).collect();
    for _ in 0..5 {
        another_is_answered(&daemon).await;
    }
    unharmed(&daemon, before).await;
    drop((begun, endpoint));
    assert!(relaying.join().unwrap() >= 300);
}
