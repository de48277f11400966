//! How it is known that a run changed a file.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// How it is known that a run changed a file.
    pub enum ChangeAttribution("change_attribution") {
        /// The run wrote it: what was there before and after is what the tool itself read and wrote.
        Written = "written",
        /// The file differed after a program or an outside server had run, and nothing shows that anybody else changed it meanwhile.
        Observed = "observed",
        /// The file differed, and somebody else changed it, or may have: it changed while the program did not run, or while another run was at work in
        /// the same directory. Undo leaves it alone.
        Contested = "contested",
    }
}

impl ChangeAttribution {
    /// Whether the run itself wrote the file.
    #[must_use]
    pub const fn is_written(&self) -> bool {
        matches!(self, Self::Written)
    }
}

impl Default for ChangeAttribution {
    /// What a record says that does not mention it.
    fn default() -> Self {
        Self::Written
    }
}
