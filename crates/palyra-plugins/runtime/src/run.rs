//! One call, from its turn in the queue to the report of what it used.
//!
//! A call gets a fresh store and a fresh instance; nothing of it is left for the next. Three things can end it from outside: its fuel, which the compiled code
//! counts; its time, which is looked at on every tick and by a timer for the time in host calls; and whoever called it off.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use palyra_common::HookDecision;
use palyra_plugins::{HOOK_EXPORT, TOOL_EXPORT};
use wasmtime::component::{Instance, TypedFunc};
use wasmtime::{Store, UpdateDeadline};

use crate::bindings::exports::palyra::plugin::{hook, tool};
use crate::call::{CallOptions, ExecutionMode, HookAnswer, HookCall, ToolCall, ToolDescription, allows};
use crate::classify::{classify, deadline_exceeded, stopped};
use crate::core_module;
use crate::error::{Failed, Finished, PluginError};
use crate::limits::RuntimeLimits;
use crate::meter::Meter;
use crate::plugin::{Body, Called, Described, Handled, Plugin};
use crate::randomness::Randomness;
use crate::runtime::{Inner, PluginRuntime};
use crate::shared::{Shared, Stop};
use crate::state::{CallClock, CallState};
use crate::text::one_line;
use crate::usage::PluginUsage;

/// Handles to resources that a guest may hold at once.
const MAX_COMPONENT_HANDLES: usize = 10_000;

/// What a guest gave: the outer error is the engine's, the inner one the guest's.
type Work<'a, T> = Pin<Box<dyn Future<Output = wasmtime::Result<Result<T, PluginError>>> + Send + 'a>>;

impl PluginRuntime {
    /// Calls a tool and gives its output, a JSON text that nobody has validated yet.
    pub async fn call_tool(&self, plugin: &Plugin, call: ToolCall) -> Result<Finished<String>, Failed> {
        let ToolCall { tool, input, options } = call;
        let finished = self
            .run(plugin, options, input.len().saturating_add(tool.len()), move |store, plugin, limits| {
                Box::pin(async move {
                    match &plugin.body {
                        Body::Module { pre, entry } => core_module::run(store, pre, *entry, &input, limits).await,
                        Body::Component { pre, tool: Some(exports), .. } => {
                            let instance = pre.instantiate_async(&mut *store).await?;
                            let function: TypedFunc<(&str, &str), Called> =
                                instance.get_typed_func(&mut *store, exports.call)?;
                            let (answer,) = function.call_async(&mut *store, (&tool, &input)).await?;
                            Ok(answer.map_err(guest_error))
                        }
                        Body::Component { tool: None, .. } => Ok(Err(missing(TOOL_EXPORT))),
                    }
                })
            })
            .await?;
        bounded(finished, String::len)
    }

    /// Asks a plugin about its tools. A core module says nothing about itself.
    pub async fn describe(
        &self,
        plugin: &Plugin,
        options: CallOptions,
    ) -> Result<Finished<Vec<ToolDescription>>, Failed> {
        let finished = self
            .run(plugin, options, 0, move |store, plugin, _| {
                Box::pin(async move {
                    match &plugin.body {
                        Body::Module { .. } => Ok(Ok(Vec::new())),
                        Body::Component { pre, tool: Some(exports), .. } => {
                            let instance = pre.instantiate_async(&mut *store).await?;
                            let function: TypedFunc<(), Described> =
                                instance.get_typed_func(&mut *store, exports.describe)?;
                            let (tools,) = function.call_async(&mut *store, ()).await?;
                            Ok(Ok(tools.into_iter().map(description).collect()))
                        }
                        Body::Component { tool: None, .. } => Ok(Err(missing(TOOL_EXPORT))),
                    }
                })
            })
            .await?;
        bounded(finished, |tools| {
            tools
                .iter()
                .map(|tool| {
                    [&tool.id, &tool.name, &tool.description, &tool.input_schema, &tool.output_schema]
                        .map(String::len)
                        .iter()
                        .sum::<usize>()
                })
                .sum()
        })
    }

