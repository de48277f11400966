//! The tiers of isolation that tools run under.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// How a tool's code is held. Named by letter in stored data and by what it is in prose.
    pub enum SandboxTier("sandbox_tier") {
        /// A WebAssembly component without ambient authority.
        A = "A" | "wasm" | "tier_a",
        /// A process under Landlock, seccomp and resource limits.
        B = "B" | "restricted_process" | "tier_b",
        /// Tier B in its own namespaces, with no network but the egress proxy.
        C = "C" | "isolated_process" | "tier_c",
    }
}
