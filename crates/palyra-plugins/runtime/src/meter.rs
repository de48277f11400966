//! Memory and tables of one call: how much there may be, how much there was, and whether more was wanted.
//!
//! A growth beyond the limit fails as WebAssembly says it may (`memory.grow` gives -1). Most guests trap on that a moment later; the note that is kept here
//! lets the error say why.

use wasmtime::ResourceLimiter;

use crate::limits::RuntimeLimits;

/// Counts for one store.
#[derive(Debug)]
pub(crate) struct Meter {
    max_bytes: usize,
    max_elements: usize,
    max_instances: usize,
    max_memories: usize,
    max_tables: usize,
    bytes: usize,
    elements: usize,
    peak_bytes: usize,
    memory_refused: bool,
    table_refused: bool,
}

impl Meter {
    pub(crate) fn new(limits: &RuntimeLimits) -> Self {
        Self {
            max_bytes: usize::try_from(limits.max_memory_bytes).unwrap_or(usize::MAX),
            max_elements: usize::try_from(limits.max_table_elements).unwrap_or(usize::MAX),
            max_instances: limits.max_instances as usize,
            max_memories: limits.max_memories as usize,
            max_tables: limits.max_tables as usize,
            bytes: 0,
            elements: 0,
            peak_bytes: 0,
            memory_refused: false,
            table_refused: false,
        }
    }

    pub(crate) const fn peak_bytes(&self) -> usize {
        self.peak_bytes
    }

    pub(crate) const fn memory_refused(&self) -> bool {
        self.memory_refused
    }

    pub(crate) const fn table_refused(&self) -> bool {
        self.table_refused
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.bytes.saturating_add(desired.saturating_sub(current));
        // Beyond the memory's own maximum the growth fails anyway, and that is no doing of ours.
        let own = maximum.is_some_and(|maximum| desired > maximum && maximum < self.max_bytes);
        if total > self.max_bytes {
            self.memory_refused |= !own;
            return Ok(false);
        }
        if !own {
            self.bytes = total;
            self.peak_bytes = self.peak_bytes.max(total);
        }
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.elements.saturating_add(desired.saturating_sub(current));
        let own = maximum.is_some_and(|maximum| desired > maximum && maximum < self.max_elements);
        if total > self.max_elements {
            self.table_refused |= !own;
            return Ok(false);
        }
        if !own {
            self.elements = total;
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.max_instances
    }

    fn tables(&self) -> usize {
        self.max_tables
    }

    fn memories(&self) -> usize {
        self.max_memories
    }
}