    /// Hands an event to a hook and gives its answer, which the event allows.
    pub async fn call_hook(&self, plugin: &Plugin, call: HookCall) -> Result<Finished<HookAnswer>, Failed> {
        let HookCall { event, at, run_id, payload, options } = call;
        let size = payload.len();
        let occurrence = hook::Event { name: event.to_string(), at: u64::try_from(at.0).unwrap_or(0), run_id, payload };
        let finished = self
            .run(plugin, options, size, move |store, plugin, _| {
                Box::pin(async move {
                    let Body::Component { pre, hook: Some(handle), .. } = &plugin.body else {
                        return Ok(Err(missing(HOOK_EXPORT)));
                    };
                    let instance: Instance = pre.instantiate_async(&mut *store).await?;
                    let function: TypedFunc<(&hook::Event,), Handled> = instance.get_typed_func(&mut *store, handle)?;
                    let (answer,) = function.call_async(&mut *store, (&occurrence,)).await?;
                    Ok(match answer {
                        Ok(decision) => answered(decision, event),
                        Err(reason) => Err(PluginError::GuestFailed(one_line(&reason))),
                    })
                })
            })
            .await?;
        bounded(finished, |answer| answer.text.as_ref().map_or(0, String::len))
    }

    /// Waits for a turn, runs the work in a fresh store, and says how it ended.
    async fn run<T>(
        &self,
        plugin: &Plugin,
        options: CallOptions,
        input_bytes: usize,
        work: impl for<'a> FnOnce(&'a mut Store<CallState>, &'a Plugin, &'a RuntimeLimits) -> Work<'a, T>,
    ) -> Result<Measured<T>, Failed> {
        let inner = &*self.inner;
        let limits = options.limits.within(&inner.ceiling);
        let unused = |error| Failed { error, usage: Box::default() };
        if input_bytes > limits.max_input_bytes {
            return Err(unused(PluginError::InputTooLarge { size: input_bytes, limit: limits.max_input_bytes }));
        }
        let _turn = turn(inner, &options, &limits).await.map_err(unused)?;
        let started = Instant::now();
        let deadline = started + limits.wall_clock;
        let cancel = options.cancel.clone();
        let mut store = store(inner, options, &limits, deadline).map_err(unused)?;
        let _active = inner.ticker.active();
        let ended = tokio::select! {
            biased;
            ended = work(&mut store, plugin, &limits) => Some(ended),
            () = cancel.cancelled() => None,
            () = tokio::time::sleep_until(deadline.into()) => None,
        };
        let state = store.data();
        let mut usage = PluginUsage {
            fuel: limits.fuel_budget.saturating_sub(store.get_fuel().unwrap_or(0)),
            memory_bytes: state.meter.peak_bytes() as u64,
            wall: started.elapsed(),
            output_bytes: 0,
            host_calls: state.shared.counters.report(),
            denials: state.shared.counters.denials(),
        };
        let error = match ended {
            Some(Ok(Ok(value))) => return Ok(Measured { value, usage, limits }),
            Some(Ok(Err(error))) => explained(error, &state.shared),
            Some(Err(error)) => classify(&error, state, &limits),
            None if cancel.is_cancelled() => stopped(&Stop::Cancelled, &limits),
            None => deadline_exceeded(&limits),
        };
        usage.wall = started.elapsed();
        Err(Failed { error, usage: Box::new(usage) })
    }
}

/// A value whose size is not checked yet.
struct Measured<T> {
    value: T,
    usage: PluginUsage,
    limits: RuntimeLimits,
}

fn bounded<T>(measured: Measured<T>, size: impl FnOnce(&T) -> usize) -> Result<Finished<T>, Failed> {
    let Measured { value, mut usage, limits } = measured;
    let size = size(&value);
    usage.output_bytes = size as u64;
    if size > limits.max_output_bytes {
        return Err(Failed {
            error: PluginError::OutputTooLarge { limit: limits.max_output_bytes },
            usage: Box::new(usage),
        });
    }
    Ok(Finished { value, usage })
}

