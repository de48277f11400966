//! The interfaces that need no grant: `log`, `progress`, `clock`, `random`, `config`.
//!
//! None of them reaches anything outside the call's own settings. What has no failure to answer with either drops what is too much or ends the call.

use wasmtime::Result;

use super::wit::{clock, config, log, progress, random};
use crate::services::LogLevel;
use crate::shared::Stop;
use crate::state::CallState;
use crate::text::clean;
use crate::usage::HostCall;

/// Bytes of one log line.
const MAX_LINE_BYTES: usize = 8 << 10;
/// Bytes of one progress report.
const MAX_REPORT_BYTES: usize = 512;

impl log::Host for CallState {
    fn write(&mut self, level: log::Level, message: String) -> Result<()> {
        self.shared.count(HostCall::LogWrite)?;
        let limits = &self.shared.limits;
        self.log_bytes = self.log_bytes.saturating_add(message.len() as u64);
        if self.log_bytes > limits.log_bytes || self.shared.counters.sum(&[HostCall::LogWrite]) > limits.log_lines {
            return Ok(());
        }
        let level = match level {
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        self.shared.services.log(level, &clean(&message, MAX_LINE_BYTES));
        Ok(())
    }
}

impl progress::Host for CallState {
    fn report(&mut self, percent: Option<u8>, message: String) -> Result<()> {
        self.shared.count(HostCall::ProgressReport)?;
        if self.shared.counters.sum(&[HostCall::ProgressReport]) <= self.shared.limits.progress {
            let percent = percent.map(|percent| percent.min(100));
            self.shared.services.progress(percent, &clean(&message, MAX_REPORT_BYTES));
        }
        Ok(())
    }
}

impl clock::Host for CallState {
    fn now(&mut self) -> Result<clock::Instant> {
        self.shared.count(HostCall::ClockNow)?;
        let (seconds, nanoseconds) = self.clock.wall();
        Ok(clock::Instant { seconds, nanoseconds })
    }

    fn monotonic(&mut self) -> Result<u64> {
        self.shared.count(HostCall::ClockMonotonic)?;
        Ok(self.clock.monotonic())
    }
}

impl random::Host for CallState {
    fn bytes(&mut self, length: u32) -> Result<Vec<u8>> {
        self.shared.count(HostCall::RandomBytes)?;
        self.random_bytes = self.random_bytes.saturating_add(u64::from(length));
        let limit = self.shared.limits.random_bytes;
        if self.random_bytes > limit {
            return Err(Stop::Exhausted { what: "random bytes", limit }.into());
        }
        let mut bytes = vec![0; length as usize];
        self.randomness.fill(&mut bytes).map_err(|error| Stop::Defect(error.to_string()))?;
        Ok(bytes)
    }
}

impl config::Host for CallState {
    fn get(&mut self, key: String) -> Result<Option<String>> {
        self.shared.count(HostCall::ConfigGet)?;
        Ok(self.shared.services.config().get(&key).cloned())
    }

    fn keys(&mut self) -> Result<Vec<String>> {
        self.shared.count(HostCall::ConfigKeys)?;
        Ok(self.shared.services.config().keys().cloned().collect())
    }
}
