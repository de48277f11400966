//! Work that recurses as deep as a policy does, done where the stack is deep enough.
//!
//! Parsing one pair of brackets takes dozens of stack frames, so forty of them can overflow the stack of an ordinary thread and end
//! the process. Together with the bounds of `complexity.rs` this stack cannot overflow. A panic inside becomes an error as well:
//! policies that upset their parser are refused, they do not take the daemon down.

use std::thread;

use crate::PolicyError;

/// Reserved, not used: pages that are never touched cost nothing.
const STACK_BYTES: usize = 64 << 20;

pub(crate) fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, PolicyError> + Send) -> Result<T, PolicyError> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("palyra-policy".to_owned()).stack_size(STACK_BYTES);
        let worker = builder.spawn_scoped(scope, work).map_err(PolicyError::broken)?;
        worker.join().unwrap_or_else(|_| Err(PolicyError::broken("reading the policies panicked")))
    })
}
