//! Where the value of an argument comes from.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// Where the value of an argument comes from. Ordered: a *greater* value is *less* trusted, so combining is `max`.
    pub enum Provenance("provenance") {
        /// The user, the operator or Palyra itself wrote it, or a person approved exactly it.
        Trusted = "trusted",
        /// A field of a tool's result that no attacker can write.
        ToolTrusted = "tool_trusted",
        /// Stands verbatim in a record with an attested author, from a place that the user named.
        Pointed = "pointed",
        /// A reference to a variable; its label says how far to trust it.
        Variable = "variable",
        /// Found nowhere: the model made it up.
        Invented = "invented",
        /// Only untrusted material contains it.
        Untrusted = "untrusted",
    }
}
