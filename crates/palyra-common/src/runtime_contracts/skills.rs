//! Skills: how far a skill is trusted and whether it may run.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// How far a skill's publisher is trusted. Ordered from least to most.
    pub enum SkillTrust("skill_trust") {
        /// Held back until a person looks at it.
        Quarantine = "quarantine",
        /// Trusted on first use: the key was new and is now remembered.
        Tofu = "tofu",
        /// The publisher's key is trusted by the operator.
        Trusted = "trusted",
    }
}

runtime_contract_enum! {
    /// Whether a skill may run.
    pub enum SkillStatus("skill_status") {
        /// It may.
        Enabled = "enabled" | "verified" | "active",
        /// Switched off by a person.
        Disabled = "disabled",
        /// Held back by a check.
        Quarantined = "quarantined",
    }
}
