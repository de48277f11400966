//! Compiling under a deadline.
//!
//! The compiler cannot be interrupted, so it works on a thread of its own, and whoever waits for it stops waiting when the time is up. The thread keeps its slot
//! until it is done: modules that take for ever can hold [`SLOTS`] threads and no more, and meanwhile others are told to come back later.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::cache::Code;
use crate::error::PluginError;
use crate::scan::PluginKind;
use crate::text::one_line;

/// Modules that are compiled at the same time. The compiler itself works on several functions at once.
const SLOTS: usize = 2;

/// Who may compile.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    taken: Mutex<usize>,
    freed: Condvar,
}

struct Slot(Arc<Slots>);

impl Slots {
    fn take(self: &Arc<Self>, wait: Duration) -> Result<Slot, PluginError> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, result) =
            self.freed.wait_timeout_while(taken, wait, |taken| *taken >= SLOTS).unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() {
            return Err(PluginError::Overloaded);
        }
        *taken += 1;
        Ok(Slot(Arc::clone(self)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(1);
        self.0.freed.notify_one();
    }
}

/// Compiles a valid module, and gives its machine code for keeping too.
pub(crate) fn compile(
    engine: &Engine,
    slots: &Arc<Slots>,
    wasm: &[u8],
    kind: PluginKind,
    deadline: Duration,
) -> Result<(Code, Vec<u8>), PluginError> {
    let started = Instant::now();
    let slot = slots.take(deadline)?;
    let (sender, receiver) = mpsc::sync_channel(1);
    let (engine, wasm) = (engine.clone(), wasm.to_vec());
    thread::Builder::new()
        .name("plugin-compiler".to_owned())
        .spawn(move || {
            let compiled = translate(&engine, &wasm, kind);
            drop(slot);
            // Nobody may be waiting any more.
            let _ = sender.send(compiled);
        })
        .map_err(|error| PluginError::Engine(error.to_string()))?;
    match receiver.recv_timeout(deadline.saturating_sub(started.elapsed())) {
        Ok(compiled) => compiled.map_err(|error| PluginError::TooLarge(one_line(&format!("{error:#}")))),
        Err(RecvTimeoutError::Timeout) => Err(PluginError::CompileTooSlow { seconds: deadline.as_secs() }),
        Err(RecvTimeoutError::Disconnected) => Err(PluginError::Engine("the compiler crashed".to_owned())),
    }
}

/// Validation has been passed, so what fails here does not fit into the engine's limits.
fn translate(engine: &Engine, wasm: &[u8], kind: PluginKind) -> wasmtime::Result<(Code, Vec<u8>)> {
    match kind {
        PluginKind::Component => {
            let component = Component::from_binary(engine, wasm)?;
            let bytes = component.serialize()?;
            Ok((Code::Component(component), bytes))
        }
        PluginKind::CoreModule => {
            let module = Module::from_binary(engine, wasm)?;
            let bytes = module.serialize()?;
            Ok((Code::Module(module), bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_back() {
        let slots = Arc::new(Slots::default());
        let held: Vec<Slot> = (0..SLOTS).map(|_| slots.take(Duration::ZERO).ok().unwrap()).collect();
        assert!(matches!(slots.take(Duration::from_millis(1)), Err(PluginError::Overloaded)));
        drop(held);
        assert!(slots.take(Duration::ZERO).is_ok());
    }
}
