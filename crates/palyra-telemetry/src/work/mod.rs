//! The vocabulary in which work describes itself: which spans there are and which fields they may carry.
//!
//! A piece of work is one `tracing` span with one of these names, opened in a crate of Palyra at level `ERROR`, so that its ids stand in every line whatever the
//! log level is. Crates that do not know this one write the span by hand:
//!
//! | span | fields at its start | fields at its end |
//! | --- | --- | --- |
//! | `command` | `command`, `transport`, `principal`, `run_id`, `session_id` | `outcome`, `error` |
//! | `run` | `run_id`, `session_id`, `principal` | `phase`, `reason` |
//! | `model_call` | `provider`, `model`, `turn` | `outcome`, `error`, `input_tokens`, `output_tokens` |
//! | `tool_call` | `tool`, `call_id` | `outcome`, `error` |
//!
//! `outcome` takes the values of [`CommandOutcome`](crate::CommandOutcome), [`ModelOutcome`](crate::ModelOutcome) and [`ToolOutcome`](crate::ToolOutcome), `error` a
//! stable code. A command, model call or tool call whose span closes without an outcome was given up.
//!
//! What people and models wrote is no field of a span. It is an event with the target [`CONTENT_TARGET`], which no log shows and which goes nowhere unless the
//! operator asked for it.

mod layer;
mod remote;
mod spans;

use tracing::subscriber::Interest;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Filter};

pub use remote::continue_trace;
pub use spans::{command_span, model_call_span, run_span, tool_call_span};

pub(crate) use layer::WorkLayer;

/// The target of events that carry what people, models and tools wrote, in the fields `input`, `output`, `arguments` and `result`.
pub const CONTENT_TARGET: &str = "palyra_content";

/// Targets of Palyra's own crates begin with this.
pub(crate) const OWN_TARGET: &str = "palyra";

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Command,
    Run,
    ModelCall,
    ToolCall,
}

impl Work {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "command" => Some(Self::Command),
            "run" => Some(Self::Run),
            "model_call" => Some(Self::ModelCall),
            "tool_call" => Some(Self::ToolCall),
            _ => None,
        }
    }

    pub(crate) fn of(metadata: &Metadata<'_>) -> Option<Self> {
        let own = metadata.is_span() && *metadata.level() == Level::ERROR && metadata.target().starts_with(OWN_TARGET);
        if own { Self::named(metadata.name()) } else { None }
    }
}

/// Lets spans of work through and, where asked for, content. Both depend on the place in the source alone, so the answer is given once per place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WorkFilter {
    SpansOnly,
    SpansAndContent,
}

impl WorkFilter {
    fn passes(self, metadata: &Metadata<'_>) -> bool {
        Work::of(metadata).is_some()
            // Not only events: `enabled!` asks with something that is neither event nor span.
            || (matches!(self, Self::SpansAndContent) && !metadata.is_span() && metadata.target() == CONTENT_TARGET)
    }
}

impl<S> Filter<S> for WorkFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.passes(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.passes(metadata) { Interest::always() } else { Interest::never() }
    }

    /// Work is described at `ERROR`; a wider hint would make every line of every library ask twice whether it is wanted.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match self {
            Self::SpansOnly => LevelFilter::ERROR,
            Self::SpansAndContent => LevelFilter::TRACE,
        })
    }
}
