//! From what the engine reports to what happened.
//!
//! The engine knows one kind of error; notes that were kept during the call say more: whether memory was refused, whether the host refused something. Two facts
//! reach us as words only (limits on instances and on copied bytes); tests pin those words.

use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};

use crate::error::PluginError;
use crate::limits::RuntimeLimits;
use crate::shared::Stop;
use crate::state::CallState;
use crate::text::one_line;
use crate::wasi_http::MAX_RESOURCES;

/// What wasmtime says when a store's limit on instances, memories or tables is reached.
const RESOURCE_LIMIT: &str = "resource limit exceeded: ";
/// What wasmtime says when a guest hands over more than `bytes_each`.
const COPY_LIMIT: &str = "fuel allocated for hostcalls has been exhausted";

/// What ended a call that the engine reports as an error.
pub(crate) fn classify(error: &wasmtime::Error, state: &CallState, limits: &RuntimeLimits) -> PluginError {
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return stopped(stop, limits);
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return PluginError::Overloaded;
    }
    if matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full)) {
        return PluginError::HostCallsExhausted { what: "resources held at once", limit: MAX_RESOURCES as u64 };
    }
    let trap = error.downcast_ref::<Trap>().copied();
    let text = error.root_cause().to_string();
    if trap == Some(Trap::OutOfFuel) {
        return PluginError::FuelExhausted { limit: limits.fuel_budget };
    }
    if text.contains(COPY_LIMIT) {
        // Results are copied after the last frame of the guest has gone, arguments while it stands.
        return if error.downcast_ref::<WasmBacktrace>().is_some() {
            PluginError::HostCallsExhausted {
                what: "bytes in one call to the host",
                limit: limits.host_calls.bytes_each as u64,
            }
        } else {
            PluginError::OutputTooLarge { limit: limits.max_output_bytes }
        };
    }
    if let Some(resource) = text.strip_prefix(RESOURCE_LIMIT) {
        return match resource.split(' ').next() {
            Some("instance") => PluginError::InstancesExceeded { limit: limits.max_instances },
            Some("table") => table_exceeded(limits),
            _ => memory_exceeded(limits),
        };
    }
    // Guests give up in one of these ways when they get no memory; any other trap has another cause.
    let gave_up = matches!(
        trap,
        None | Some(
            Trap::UnreachableCodeReached
                | Trap::MemoryOutOfBounds
                | Trap::TableOutOfBounds
                | Trap::ListOutOfBounds
                | Trap::StringOutOfBounds
        )
    );
    if gave_up && state.meter.memory_refused() {
        return memory_exceeded(limits);
    }
    if gave_up && state.meter.table_refused() {
        return table_exceeded(limits);
    }
    match trap {
        Some(Trap::UnreachableCodeReached) => match state.shared.denial() {
            Some(denial) => PluginError::HostDenied { call: denial.call, reason: denial.reason },
            None => PluginError::Trap { reason: trap_reason(error, Trap::UnreachableCodeReached) },
        },
        Some(
            trap @ (Trap::StringOutOfBounds
            | Trap::ListOutOfBounds
            | Trap::InvalidDiscriminant
            | Trap::UnalignedPointer
            | Trap::InvalidChar),
        ) => PluginError::MalformedValue { reason: trap_name(trap) },
        Some(trap) => PluginError::Trap { reason: trap_reason(error, trap) },
        None => PluginError::MalformedValue { reason: one_line(&text) },
    }
}

pub(crate) fn stopped(stop: &Stop, limits: &RuntimeLimits) -> PluginError {
    match stop {
        Stop::Deadline => deadline_exceeded(limits),
        Stop::Cancelled => PluginError::Cancelled,
        Stop::Exhausted { what, limit } => PluginError::HostCallsExhausted { what, limit: *limit },
        Stop::Defect(reason) => PluginError::Engine(reason.clone()),
    }
}

pub(crate) fn deadline_exceeded(limits: &RuntimeLimits) -> PluginError {
    let milliseconds = u64::try_from(limits.wall_clock.as_millis()).unwrap_or(u64::MAX);
    PluginError::DeadlineExceeded { milliseconds }
}

pub(crate) fn memory_exceeded(limits: &RuntimeLimits) -> PluginError {
    PluginError::MemoryExceeded { limit: limits.max_memory_bytes }
}

pub(crate) fn table_exceeded(limits: &RuntimeLimits) -> PluginError {
    PluginError::TableExceeded { tables: limits.max_tables, elements: limits.max_table_elements }
}

fn trap_name(trap: Trap) -> String {
    let text = trap.to_string();
    text.strip_prefix("wasm trap: ").unwrap_or(&text).to_owned()
}

/// The trap, and the innermost function that has a name.
fn trap_reason(error: &wasmtime::Error, trap: Trap) -> String {
    let frames = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames).unwrap_or_default();
    match frames.iter().find_map(|frame| frame.func_name()) {
        Some(name) => format!("{} in `{}`", trap_name(trap), crate::text::clean(name, 128)),
        None => trap_name(trap),
    }
}
