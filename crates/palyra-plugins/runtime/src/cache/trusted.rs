//! The one unsafe step: taking bytes for machine code.
//!
//! `deserialize` checks the version, the target and the settings in the bytes, but machine code can do anything, so it has to come from this program's own compiler.
//! That holds here: `Cache::load` calls this only with bytes whose HMAC is right under the daemon's key, the module's digest and this engine's fingerprint,
//! and `Cache::store` makes that HMAC only over what `serialize` gave for a module that this engine had just compiled. The bytes were read into memory
//! before they were checked, so nobody can exchange them in between.

use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use super::Code;
use crate::scan::PluginKind;

/// INVARIANT: `authentic` was authenticated under the daemon's key for this engine.
#[expect(unsafe_code, reason = "compiled code is loaded; see the argument at the top of this file")]
pub(super) fn load(engine: &Engine, authentic: &[u8], kind: PluginKind) -> wasmtime::Result<Code> {
    match kind {
        // SAFETY: the bytes were written by `Cache::store`, which authenticates only what this engine's compiler gave.
        PluginKind::Component => unsafe { Component::deserialize(engine, authentic) }.map(Code::Component),
        // SAFETY: as above.
        PluginKind::CoreModule => unsafe { Module::deserialize(engine, authentic) }.map(Code::Module),
    }
}
