//! Host functions, put together once per engine.

use wasmtime::{Engine, component};

use crate::error::PluginError;
use crate::state::CallState;
use crate::{core_module, host, wasi_http};

/// One linker for each kind of guest. `wasi:http` is apart, so that a guest that does not use it cannot be linked to any of it.
pub(crate) struct Linkers {
    pub(crate) component: component::Linker<CallState>,
    pub(crate) with_wasi_http: component::Linker<CallState>,
    pub(crate) module: wasmtime::Linker<CallState>,
}

impl Linkers {
    pub(crate) fn new(engine: &Engine) -> Result<Self, PluginError> {
        Self::link(engine).map_err(|error| PluginError::Engine(format!("{error:#}")))
    }

    fn link(engine: &Engine) -> wasmtime::Result<Self> {
        let mut linkers = Self {
            component: component::Linker::new(engine),
            with_wasi_http: component::Linker::new(engine),
            module: wasmtime::Linker::new(engine),
        };
        host::link(&mut linkers.component)?;
        host::link(&mut linkers.with_wasi_http)?;
        wasi_http::link(&mut linkers.with_wasi_http)?;
        core_module::link(&mut linkers.module)?;
        Ok(linkers)
    }
}
