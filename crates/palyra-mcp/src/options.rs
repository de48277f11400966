//! How patient the client is and how much it takes in.

use std::time::Duration;

/// Bounds that hold for every server.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// How long a server may take from its start to the end of the handshake.
    pub connect_timeout: Duration,
    /// How long listing all tools may take.
    pub list_timeout: Duration,
    /// Largest single message that is taken from a server.
    pub output_bytes: usize,
    /// First pause after a failed connection; doubled with each further failure.
    pub first_backoff: Duration,
    /// Longest pause.
    pub last_backoff: Duration,
    /// Shortest time between two progress reports of one call.
    pub progress_interval: Duration,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            // Package runners take seconds to start what they have; a program that ends or writes something else fails at once.
            connect_timeout: Duration::from_secs(30),
            list_timeout: Duration::from_secs(20),
            output_bytes: 8 << 20,
            first_backoff: Duration::from_millis(500),
            last_backoff: Duration::from_secs(60),
            progress_interval: Duration::from_millis(200),
        }
    }
}
