//! The machine that a figure was measured on.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// What a reader needs in order to place absolute times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the processor, or `unknown`.
    pub cpu: String,
    /// Processors this process may use.
    pub cores: usize,
    /// Kernel name and release, or `unknown`.
    pub kernel: String,
}

impl Machine {
    /// Describes the present machine; what the system does not tell is `unknown`.
    #[must_use]
    pub fn detect() -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| "unknown".to_owned(), |release| format!("{} {}", std::env::consts::OS, release.trim()));
        Self {
            cpu: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.cores == 1 { "core" } else { "cores" };
        write!(f, "{}, {} {noun}, {}", self.cpu, self.cores, self.kernel)
    }
}

/// The model name; processors that give none (most ARM ones) fall back to their architecture.
fn cpu_model(cpuinfo: &str) -> String {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| matches!(key.trim(), "model name" | "Model" | "Hardware"))
        .map(|(_, value)| value.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|model| !model.is_empty())
        .unwrap_or_else(|| format!("unknown {}", std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_model_name_counts() {
        let text = "processor\t: 0\nmodel name\t: Fast  CPU @ 3 GHz\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text), "Fast CPU @ 3 GHz");
        assert!(cpu_model("nothing here").starts_with("unknown "));
    }

    #[test]
    fn this_machine_has_a_core() {
        assert!(Machine::detect().cores >= 1);
    }
}
