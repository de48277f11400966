//! The runtime: modules in, plugins out, calls.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use palyra_common::Digest;
use tokio::sync::Semaphore;
use wasmtime::Engine;

use crate::cache::{Cache, CacheOptions, CacheStats};
use crate::compile::{Slots, compile};
use crate::engine::{self, Allocation};
use crate::error::PluginError;
use crate::limits::RuntimeLimits;
use crate::linkers::Linkers;
use crate::plugin::Plugin;
use crate::scan::{scan, validate};
use crate::ticker::Ticker;

/// How the runtime is set up.
#[derive(Debug)]
pub struct RuntimeOptions {
    /// Where compiled code is kept; `None` compiles at each start.
    pub cache: Option<CacheOptions>,
    /// How many guests can exist at once.
    pub allocation: Allocation,
    /// The largest module that is taken.
    pub max_module_bytes: usize,
    /// How long compiling one module may take.
    pub compile_deadline: Duration,
    /// Calls that may wait for their turn; further ones are turned away.
    pub max_waiting: usize,
    /// What no call may exceed, whatever its manifest says.
    pub ceiling: RuntimeLimits,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            cache: None,
            allocation: Allocation::default(),
            max_module_bytes: 32 << 20,
            compile_deadline: Duration::from_secs(300),
            max_waiting: 4096,
            ceiling: engine::ceiling(),
        }
    }
}

impl RuntimeOptions {
    /// With compiled code kept in a folder under a key.
    #[must_use]
    pub fn cached(dir: PathBuf, key: crate::cache::CacheKey) -> Self {
        Self { cache: Some(CacheOptions { dir, key }), ..Self::default() }
    }
}

/// Loads and calls plugins. Clones are the same runtime; the last one takes the clock thread with it.
#[derive(Clone)]
pub struct PluginRuntime {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) turns: Semaphore,
    pub(crate) waiting: Semaphore,
    pub(crate) ceiling: RuntimeLimits,
    linkers: Linkers,
    cache: Option<Cache>,
    slots: Arc<Slots>,
    loaded: Mutex<HashMap<Digest, Weak<Plugin>>>,
    allocation: Allocation,
    max_module_bytes: usize,
    compile_deadline: Duration,
}

impl std::fmt::Debug for PluginRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginRuntime").field("allocation", &self.inner.allocation).finish_non_exhaustive()
    }
}

impl PluginRuntime {
    /// Starts an engine with its clock.
    pub fn new(options: RuntimeOptions) -> Result<Self, PluginError> {
        let (engine, allocation) = engine::start(options.allocation)?;
        let ticker = Ticker::start(&engine).map_err(|error| PluginError::Engine(error.to_string()))?;
        let cache = options.cache.map(|cache| Cache::open(cache, engine::fingerprint(&engine))).transpose()?;
        Ok(Self {
            inner: Arc::new(Inner {
                linkers: Linkers::new(&engine)?,
                engine,
                ticker,
                turns: Semaphore::new(allocation.calls() as usize),
                waiting: Semaphore::new(options.max_waiting.min(Semaphore::MAX_PERMITS)),
                ceiling: options.ceiling.within(&engine::ceiling()),
                cache,
                slots: Arc::default(),
                loaded: Mutex::default(),
                allocation,
                max_module_bytes: options.max_module_bytes,
                compile_deadline: options.compile_deadline,
            }),
        })
    }

    /// Checks, compiles (or takes compiled code from disk) and links a module. It blocks: call it where blocking is allowed.
    pub fn prepare(&self, wasm: &[u8]) -> Result<Arc<Plugin>, PluginError> {
        let inner = &*self.inner;
        if wasm.len() > inner.max_module_bytes {
            return Err(PluginError::TooLarge(format!(
                "it has {} bytes; the limit is {}",
                wasm.len(),
                inner.max_module_bytes
            )));
        }
        let digest = Digest::of(wasm);
        if let Some(plugin) = self.loaded(digest) {
            return Ok(plugin);
        }
        let scan = scan(wasm)?;
        let kept = inner.cache.as_ref().and_then(|cache| cache.load(&inner.engine, digest, scan.kind));
        let code = match kept {
            Some(code) => code,
            None => {
                validate(wasm, inner.engine.get_wasm_features())?;
                let (code, bytes) = compile(&inner.engine, &inner.slots, wasm, scan.kind, inner.compile_deadline)?;
                if let Some(cache) = &inner.cache {
                    cache.store(digest, scan.kind, &bytes);
                }
                code
            }
        };
        let plugin = Arc::new(Plugin::link(digest, scan, &code, &inner.linkers)?);
        let mut loaded = inner.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|_, plugin| plugin.strong_count() > 0);
        loaded.insert(digest, Arc::downgrade(&plugin));
        Ok(plugin)
    }

    /// A plugin that somebody still holds.
    fn loaded(&self, digest: Digest) -> Option<Arc<Plugin>> {
        self.inner.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(&digest)?.upgrade()
    }

    /// Removes the compiled code of a module from disk.
    pub fn forget(&self, digest: Digest) -> Result<(), PluginError> {
        match &self.inner.cache {
            Some(cache) => cache.forget(digest).map_err(|error| PluginError::Cache(error.to_string())),
            None => Ok(()),
        }
    }

    /// What the cache on disk did since the start.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.inner.cache.as_ref().map(Cache::stats).unwrap_or_default()
    }

    /// The engine itself, to measure and test what its settings mean.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Where memory for guests comes from on this machine.
    #[must_use]
    pub fn allocation(&self) -> Allocation {
        self.inner.allocation
    }
}
