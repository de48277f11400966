//! Core modules: plugins without the component model.
//!
//! One tool, one of two shapes of `run`:
//!
//! - `run: () -> i32`, a status; 0 is success and the output is `{"status":0}`.
//! - `memory`, `palyra_alloc: (i32) -> i32` and `run: (i32, i32) -> i64`: the input is written where `palyra_alloc` says and `run` is called with its place and
//!   length; it gives the place of the output in the upper and its length in the lower 32 bits. Both are JSON texts. A length of 0 is a failure.
//!
//! They may import from `palyra:host/capabilities@1.0.0`: `<kind>-count: () -> i32` and `<kind>-handle: (i32) -> i64`, where 0 stands for no handle. Calls that
//! use a handle exist for components only, so a core module can learn what it was granted and use none of it.

use wasmtime::{Caller, ExternType, FuncType, InstancePre, Linker, Module, Store, TypedFunc, ValType};

use crate::error::PluginError;
use crate::limits::RuntimeLimits;
use crate::shared::Kind;
use crate::state::CallState;

/// The only module that core modules import from.
const IMPORT: &str = "palyra:host/capabilities@1.0.0";
/// How their imports begin once they are written as one name.
pub(crate) const IMPORT_PREFIX: &str = "palyra:host/capabilities@1.0.0/";

/// Which `run` a module has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Status,
    Json,
}

/// Links counters and handles.
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    for (kind, name) in
        [(Kind::Http, "http"), (Kind::Secret, "secret"), (Kind::Storage, "storage"), (Kind::Channel, "channel")]
    {
        linker.func_wrap(IMPORT, &format!("{name}-count"), move |caller: Caller<'_, CallState>| {
            caller.data().capability_count(kind).map(u32::cast_signed)
        })?;
        linker.func_wrap(IMPORT, &format!("{name}-handle"), move |caller: Caller<'_, CallState>, index: i32| {
            let handle = caller.data().capability_handle(kind, index.cast_unsigned())?;
            wasmtime::Result::Ok(handle.unwrap_or(0).cast_signed())
        })?;
    }
    Ok(())
}

/// Which of the two shapes a module has.
pub(crate) fn entry(module: &Module) -> Result<Entry, PluginError> {
    let wrong = |reason: &str| PluginError::WrongExport { export: "run".to_owned(), reason: reason.to_owned() };
    let Some(ExternType::Func(run)) = module.get_export("run") else {
        return Err(wrong("a core module exports a function of this name"));
    };
    if has_type(&run, &[], &[ValType::I32]) {
        return Ok(Entry::Status);
    }
    if !has_type(&run, &[ValType::I32, ValType::I32], &[ValType::I64]) {
        return Err(wrong("its type is neither `() -> i32` nor `(i32, i32) -> i64`"));
    }
    let memory = matches!(module.get_export("memory"), Some(ExternType::Memory(memory)) if !memory.is_64());
    let alloc = matches!(
        module.get_export("palyra_alloc"),
        Some(ExternType::Func(alloc)) if has_type(&alloc, &[ValType::I32], &[ValType::I32])
    );
    if memory && alloc {
        return Ok(Entry::Json);
    }
    Err(wrong("with strings it also needs `memory` and `palyra_alloc: (i32) -> i32`"))
}

fn has_type(function: &FuncType, params: &[ValType], results: &[ValType]) -> bool {
    let same = |found: &mut dyn ExactSizeIterator<Item = ValType>, wanted: &[ValType]| {
        found.len() == wanted.len() && found.zip(wanted).all(|(found, wanted)| ValType::eq(&found, wanted))
    };
    same(&mut function.params(), params) && same(&mut function.results(), results)
}

/// How `run` ended, when the engine has nothing to report.
pub(crate) type Outcome = Result<String, PluginError>;

/// Runs a module; the outer error is the engine's.
pub(crate) async fn run(
    store: &mut Store<CallState>,
    pre: &InstancePre<CallState>,
    entry: Entry,
    input: &str,
    limits: &RuntimeLimits,
) -> wasmtime::Result<Outcome> {
    let instance = pre.instantiate_async(&mut *store).await?;
    if entry == Entry::Status {
        let run: TypedFunc<(), i32> = instance.get_typed_func(&mut *store, "run")?;
        return Ok(match run.call_async(&mut *store, ()).await? {
            0 => Ok(r#"{"status":0}"#.to_owned()),
            status => Err(PluginError::GuestFailed(format!("`run` returned status {status}"))),
        });
    }
    let outside = || PluginError::MalformedValue { reason: "an address outside its memory".to_owned() };
    let Some(memory) = instance.get_memory(&mut *store, "memory") else { return Ok(Err(outside())) };
    let alloc: TypedFunc<i32, i32> = instance.get_typed_func(&mut *store, "palyra_alloc")?;
    let run: TypedFunc<(i32, i32), i64> = instance.get_typed_func(&mut *store, "run")?;
    // Inputs are limited far below 2 GiB.
    let length = i32::try_from(input.len()).unwrap_or(i32::MAX);
    let place = alloc.call_async(&mut *store, length).await?;
    if memory.write(&mut *store, place.cast_unsigned() as usize, input.as_bytes()).is_err() {
        return Ok(Err(outside()));
    }
    let packed = run.call_async(&mut *store, (place, length)).await?.cast_unsigned();
    let (place, length) = ((packed >> 32) as usize, (packed & 0xffff_ffff) as usize);
    if length == 0 {
        return Ok(Err(PluginError::GuestFailed("`run` returned no output".to_owned())));
    }
    if length > limits.max_output_bytes {
        return Ok(Err(PluginError::OutputTooLarge { limit: limits.max_output_bytes }));
    }
    let Some(bytes) = memory.data(&*store).get(place..place.saturating_add(length)) else {
        return Ok(Err(outside()));
    };
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(PluginError::MalformedValue { reason: error.to_string() }),
    })
}
