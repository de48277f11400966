//! Counts work when its span closes. What a span does not say is not guessed: it counts as given up.

use std::fmt;
use std::time::Instant;

use palyra_common::{RunLifecyclePhase, TerminationReason};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::Work;
use crate::metrics::{CommandOutcome, Metrics, ModelCall, ModelOutcome, ToolClass, ToolOutcome, Transport};

/// Turns spans of work into counts.
#[derive(Debug)]
pub(crate) struct WorkLayer {
    metrics: Metrics,
}

/// What a span said so far.
#[derive(Debug)]
struct Facts {
    work: Work,
    started: Instant,
    texts: Vec<(&'static str, String)>,
    input_tokens: u64,
    output_tokens: u64,
}

/// The fields that counting needs.
const WANTED: [&str; 8] = ["command", "transport", "outcome", "phase", "reason", "provider", "model", "tool"];

impl Facts {
    fn text(&self, name: &str) -> &str {
        self.texts.iter().rev().find(|(field, _)| *field == name).map_or("", |(_, value)| value.as_str())
    }

    fn keep(&mut self, field: &Field, value: impl FnOnce() -> String) {
        if WANTED.contains(&field.name()) {
            self.texts.push((field.name(), value()));
        }
    }
}

impl Visit for Facts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, || value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.keep(field, || format!("{value:?}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "input_tokens" => self.input_tokens = value,
            "output_tokens" => self.output_tokens = value,
            _ => {}
        }
    }
}

impl WorkLayer {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { metrics }
    }

    fn count(&self, facts: &Facts) {
        let duration = facts.started.elapsed();
        match facts.work {
            Work::Command => {
                let outcome = facts.text("outcome").parse().unwrap_or(CommandOutcome::Cancelled);
                if let Ok(transport) = facts.text("transport").parse::<Transport>() {
                    self.metrics.command_ended(facts.text("command"), transport, outcome, duration);
                }
            }
            Work::Run => {
                let ended = facts.text("phase").parse::<RunLifecyclePhase>();
                if let (Ok(phase), Ok(reason)) = (ended, facts.text("reason").parse::<TerminationReason>()) {
                    self.metrics.run_ended(phase, reason);
                }
            }
            Work::ModelCall => self.metrics.model_called(&ModelCall {
                provider: facts.text("provider"),
                model: facts.text("model"),
                outcome: facts.text("outcome").parse().unwrap_or(ModelOutcome::Cancelled),
                duration,
                input_tokens: facts.input_tokens,
                output_tokens: facts.output_tokens,
            }),
            Work::ToolCall => {
                let outcome = facts.text("outcome").parse().unwrap_or(ToolOutcome::Cancelled);
                self.metrics.tool_called(ToolClass::of(facts.text("tool")), outcome, duration);
            }
        }
    }
}

impl<S> Layer<S> for WorkLayer
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (Some(span), Some(work)) = (context.span(id), Work::of(attributes.metadata())) else { return };
        let mut facts =
            Facts { work, started: Instant::now(), texts: Vec::with_capacity(4), input_tokens: 0, output_tokens: 0 };
        attributes.record(&mut facts);
        if work == Work::Run {
            self.metrics.run_started();
        }
        span.extensions_mut().insert(facts);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(facts) = span.extensions_mut().get_mut::<Facts>()
        {
            values.record(facts);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let facts = context.span(&id).and_then(|span| span.extensions_mut().remove::<Facts>());
        if let Some(facts) = facts {
            self.count(&facts);
        }
    }
}
