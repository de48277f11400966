//! What a safety scan may ask for.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// What to do with scanned text. Ordered from weakest to strongest, so that combining findings is `max`.
    pub enum SafetyAction("safety_action") {
        /// Let it pass.
        Allow = "allow",
        /// Let it pass with a note.
        Annotate = "annotate",
        /// Let it pass without the offending parts.
        Redact = "redact",
        /// Ask a person.
        RequireApproval = "require_approval",
        /// Do not let it pass.
        Block = "block",
    }
}