/// A place among the calls that run. Whoever waits longer than a call may take is turned away.
async fn turn<'a>(
    inner: &'a Inner,
    options: &CallOptions,
    limits: &RuntimeLimits,
) -> Result<tokio::sync::SemaphorePermit<'a>, PluginError> {
    if options.cancel.is_cancelled() {
        return Err(PluginError::Cancelled);
    }
    if let Ok(permit) = inner.turns.try_acquire() {
        return Ok(permit);
    }
    let _waiting = inner.waiting.try_acquire().map_err(|_| PluginError::Overloaded)?;
    tokio::select! {
        permit = inner.turns.acquire() => permit.map_err(|_| PluginError::Overloaded),
        () = options.cancel.cancelled() => Err(PluginError::Cancelled),
        () = tokio::time::sleep(limits.wall_clock) => Err(PluginError::Overloaded),
    }
}

fn store(
    inner: &Inner,
    options: CallOptions,
    limits: &RuntimeLimits,
    deadline: Instant,
) -> Result<Store<CallState>, PluginError> {
    let source = |purpose| match options.mode {
        ExecutionMode::Live => Randomness::System,
        ExecutionMode::Deterministic { seed, .. } => Randomness::Seeded { seed, purpose, blocks: 0 },
    };
    let shared = Shared::new(
        options.services,
        options.grants,
        options.revocation,
        limits.host_calls.clone(),
        &mut source("handles"),
    )?;
    let state = CallState {
        shared: Arc::new(shared),
        meter: Meter::new(limits),
        clock: CallClock::new(&options.mode),
        randomness: source("guest"),
        random_bytes: 0,
        log_bytes: 0,
        wasi: None,
    };
    let mut store = Store::new(&inner.engine, state);
    store.limiter(|state| &mut state.meter);
    store.set_hostcall_fuel(limits.host_calls.bytes_each.max(limits.max_output_bytes));
    store.set_max_component_handles(MAX_COMPONENT_HANDLES);
    store.set_fuel(limits.fuel_budget).map_err(|error| PluginError::Engine(error.to_string()))?;
    store.set_epoch_deadline(1);
    let cancel = options.cancel;
    store.epoch_deadline_callback(move |_| {
        if cancel.is_cancelled() {
            return Err(Stop::Cancelled.into());
        }
        if Instant::now() >= deadline {
            return Err(Stop::Deadline.into());
        }
        // The runtime's own way of giving way: it looks after timers and sockets before it comes back.
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    });
    Ok(store)
}

/// A guest that gives up after the host refused it something most likely gave up because of that.
fn explained(error: PluginError, shared: &Shared) -> PluginError {
    match (error, shared.denial()) {
        (PluginError::GuestFailed(_), Some(denial)) => {
            PluginError::HostDenied { call: denial.call, reason: denial.reason }
        }
        (error, _) => error,
    }
}

fn guest_error(failure: tool::Failure) -> PluginError {
    match failure {
        tool::Failure::InvalidInput(reason) => PluginError::InvalidInput(one_line(&reason)),
        tool::Failure::Failed(reason) => PluginError::GuestFailed(one_line(&reason)),
    }
}

fn missing(export: &str) -> PluginError {
    PluginError::WrongExport { export: export.to_owned(), reason: "it does not exist".to_owned() }
}

fn description(tool: tool::Description) -> ToolDescription {
    ToolDescription {
        id: tool.id,
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
    }
}

fn answered(decision: hook::Decision, event: palyra_common::HookEvent) -> Result<HookAnswer, PluginError> {
    let verdict = match decision.verdict {
        hook::Verdict::Proceed => HookDecision::Continue,
        hook::Verdict::Annotate => HookDecision::Annotate,
        hook::Verdict::TransformPreview => HookDecision::TransformPreview,
        hook::Verdict::RequestApproval => HookDecision::RequestApproval,
        hook::Verdict::Block => HookDecision::Block,
        hook::Verdict::FailRun => HookDecision::FailRun,
    };
    let proposes = verdict == HookDecision::TransformPreview;
    if !allows(event, verdict) {
        return Err(PluginError::OutOfPhase { decision: verdict, event });
    }
    if proposes && decision.text.is_none() {
        return Err(PluginError::GuestFailed("the hook proposes a text but provides none".to_owned()));
    }
    Ok(HookAnswer { verdict, reason: one_line(&decision.reason), text: decision.text.filter(|_| proposes) })
}
