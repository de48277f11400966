//! Bounds of QUIC: everything that a peer could make grow has one.

use std::sync::Arc;
use std::time::Duration;

use palyra_client::quic::{ALPN, MAX_FRAME_BYTES};
use palyra_common::config::QuicConfig;
use palyra_identity::{Authority, ClientAuth, IdentityError, TlsVersions};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{IdleTimeout, ServerConfig, TransportConfig, VarInt};

use crate::error::DaemonError;

/// What one stream may send before it is read: a command and no more.
const STREAM_WINDOW: u32 = MAX_FRAME_BYTES as u32 + 4;
/// What one connection may send before it is read, over all its streams. Without it the streams of one client together could hold 32 MiB.
const CONNECTION_WINDOW: u32 = 2 * 1024 * 1024;
/// What is kept of answers until their receipt is confirmed, per connection. A reader that stops reading costs no more than this.
const SEND_WINDOW: u64 = 512 * 1024;
/// Connections that wait for their first look, and what is kept of their packets. Whoever sends them has proved nothing yet.
const MAX_INCOMING: usize = 256;
const INCOMING_BYTES: u64 = 64 * 1024;
const INCOMING_BYTES_TOTAL: u64 = 4 * 1024 * 1024;

/// TLS and transport for the endpoint.
pub(super) fn server(authority: &Authority, config: &QuicConfig) -> Result<ServerConfig, DaemonError> {
    let tls = authority.server_config(&[ALPN], ClientAuth::Required, TlsVersions::Tls13Only)?;
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| IdentityError::Tls { reason: error.to_string() })?;
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    server
        .transport_config(Arc::new(transport(config)))
        .migration(true)
        .max_incoming(MAX_INCOMING)
        .incoming_buffer_size(INCOMING_BYTES)
        .incoming_buffer_size_total(INCOMING_BYTES_TOTAL);
    Ok(server)
}

fn transport(config: &QuicConfig) -> TransportConfig {
    let idle = Duration::from_secs(config.idle_timeout_seconds);
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        // Well within the time, so that a quiet run does not end the connection that follows it.
        .keep_alive_interval(Some(idle / 3))
        .max_concurrent_bidi_streams(VarInt::from_u32(config.max_streams))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(SEND_WINDOW);
    transport
}
