//! What the operator lets plugins use at most.

use std::path::Path;
use std::time::Duration;

use palyra_common::config::Config;
use palyra_plugins_runtime::{
    Allocation, CacheKey, CacheOptions, PluginError, PluginRuntime, PoolSizes, RuntimeLimits, RuntimeOptions,
};
use palyra_skills::{AuditPolicy, Quotas};

/// Ceilings for all plugins of this daemon.
#[derive(Debug, Clone)]
pub(crate) struct WasmPluginRunnerPolicy {
    /// Whether a call may bring its module along.
    pub(crate) allow_inline_modules: bool,
    /// Largest module.
    pub(crate) max_module_bytes: u64,
    /// What no call may exceed.
    pub(crate) ceiling: RuntimeLimits,
    /// Calls at the same time.
    pub(crate) max_concurrent: u32,
}

impl WasmPluginRunnerPolicy {
    pub(crate) fn of(config: &Config) -> Self {
        let plugins = &config.plugins;
        let ceiling = RuntimeLimits {
            fuel_budget: plugins.fuel_budget,
            max_memory_bytes: plugins.max_memory_bytes,
            wall_clock: Duration::from_millis(plugins.wall_clock_ms),
            max_output_bytes: usize::try_from(plugins.max_output_bytes).unwrap_or(usize::MAX),
            ..RuntimeLimits::default()
        };
        Self {
            allow_inline_modules: plugins.allow_inline_modules,
            max_module_bytes: plugins.max_module_bytes,
            ceiling,
            max_concurrent: plugins.max_concurrent,
        }
    }

    /// What a skill asks for, within the ceilings.
    pub(crate) fn limits(&self, quotas: Quotas) -> RuntimeLimits {
        let mut asked = self.ceiling.clone();
        asked.fuel_budget = quotas.fuel_budget;
        asked.max_memory_bytes = quotas.max_memory_bytes;
        asked.wall_clock = Duration::from_millis(quotas.wall_clock_timeout_ms);
        asked.within(&self.ceiling)
    }

    pub(crate) fn audit(&self) -> AuditPolicy {
        let usual = AuditPolicy::default();
        AuditPolicy { max_module_bytes: self.max_module_bytes.min(usual.max_module_bytes), ..usual }
    }

    /// The runtime, with compiled code kept below `directory`.
    pub(crate) fn runtime(&self, directory: &Path) -> Result<PluginRuntime, PluginError> {
        let key = CacheKey::load_or_create(&directory.join("cache.key"))?;
        let calls = self.max_concurrent;
        let pool = PoolSizes { calls, ..PoolSizes::default() };
        PluginRuntime::new(RuntimeOptions {
            cache: Some(CacheOptions { dir: directory.join("compiled"), key }),
            allocation: Allocation::Pool(pool),
            max_module_bytes: usize::try_from(self.max_module_bytes).unwrap_or(usize::MAX),
            ceiling: self.ceiling.clone(),
            ..RuntimeOptions::default()
        })
    }
}
