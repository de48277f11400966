//! QUIC around the one dispatcher: TLS 1.3, a device certificate for every connection, one stream for every command.
//!
//! `endpoint` takes connections in, `connection` looks after one of them, `stream` carries out one command, `reply` is the one place where outcomes and refusals become
//! frames, `settings` holds the bounds. Frames themselves are `palyra_client::quic`, the same for both sides.
//!
//! There is no early data, neither for reading nor for changing: the daemon hands out no tickets with which a client could send any, and refuses what it is sent.
//! A connection survives a change of its client's address, because it is known by its ids and its keys.

mod connection;
mod endpoint;
mod reply;
mod settings;
mod stream;

use std::sync::{Arc, PoisonError, RwLock};

use palyra_common::ComponentHealth;

pub(crate) use endpoint::serve;

/// What health says about QUIC. It changes once more after the start, when certificates were opened in the background.
#[derive(Debug, Clone)]
pub(crate) struct QuicHealth(Arc<RwLock<ComponentHealth>>);

impl QuicHealth {
    pub(crate) fn new(health: ComponentHealth) -> Self {
        Self(Arc::new(RwLock::new(health)))
    }

    /// What it says now.
    pub(crate) fn get(&self) -> ComponentHealth {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, health: ComponentHealth) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = health;
    }
}
