//! What one call may use up.
//!
//! Every limit answers one attack, named at its field. The defaults are the product's; a manifest, an operator and the runtime itself each narrow them with
//! [`RuntimeLimits::within`], never widen.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuntimeLimits {
    /// Steps of guest code; stops loops without a clock, and the same way each time.
    pub fuel_budget: u64,
    /// All linear memories of the call together.
    pub max_memory_bytes: u64,
    /// Core instances of the call.
    pub max_instances: u32,
    /// Linear memories of the call.
    pub max_memories: u32,
    /// Tables of the call.
    pub max_tables: u32,
    /// Elements of all tables together.
    pub max_table_elements: u64,
    /// From the first instruction to the last, time in host calls included; stops a guest that waits instead of working.
    #[serde(rename = "wall_clock_timeout_ms", with = "milliseconds")]
    pub wall_clock: Duration,
    /// The text given to the guest.
    pub max_input_bytes: usize,
    /// The text the guest gives back.
    pub max_output_bytes: usize,
    /// What the guest may ask of the host.
    pub host_calls: HostCallLimits,
}

impl Default for RuntimeLimits {
    fn default() -> Self {
        Self {
            fuel_budget: 50_000_000,
            max_memory_bytes: 64 << 20,
            // Components made from scripting languages consist of many small instances around one large.
            max_instances: 64,
            max_memories: 16,
            max_tables: 64,
            max_table_elements: 200_000,
            wall_clock: Duration::from_secs(30),
            max_input_bytes: 1 << 20,
            max_output_bytes: 1 << 20,
            host_calls: HostCallLimits::default(),
        }
    }
}

impl RuntimeLimits {
    /// The smaller of both, field by field.
    #[must_use]
    pub fn within(&self, ceiling: &Self) -> Self {
        Self {
            fuel_budget: self.fuel_budget.min(ceiling.fuel_budget),
            max_memory_bytes: self.max_memory_bytes.min(ceiling.max_memory_bytes),
            max_instances: self.max_instances.min(ceiling.max_instances),
            max_memories: self.max_memories.min(ceiling.max_memories),
            max_tables: self.max_tables.min(ceiling.max_tables),
            max_table_elements: self.max_table_elements.min(ceiling.max_table_elements),
            wall_clock: self.wall_clock.min(ceiling.wall_clock),
            max_input_bytes: self.max_input_bytes.min(ceiling.max_input_bytes),
            max_output_bytes: self.max_output_bytes.min(ceiling.max_output_bytes),
            host_calls: self.host_calls.within(&ceiling.host_calls),
        }
    }
}

/// How often, and with how much, a guest may ask the host in one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostCallLimits {
    /// Calls of any kind; beyond it the call ends.
    pub total: u32,
    /// Bytes that one call may hand to the host. Lists can overlap in guest memory, so without it a small guest could make the host copy terabytes.
    pub bytes_each: usize,
    /// Requests.
    pub http: u32,
    /// Storage operations.
    pub storage: u32,
    /// Messages to channels.
    pub channel: u32,
    /// Values of secrets read.
    pub reveal: u32,
    /// Log lines; later ones are dropped.
    pub log_lines: u32,
    /// Bytes of log lines; later lines are dropped.
    pub log_bytes: u64,
    /// Progress reports; later ones are dropped.
    pub progress: u32,
    /// Random bytes; beyond it the call ends.
    pub random_bytes: u64,
}

impl Default for HostCallLimits {
    fn default() -> Self {
        Self {
            total: 10_000,
            bytes_each: 8 << 20,
            http: 64,
            storage: 4096,
            channel: 16,
            reveal: 16,
            log_lines: 1000,
            log_bytes: 256 << 10,
            progress: 1000,
            random_bytes: 1 << 20,
        }
    }
}

impl HostCallLimits {
    /// The smaller of both, field by field.
    #[must_use]
    pub fn within(&self, ceiling: &Self) -> Self {
        Self {
            total: self.total.min(ceiling.total),
            bytes_each: self.bytes_each.min(ceiling.bytes_each),
            http: self.http.min(ceiling.http),
            storage: self.storage.min(ceiling.storage),
            channel: self.channel.min(ceiling.channel),
            reveal: self.reveal.min(ceiling.reveal),
            log_lines: self.log_lines.min(ceiling.log_lines),
            log_bytes: self.log_bytes.min(ceiling.log_bytes),
            progress: self.progress.min(ceiling.progress),
            random_bytes: self.random_bytes.min(ceiling.random_bytes),
        }
    }
}

/// Durations as whole milliseconds.
mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_only_narrow() {
        let wide = RuntimeLimits::default();
        let narrow = RuntimeLimits {
            fuel_budget: 1,
            host_calls: HostCallLimits { http: 0, ..HostCallLimits::default() },
            ..RuntimeLimits::default()
        };
        let wider = RuntimeLimits { max_output_bytes: usize::MAX, ..narrow.clone() };
        assert_eq!(wider.within(&wide), narrow);
        assert_eq!(wide.within(&narrow), narrow);
    }

    #[test]
    fn limits_are_read_as_they_are_written() {
        let limits: RuntimeLimits =
            serde_json::from_str(r#"{"wall_clock_timeout_ms": 1500, "host_calls": {"http": 2}}"#).unwrap();
        assert_eq!(limits.wall_clock, Duration::from_millis(1500));
        assert_eq!((limits.host_calls.http, limits.host_calls.storage), (2, 4096));
        let text = serde_json::to_string(&limits).unwrap();
        assert_eq!(serde_json::from_str::<RuntimeLimits>(&text).unwrap(), limits);
        assert!(serde_json::from_str::<RuntimeLimits>(r#"{"fuel": 1}"#).is_err());
    }
}
