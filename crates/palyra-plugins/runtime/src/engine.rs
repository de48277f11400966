//! The one configuration under which guests are compiled and run.
//!
//! Everything that could differ from run to run is pinned (canonical NaN, relaxed SIMD by its strict meaning), everything that is not needed is off. Memory for
//! guests comes from a pool that is reserved once: slots are reused, so a fresh instance costs microseconds, and the number of slots bounds what all guests
//! together can hold.

use std::hash::{Hash, Hasher};

use palyra_common::Digest;
use sha2::{Digest as _, Sha256};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, RegallocAlgorithm};

use crate::error::PluginError;
use crate::limits::RuntimeLimits;

/// How much stack guest code has; beyond it the call traps.
const GUEST_STACK: usize = 1 << 20;
/// The stack of a call, with room for host functions above the guest's.
const CALL_STACK: usize = 2 << 20;
/// The largest linear memory whatever a manifest says; a slot of the pool has this size.
pub(crate) const MAX_MEMORY_BYTES: usize = 256 << 20;
/// The largest table.
const MAX_TABLE_ELEMENTS: usize = 200_000;

/// How many guests can exist at once, and of how many parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSizes {
    /// Calls that run at the same time; further ones wait.
    pub calls: u32,
    /// Core instances of all running calls; components made from scripting languages have dozens.
    pub core_instances: u32,
    /// Linear memories of all running calls. Each reserves 4 GiB of address space, and no memory until it is used.
    pub memories: u32,
    /// Tables of all running calls.
    pub tables: u32,
}

impl Default for PoolSizes {
    fn default() -> Self {
        Self { calls: 64, core_instances: 2048, memories: 192, tables: 1024 }
    }
}

/// Where memory for guests comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// Slots that were reserved once.
    Pool(PoolSizes),
    /// From the operating system for each call: slower, for machines with little address space.
    OnDemand {
        /// Calls that run at the same time; further ones wait.
        calls: u32,
    },
}

impl Default for Allocation {
    fn default() -> Self {
        Self::Pool(PoolSizes::default())
    }
}

impl Allocation {
    pub(crate) const fn calls(self) -> u32 {
        match self {
            Self::Pool(sizes) => sizes.calls,
            Self::OnDemand { calls } => calls,
        }
    }
}

/// No call may have more than this, whatever was asked for.
pub(crate) fn ceiling() -> RuntimeLimits {
    RuntimeLimits {
        fuel_budget: u64::MAX,
        max_memory_bytes: MAX_MEMORY_BYTES as u64,
        max_instances: 64,
        max_memories: 16,
        max_tables: 64,
        max_table_elements: MAX_TABLE_ELEMENTS as u64,
        wall_clock: std::time::Duration::from_secs(600),
        max_input_bytes: 16 << 20,
        max_output_bytes: 16 << 20,
        host_calls: crate::limits::HostCallLimits {
            total: 1_000_000,
            bytes_each: 64 << 20,
            http: u32::MAX,
            storage: u32::MAX,
            channel: u32::MAX,
            reveal: u32::MAX,
            log_lines: u32::MAX,
            log_bytes: u64::MAX,
            progress: u32::MAX,
            random_bytes: u64::MAX,
        },
    }
}

/// Settings that guests are compiled and run under.
pub(crate) fn config(allocation: Allocation) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_regalloc_algorithm(RegallocAlgorithm::Backtracking)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .wasm_component_model(true)
        .wasm_wide_arithmetic(false)
        .wasm_custom_page_sizes(false)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(CALL_STACK)
        .memory_init_cow(true);
    if let Allocation::Pool(sizes) = allocation {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(sizes.calls)
            .total_core_instances(sizes.core_instances)
            .total_memories(sizes.memories)
            .total_tables(sizes.tables)
            .total_stacks(sizes.calls)
            .max_memory_size(MAX_MEMORY_BYTES)
            .table_elements(MAX_TABLE_ELEMENTS)
            .max_core_instances_per_component(64)
            .max_memories_per_component(16)
            .max_tables_per_component(64)
            .max_memories_per_module(16)
            .max_tables_per_module(64)
            .max_component_instance_size(4 << 20)
            .max_core_instance_size(4 << 20)
            // A small guest is wiped by writing zeros, without asking the kernel for new pages.
            .linear_memory_keep_resident(128 << 10)
            .table_keep_resident(8 << 10);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

/// An engine, with the allocation it really has: where the pool cannot be reserved, memory comes on demand.
pub(crate) fn start(wanted: Allocation) -> Result<(Engine, Allocation), PluginError> {
    let refused = match Engine::new(&config(wanted)) {
        Ok(engine) => return Ok((engine, wanted)),
        Err(error) => error,
    };
    let fallback = Allocation::OnDemand { calls: wanted.calls() };
    if wanted == fallback {
        return Err(PluginError::Engine(refused.to_string()));
    }
    tracing::warn!(error = %refused, "the pooling allocator is not available on this machine; memory is allocated per call");
    match Engine::new(&config(fallback)) {
        Ok(engine) => Ok((engine, fallback)),
        Err(error) => Err(PluginError::Engine(error.to_string())),
    }
}

/// Says under which version, target and settings code was compiled: code of another fingerprint is never loaded.
pub(crate) fn fingerprint(engine: &Engine) -> Digest {
    struct Sha(Sha256);
    impl Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hasher = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    Digest(hasher.0.finalize().into())
}
