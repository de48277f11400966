//! One connection: its handshake, its streams, and whether its certificate still counts.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use palyra_client::quic::CloseCode;
use palyra_identity::{Authority, Refusal};
use quinn::{Connection, Incoming, VarInt};
use rustls_pki_types::CertificateDer;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

use super::stream;
use crate::app::App;
use crate::serve::Connection as Slot;
use crate::tls::Device;

/// How long a client may take to shake hands. It holds one of the places for connections meanwhile.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a handshake may still take when the daemon stops.
const LAST_HANDSHAKE: Duration = Duration::from_millis(500);
/// How often the certificate of an open connection is looked at. Every command looks too; this is for streams that only run.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Why we close a connection.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The daemon stops.
    Stopping,
    /// The certificate stands for nobody.
    CertificateRefused,
    /// No command was under way for too long.
    Idle,
    /// Another connection needs its slot.
    Evicted,
    /// Its principal has too many.
    TooMany,
}

/// Serves one connection to its end.
pub(super) async fn serve(app: &Arc<App>, authority: Arc<Authority>, incoming: Incoming, slot: Slot) {
    let remote = incoming.remote_address();
    let connecting = async { incoming.accept()?.await };
    // A client may think that it is connected a moment before we do; it is still to hear why the daemon goes.
    let stopping = async {
        app.closing.cancelled().await;
        tokio::time::sleep(LAST_HANDSHAKE).await;
    };
    let connection = tokio::select! {
        biased;
        shaken = tokio::time::timeout(HANDSHAKE, connecting) => match shaken {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => {
                tracing::debug!(%remote, %error, "a QUIC connection could not be established");
                return;
            }
            Err(_) => return,
        },
        () = stopping => return,
        () = slot.evicted() => return,
    };
    match identified(&connection, authority) {
        Ok(device) => {
            let ended = attend(app, &connection, &Arc::new(device), &slot).await;
            tracing::debug!(%remote, ?ended, "a QUIC connection ended");
            if let Some(end) = ended {
                close(&connection, end);
            }
        }
        Err(refusal) => {
            tracing::debug!(%remote, %refusal, "a QUIC connection was refused");
            close(&connection, End::CertificateRefused);
        }
    }
}

/// Whoever is at the other end, by the certificate that the handshake has verified.
fn identified(connection: &Connection, authority: Arc<Authority>) -> Result<Device, Refusal> {
    let shown = connection.peer_identity().and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    Device::new(authority, *shown.ok_or(Refusal::Unknown)?)
}

/// Answers every stream until the connection is to be closed, or is gone (`None`).
async fn attend(app: &Arc<App>, connection: &Connection, device: &Arc<Device>, slot: &Slot) -> Option<End> {
    let _open = app.metrics.connection_opened(palyra_telemetry::Transport::Quic);
    let mut streams = JoinSet::new();
    let Ok(principal) = device.principal() else { return Some(End::CertificateRefused) };
    // From now on it outlasts those of strangers.
    if slot.authenticated(&principal.id).is_err() {
        return Some(End::TooMany);
    }
    let mut lease = app.gate.lease(&principal);
    let mut look = tokio::time::interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut idle = pin!(sleep_until(slot.idle_deadline()));
    loop {
        tokio::select! {
            biased;
            () = app.closing.cancelled() => break,
            _ = look.tick() => {
                let good = device.principal().is_ok_and(|principal| app.gate.still_good(&principal).is_ok());
                if !good {
                    // What is under way is broken off with the connection: its certificate stands for nobody.
                    return Some(End::CertificateRefused);
                }
            }
            () = slot.evicted() => return Some(End::Evicted),
            () = idle.as_mut() => {
                let deadline = slot.idle_deadline();
                if deadline <= Instant::now() {
                    return Some(End::Idle);
                }
                idle.as_mut().reset(deadline);
            }
            // Somebody took the certificate back.
            _ = lease.lost() => return Some(End::CertificateRefused),
            Some(_) = streams.join_next(), if !streams.is_empty() => {}
            accepted = connection.accept_bi() => match accepted {
                Ok((send, receive)) => {
                    let (request, slot) = (slot.request(), slot.clone());
                    let (app, device) = (Arc::clone(app), Arc::clone(device));
                    streams.spawn(async move {
                        stream::answer(app, device, &slot, send, receive).await;
                        drop(request);
                    });
                }
                Err(_) => return None,
            }
        }
    }
    while streams.join_next().await.is_some() {}
    Some(End::Stopping)
}

fn close(connection: &Connection, end: End) {
    let (code, reason) = match end {
        End::Stopping => (CloseCode::Stopping, "the daemon is stopping"),
        End::CertificateRefused => (CloseCode::CertificateRefused, "the certificate is no longer valid"),
        End::Idle => (CloseCode::Done, "no command was in progress for too long"),
        End::Evicted => (CloseCode::Done, "there are too many connections"),
        End::TooMany => (CloseCode::Done, "there are too many connections of this principal"),
    };
    connection.close(VarInt::from_u32(code.number()), reason.as_bytes());
}
