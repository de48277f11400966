//! How loading and calling a plugin can fail.
//!
//! Each way a guest can end badly is a variant of its own, so that a policy, a person and a test can tell them apart. Words that a guest chose are cut to
//! one line of bounded length before they get here.

use palyra_common::{ErrorCategory, HookDecision, HookEvent, Retry, StableErrorEnvelope, ToStableError};
use thiserror::Error;

use crate::usage::PluginUsage;

/// A call that gave something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<T> {
    /// What it gave.
    pub value: T,
    /// What it used.
    pub usage: PluginUsage,
}

/// A call that gave nothing.
#[derive(Debug, Error)]
#[error("{error}")]
pub struct Failed {
    /// Why.
    #[source]
    pub error: PluginError,
    /// What it used until then. Boxed, so that a `Result` with this error stays small.
    pub usage: Box<PluginUsage>,
}

impl ToStableError for Failed {
    fn to_stable(&self) -> StableErrorEnvelope {
        let used = serde_json::json!({ "used": {
            "fuel": self.usage.fuel,
            "memory_bytes": self.usage.memory_bytes,
            "wall_ms": u64::try_from(self.usage.wall.as_millis()).unwrap_or(u64::MAX),
            "host_calls": self.usage.host_calls,
        }});
        self.error.to_stable().details(used)
    }
}

