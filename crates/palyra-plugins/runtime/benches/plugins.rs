//! What a call of a plugin costs: against the bare engine, against compiling, and many at once.
//!
//! - `wasm.warm`: a call of a tool that gives its input back, against the same component called with the bare engine under the same limits (fresh store and
//!   instance, fuel, epoch, memory limiter). The difference is ours: grants, counters, turns, the deadline, the report of what was used.
//! - `wasm.first_cached`: from the bytes of a large component to its first answer after a restart, compiling against loading compiled code from disk.
//! - `wasm.concurrent1000`: a thousand calls at once on two threads: calls per second and memory.
//!
//! Left out: validating input and output by JSON Schema, which happens around a call; the program `schemas` measures it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a measuring program stops at the first surprise")]

#[path = "../tests/it/harness/guest.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod guest;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use palyra_figures::{Aim, Report, Samples, measure_against};
use palyra_plugins_runtime::{CacheKey, CallOptions, Plugin, PluginRuntime, RuntimeLimits, RuntimeOptions, ToolCall};
use tokio::runtime::Runtime;
use wasmtime::component::{Component, Linker, TypedFunc};
use wasmtime::{Store, StoreLimits, StoreLimitsBuilder, UpdateDeadline};

type Failure = Box<dyn std::error::Error>;

/// Calls per measurement: a single one is too short for the clock.
const BATCH: usize = 200;
const WARMUP: u32 = 5;
const REPEATS: u32 = 31;
/// Restarts of each kind.
const RESTARTS: usize = 5;
/// Functions of the large component.
const FUNCTIONS: usize = 4_000;
/// Calls at once.
const CROWD: usize = 1_000;

const INPUT: &str = r#"{"text":"a line of text that goes in and comes out","count":3,"tags":["one","two"]}"#;
fn main() -> Result<(), Failure> {
    let mut report = Report::new("plugins");
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let runtime = PluginRuntime::new(RuntimeOptions::default())?;
    let echo = guest::tool("", "(call $answer (local.get $input) (local.get $input_len))");
    warm(&mut report, &tokio, &runtime, &echo)?;
    restart(&mut report, &tokio)?;
    crowd(&mut report, &tokio, &runtime, &echo)?;
    report.note(
        "the guest is made of text, so its own work is next to nothing; left out: authorising a call and journaling it",
    );
    report.finish()?;
    Ok(())
}

fn call(input: &str) -> ToolCall {
    ToolCall { tool: "echo".to_owned(), input: input.to_owned(), options: CallOptions::default() }
}

async fn ours(runtime: &PluginRuntime, plugin: &Plugin) {
    let done = runtime.call_tool(plugin, call(INPUT)).await.expect("the guest answers");
    assert_eq!(black_box(done.value), INPUT);
}

/// The same call with the engine alone.
struct Bare {
    engine: wasmtime::Engine,
    pre: wasmtime::component::InstancePre<StoreLimits>,
    function: wasmtime::component::ComponentExportIndex,
}

impl Bare {
    fn new(runtime: &PluginRuntime, wasm: &[u8]) -> Result<Self, Failure> {
        let engine = runtime.engine().clone();
        let component = Component::from_binary(&engine, wasm)?;
        let interface = component.get_export_index(None, palyra_plugins::TOOL_EXPORT).ok_or("no tool")?;
        let function = component.get_export_index(Some(&interface), "call").ok_or("no call")?;
        let pre = Linker::new(&engine).instantiate_pre(&component)?;
        Ok(Self { engine, pre, function })
    }

    async fn call(&self) -> wasmtime::Result<()> {
        let limits = RuntimeLimits::default();
        let memory = usize::try_from(limits.max_memory_bytes).unwrap();
        let state = StoreLimitsBuilder::new().memory_size(memory).instances(64).tables(64).memories(16).build();
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| state);
        store.set_fuel(limits.fuel_budget)?;
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        let instance = self.pre.instantiate_async(&mut store).await?;
        // The failure of a tool has the shape of a variant with two texts; this tool never fails.
        let function: TypedFunc<(&str, &str), (Result<String, BareFailure>,)> =
            instance.get_typed_func(&mut store, self.function)?;
        let (answer,) = function.call_async(&mut store, ("echo", INPUT)).await?;
        assert_eq!(black_box(answer).expect("the guest answers"), INPUT);
        Ok(())
    }
}

