//! The words of the schema that Rust code uses too: actions, and the order of the vocabularies that policies compare.
//!
//! INVARIANT: each canonical name here is a name in `schema.cedarschema`; a test compares them.

use palyra_common::{Confidentiality, Integrity, Provenance, Risk, runtime_contract_enum};

use crate::SignalConfidence;

runtime_contract_enum! {
    /// What kind of effect, answer or command is asked for; one Cedar action each.
    pub enum ActionKind("policy_action") {
        /// A call that touches nothing outside itself.
        Compute = "tool.compute",
        /// Reading files or what the run stored.
        Read = "tool.read",
        /// Changing files.
        Write = "tool.write",
        /// Running something whose reach only its tool knows.
        Execute = "tool.execute",
        /// Opening a connection.
        Connect = "net.connect",
        /// Putting a secret to use.
        UseSecret = "secret.use",
        /// Sending to a chat channel.
        Send = "channel.send",
        /// Acting on a page in a browser.
        Browse = "browser.act",
        /// Running on another machine.
        Dispatch = "worker.dispatch",
        /// Starting another agent.
        Delegate = "agent.delegate",
        /// Reading from memory.
        Recall = "memory.recall",
        /// Keeping something in memory.
        Retain = "memory.retain",
        /// Removing something from memory.
        Forget = "memory.forget",
        /// Answering an approval.
        DecideApproval = "approval.decide",
        /// Asking the daemon what there is.
        CommandRead = "command.read",
        /// Having the daemon change what belongs to somebody.
        CommandChange = "command.change",
        /// Having the daemon change itself.
        CommandAdminister = "command.administer",
    }
}

/// The order of a vocabulary as a number that policies compare.
pub(crate) trait Rank {
    fn rank(self) -> i64;
}

macro_rules! ranked {
    ($($name:ty),+) => {
        $(impl Rank for $name {
            fn rank(self) -> i64 {
                // Discriminants follow the declared order, which the contract macro also derives `Ord` from.
                self as i64
            }
        })+
    };
}

ranked!(Integrity, Confidentiality, Risk, Provenance, SignalConfidence);

#[cfg(test)]
mod tests {
    use palyra_common::{EffectScope, RunMode, SinkKind};

    use super::*;

    #[test]
    fn ranks_follow_the_documented_order() {
        assert_eq!(Integrity::System.rank(), 0);
        assert_eq!(Integrity::Untrusted.rank(), 4);
        assert_eq!(Confidentiality::Public.rank(), 0);
        assert_eq!(Confidentiality::Secret.rank(), 3);
        assert_eq!(Risk::Critical.rank(), 3);
        assert_eq!(Provenance::Pointed.rank(), 2);
        assert_eq!(Provenance::Untrusted.rank(), 5);
        assert_eq!(SignalConfidence::ALL.iter().map(|value| value.rank()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn every_vocabulary_is_the_one_of_the_schema() {
        let enumerated = |name: &str, values: Vec<&str>| {
            let quoted = values.iter().map(|value| format!("\"{value}\"")).collect::<Vec<_>>().join(", ");
            let line = format!("entity {name} enum [{quoted}];");
            assert!(crate::SCHEMA.contains(&line), "the schema has no line `{line}`");
        };
        enumerated("Integrity", Integrity::ALL.iter().map(|value| value.as_str()).collect());
        enumerated("Confidentiality", Confidentiality::ALL.iter().map(|value| value.as_str()).collect());
        enumerated("Provenance", Provenance::ALL.iter().map(|value| value.as_str()).collect());
        enumerated("Scope", EffectScope::ALL.iter().map(|value| value.as_str()).collect());
        enumerated("Risk", Risk::ALL.iter().map(|value| value.as_str()).collect());
        enumerated("RunMode", RunMode::ALL.iter().map(|value| value.as_str()).collect());
        enumerated("Reach", palyra_common::ApprovalScope::ALL.iter().map(|value| value.as_str()).collect());
        enumerated("Signal", crate::SignalKind::ALL.iter().map(|value| value.as_str()).collect());
        for action in ActionKind::ALL {
            assert!(crate::SCHEMA.contains(&format!("action \"{action}\" ")), "the schema has no action `{action}`");
        }
        for sink in SinkKind::ALL {
            assert!(crate::SCHEMA.contains(&format!("  {sink}?: ")), "the schema has no sink `{sink}`");
        }
    }
}
