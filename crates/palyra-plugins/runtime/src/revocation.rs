//! Taking grants back while a call runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A switch that ends the grants of calls it was given to; clones share it. The next host call that needs a grant is told that there is none.
#[derive(Debug, Clone, Default)]
pub struct Revocation(Arc<AtomicBool>);

impl Revocation {
    /// Takes the grants back, for good.
    pub fn revoke(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether they were taken back.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
