//! QUIC: the same commands and streams as everywhere, one QUIC stream for each, with a device certificate.
//!
//! [`frame`](FrameDecoder) is how messages lie in a stream, the same for both sides; [`QuicClient`] is the client; [`QuicTape`] follows a run over
//! changes of network, broken connections and restarts of the daemon. There is no early data: nothing is sent before the handshake is complete, so nothing
//! that a client sends can be sent again by somebody else.

mod client;
mod exchange;
mod frame;
mod tape;

pub use client::QuicClient;
pub use exchange::QuicDocuments;
pub use frame::{FrameDecoder, FrameError, MAX_FRAME_BYTES, encode_message};
pub use tape::{QuicTape, QuicTapeSource};

/// What both sides say they speak.
pub const ALPN: &[u8] = b"palyra-quic-v1";
/// Name of the file in the state root that says where the daemon serves QUIC.
pub const QUIC_ADDRESS_NAME: &str = "quic.addr";
/// Directory in the state root with the certificate of the daemon's local owner.
pub const LOCAL_IDENTITY: &str = "identity/local";

/// Why one side closed the connection or gave up a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCode {
    /// It has what it wanted.
    Done,
    /// The daemon is stopping.
    Stopping,
    /// The certificate is not good, or not any more.
    CertificateRefused,
}

impl CloseCode {
    /// Every one of them.
    pub const ALL: [Self; 3] = [Self::Done, Self::Stopping, Self::CertificateRefused];

    /// Its number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Done => 0,
            Self::Stopping => 1,
            Self::CertificateRefused => 2,
        }
    }

    /// The one with this number.
    #[must_use]
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|code| u64::from(code.number()) == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_codes_are_numbered_for_good() {
        for (number, code) in CloseCode::ALL.into_iter().enumerate() {
            assert_eq!((code.number() as usize, CloseCode::of(number as u64)), (number, Some(code)));
        }
        assert_eq!(CloseCode::of(3), None);
    }
}