#[derive(Debug, wasmtime::component::ComponentType, wasmtime::component::Lift)]
#[component(variant)]
enum BareFailure {
    #[component(name = "invalid-input")]
    InvalidInput(#[expect(dead_code, reason = "never made")] String),
    #[component(name = "failed")]
    Failed(#[expect(dead_code, reason = "never made")] String),
}

fn warm(report: &mut Report, tokio: &Runtime, runtime: &PluginRuntime, wasm: &[u8]) -> Result<(), Failure> {
    let plugin = runtime.prepare(wasm)?;
    let bare = Bare::new(runtime, wasm)?;
    let (subject, reference) = measure_against::<Failure>(
        WARMUP,
        REPEATS,
        || {
            tokio.block_on(async {
                for _ in 0..BATCH {
                    ours(runtime, &plugin).await;
                }
            });
            Ok(())
        },
        || {
            tokio.block_on(async {
                for _ in 0..BATCH {
                    bare.call().await.expect("the guest answers");
                }
            });
            Ok(())
        },
    )?;
    let n = u64::from(REPEATS);
    let ratio = subject.median() / reference.median();
    let reference_words = "bare wasmtime call, same limits";
    report.figure("wasm.warm", ratio, "ratio", Some(reference_words), Aim::AtMost(2.0), n, Some(subject.spread()));
    let micros = |samples: &Samples| samples.median() / BATCH as f64 * 1e6;
    report.figure("wasm.warm.time", micros(&subject), "µs", None, Aim::AtMost(200.0), n, Some(subject.spread()));
    report.figure("wasm.bare.time", micros(&reference), "µs", None, Aim::None, n, Some(reference.spread()));
    Ok(())
}

/// A component with a lot to compile.
fn large() -> Vec<u8> {
    let mut items = String::new();
    for number in 0..FUNCTIONS {
        items.push_str(&format!(
            "(func $f{number} (param i32 i32) (result i32) (local i32)
            (loop $again (local.set 2 (i32.add (i32.mul (local.get 2) (i32.const {number})) (i32.xor (local.get 0) (local.get 1))))
            (i32.store (i32.and (local.get 2) (i32.const 0xfffc)) (local.get 0))
            (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
            (br_if $again (i32.gt_s (local.get 0) (i32.load (i32.and (local.get 1) (i32.const 0xff00)))))) (local.get 2))
            (export \"f{number}\" (func $f{number}))"
        ));
    }
    guest::tool_with("", &items, "(call $answer (local.get $input) (local.get $input_len))")
}

/// Seconds from the bytes to the first answer, in a runtime that has just started.
fn first_answer(tokio: &Runtime, wasm: &[u8], dir: &Path) -> Result<f64, Failure> {
    let key = CacheKey::from_bytes([7; 32]);
    let runtime = PluginRuntime::new(RuntimeOptions::cached(dir.to_owned(), key))?;
    let started = Instant::now();
    let plugin = runtime.prepare(wasm)?;
    tokio.block_on(ours(&runtime, &plugin));
    Ok(started.elapsed().as_secs_f64())
}

fn restart(report: &mut Report, tokio: &Runtime) -> Result<(), Failure> {
    let wasm = large();
    let (mut compiled, mut cached) = (Vec::new(), Vec::new());
    for _ in 0..RESTARTS {
        let dir = tempfile::tempdir()?;
        compiled.push(first_answer(tokio, &wasm, dir.path())?);
        for _ in 0..3 {
            cached.push(first_answer(tokio, &wasm, dir.path())?);
        }
    }
    let compiled = Samples::from_values(compiled).ok_or("no samples")?;
    let cached = Samples::from_values(cached).ok_or("no samples")?;
    let (n, ratio) = (cached.n() as u64, compiled.median() / cached.median());
    let words = "compiling the same component";
    report.figure(
        "wasm.first_cached",
        ratio,
        "times faster",
        Some(words),
        Aim::AtLeast(20.0),
        n,
        Some(cached.spread()),
    );
    report.figure("wasm.first_cached.time", cached.median() * 1e3, "ms", None, Aim::None, n, Some(cached.spread()));
    report.figure(
        "wasm.compile.time",
        compiled.median() * 1e3,
        "ms",
        None,
        Aim::None,
        compiled.n() as u64,
        Some(compiled.spread()),
    );
    report.note(&format!("the large component has {} KiB and {FUNCTIONS} functions", wasm.len() >> 10));
    Ok(())
}

fn crowd(report: &mut Report, tokio: &Runtime, runtime: &PluginRuntime, wasm: &[u8]) -> Result<(), Failure> {
    let plugin = runtime.prepare(wasm)?;
    let before = resident_mib();
    let mut rates = Vec::new();
    let mut largest = before;
    for _ in 0..10 {
        let started = Instant::now();
        tokio.block_on(async {
            let calls: Vec<_> = (0..CROWD)
                .map(|_| {
                    let (runtime, plugin) = (runtime.clone(), Arc::clone(&plugin));
                    tokio::spawn(async move { ours(&runtime, &plugin).await })
                })
                .collect();
            for call in calls {
                call.await.expect("no call is lost");
            }
        });
        rates.push(CROWD as f64 / started.elapsed().as_secs_f64());
        largest = largest.max(resident_mib());
    }
    let rates = Samples::from_values(rates).ok_or("no samples")?;
    let n = rates.n() as u64;
    report.figure("wasm.concurrent1000", rates.median(), "calls/s", None, Aim::None, n, Some(rates.spread()));
    report.figure("wasm.concurrent1000.memory", largest - before, "MiB more", None, Aim::AtMost(64.0), n, None);
    Ok(())
}

/// Memory of this process.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