/// Why a plugin could not be loaded or a call gave nothing.
#[derive(Debug, Error)]
pub enum PluginError {
    /// The bytes are neither a component nor a core module that is valid here.
    #[error("the module is malformed: {0}")]
    Malformed(String),
    /// It imports something that Palyra does not offer.
    #[error("the plugin imports `{import}`, which is not available: {reason}")]
    ImportRefused {
        /// As the module names it.
        import: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It does not export what was asked for, or not with the right type.
    #[error("the plugin does not export `{export}`: {reason}")]
    WrongExport {
        /// What is missing.
        export: String,
        /// What was found instead.
        reason: String,
    },
    /// It is larger than the runtime takes, in bytes or in parts.
    #[error("the module is too large: {0}")]
    TooLarge(String),
    /// Compiling it took longer than allowed.
    #[error("compiling the module took longer than {seconds} seconds")]
    CompileTooSlow {
        /// How long is allowed.
        seconds: u64,
    },
    /// The guest stopped itself or did something undefined.
    #[error("the plugin trapped: {reason}")]
    Trap {
        /// Which trap, and where if names are known.
        reason: String,
    },
    /// The guest passed a value that is not one of its type, or that lies outside its memory.
    #[error("the plugin passed a malformed value: {reason}")]
    MalformedValue {
        /// What was wrong.
        reason: String,
    },
    /// Its fuel is used up.
    #[error("the plugin used up its fuel of {limit}")]
    FuelExhausted {
        /// The budget.
        limit: u64,
    },
    /// It wanted more memory than it may have.
    #[error("the plugin needs more than {limit} bytes of memory")]
    MemoryExceeded {
        /// The limit.
        limit: u64,
    },
    /// It wanted more or larger tables than it may have.
    #[error("the plugin needs more than {tables} tables or {elements} elements in them")]
    TableExceeded {
        /// The limit on tables.
        tables: u32,
        /// The limit on elements.
        elements: u64,
    },
    /// It consists of more instances than it may.
    #[error("the plugin needs more than {limit} instances")]
    InstancesExceeded {
        /// The limit.
        limit: u32,
    },
    /// Its time is up.
    #[error("the plugin did not finish within {milliseconds} ms")]
    DeadlineExceeded {
        /// The time it had.
        milliseconds: u64,
    },
    /// The text for it is too long.
    #[error("the input of {size} bytes exceeds the limit of {limit}")]
    InputTooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// It gave back too much.
    #[error("the plugin returned more than {limit} bytes")]
    OutputTooLarge {
        /// The limit.
        limit: usize,
    },
    /// It asked too much of the host.
    #[error("the plugin exceeded its limit of {limit} {what}")]
    HostCallsExhausted {
        /// What was counted.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// It failed after the host had refused it something.
    #[error("the plugin failed after `{call}` was refused: {reason}")]
    HostDenied {
        /// Which call.
        call: &'static str,
        /// What the host said.
        reason: String,
    },
    /// The guest says that its input cannot be worked with.
    #[error("the plugin rejected its input: {0}")]
    InvalidInput(String),
    /// The guest says that the work could not be done.
    #[error("the plugin failed: {0}")]
    GuestFailed(String),
    /// A hook gave an answer that its event does not allow.
    #[error("the hook answered `{decision}`, which `{event}` does not allow")]
    OutOfPhase {
        /// The answer.
        decision: HookDecision,
        /// The event.
        event: HookEvent,
    },
    /// Somebody called it off.
    #[error("the call was cancelled")]
    Cancelled,
    /// Too many calls at once.
    #[error("too many plugins are running")]
    Overloaded,
    /// The folder for compiled code or its key cannot be used.
    #[error("the cache of compiled plugins cannot be used: {0}")]
    Cache(String),
    /// The engine itself failed.
    #[error("the plugin engine failed: {0}")]
    Engine(String),
}

impl ToStableError for PluginError {
    fn to_stable(&self) -> StableErrorEnvelope {
        use ErrorCategory::{Availability, Conflict, Dependency, Internal, Policy, Validation};
        let text = self.to_string();
        match self {
            Self::Malformed(_) => StableErrorEnvelope::new("plugin_malformed", Validation, text)
                .hint("build the module again; it must be a WebAssembly component or core module"),
            Self::ImportRefused { .. } => StableErrorEnvelope::new("plugin_import_refused", Policy, text)
                .hint("import only interfaces of `palyra:host`, or `wasi:http/outgoing-handler` and its dependencies"),
            Self::WrongExport { .. } => StableErrorEnvelope::new("plugin_export_missing", Validation, text)
                .hint("export `palyra:plugin/tool@1.0.0` or `palyra:plugin/hook@1.0.0`, as the SDK does"),
            Self::TooLarge(_) => StableErrorEnvelope::new("plugin_too_large", Validation, text)
                .hint("strip debug sections, or raise the limit on modules"),
            Self::CompileTooSlow { .. } => StableErrorEnvelope::new("plugin_compile_too_slow", Validation, text)
                .hint("split very large functions, or compile on a faster machine"),
            Self::Trap { .. } => StableErrorEnvelope::new("plugin_trapped", Dependency, text)
                .hint("run it with `palyra skills run --local` to see where"),
            Self::MalformedValue { .. } => StableErrorEnvelope::new("plugin_value_malformed", Dependency, text)
                .hint("generate the bindings again from the published WIT"),
            Self::FuelExhausted { .. } => StableErrorEnvelope::new("plugin_fuel_exhausted", Dependency, text)
                .hint("raise `fuel_budget` in the manifest's quotas if the plugin needs it"),
            Self::MemoryExceeded { .. } => StableErrorEnvelope::new("plugin_memory_exceeded", Dependency, text)
                .hint("raise `max_memory_bytes` in the manifest's quotas if the plugin needs it"),
            Self::TableExceeded { .. } => {
                StableErrorEnvelope::new("plugin_table_exceeded", Dependency, text).hint("use fewer or smaller tables")
            }
            Self::InstancesExceeded { .. } => StableErrorEnvelope::new("plugin_instances_exceeded", Dependency, text)
                .hint("build the plugin from fewer modules"),
            Self::DeadlineExceeded { .. } => StableErrorEnvelope::new("plugin_deadline_exceeded", Dependency, text)
                .retryable(Retry::MayHelp)
                .hint("raise `wall_clock_timeout_ms` in the manifest's quotas if the plugin needs it"),
            Self::InputTooLarge { .. } => {
                StableErrorEnvelope::new("plugin_input_too_large", Validation, text).hint("pass less at once")
            }
            Self::OutputTooLarge { .. } => StableErrorEnvelope::new("plugin_output_too_large", Dependency, text)
                .hint("return less, or split it over several calls"),
            Self::HostCallsExhausted { .. } => {
                StableErrorEnvelope::new("plugin_host_calls_exhausted", Dependency, text)
                    .hint("do more with each call to the host")
            }
            Self::HostDenied { .. } => StableErrorEnvelope::new("plugin_host_denied", Policy, text)
                .hint("declare the capability in the manifest and grant it to the skill"),
            Self::InvalidInput(_) => StableErrorEnvelope::new("plugin_input_invalid", Validation, text)
                .hint("change the input as the message says"),
            Self::GuestFailed(_) => StableErrorEnvelope::new("plugin_failed", Dependency, text)
                .hint("the message is the plugin's own; its log may have details"),
            Self::OutOfPhase { .. } => StableErrorEnvelope::new("plugin_hook_out_of_phase", Dependency, text)
                .hint("use `block` and `ask` only before an effect, and propose text only before delivery"),
            Self::Cancelled => {
                StableErrorEnvelope::new("plugin_cancelled", Conflict, text).hint("call it again if needed")
            }
            Self::Overloaded => {
                StableErrorEnvelope::new("plugin_overloaded", Availability, text).hint("try again in a moment")
            }
            Self::Cache(_) => StableErrorEnvelope::new("plugin_cache_unusable", Internal, text)
                .hint("the folder (0700) and its key file (0600) must belong to the daemon's user"),
            Self::Engine(_) => StableErrorEnvelope::new("plugin_engine_failed", Internal, text)
                .hint("see the daemon's log for details, and please report this"),
        }
    }
}
