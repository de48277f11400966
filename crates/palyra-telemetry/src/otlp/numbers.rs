//! The registry's numbers for a collector. Counts and gauges are read when it is time to send; durations cannot be read back, so they are recorded a second time.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::metrics::{
    CommandOutcome, FamilySnapshot, Kind, Labels, Metrics, Mirror, ModelCall, ModelOutcome, ToolClass, ToolOutcome,
    Value,
};

/// Bounds that the conventions advise for durations of models, in seconds.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Bounds that the conventions advise for numbers of tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Lets the provider send everything the registry has.
pub(super) fn register(provider: &SdkMeterProvider, metrics: &Metrics) {
    let meter = provider.meter("palyra");
    for family in metrics.snapshot() {
        observe(&meter, metrics, &family);
    }
    metrics.mirror_to(Box::new(Durations::new(&meter)));
}

fn observe(meter: &Meter, metrics: &Metrics, family: &FamilySnapshot) {
    let (name, metrics) = (family.name, metrics.clone());
    let exported = name.replacen('_', ".", 1);
    match family.kind {
        Kind::Counter => {
            meter
                .u64_observable_counter(exported)
                .with_description(family.help)
                .with_callback(move |observer| {
                    for (labels, value) in now(&metrics, name) {
                        if let Value::Counter(count) = value {
                            observer.observe(count, &attributes(&labels));
                        }
                    }
                })
                .build();
        }
        Kind::Gauge => {
            meter
                .i64_observable_gauge(exported)
                .with_description(family.help)
                .with_callback(move |observer| {
                    for (labels, value) in now(&metrics, name) {
                        if let Value::Gauge(value) = value {
                            observer.observe(value, &attributes(&labels));
                        }
                    }
                })
                .build();
        }
        Kind::Histogram => {}
    }
}

/// What a family holds now. That all others are read too costs microseconds, once a minute.
fn now(metrics: &Metrics, name: &str) -> Vec<(Labels, Value)> {
    metrics.snapshot().into_iter().find(|family| family.name == name).map(|family| family.samples).unwrap_or_default()
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| KeyValue::new(*name, *value)).collect()
}

struct Durations {
    commands: Histogram<f64>,
    tools: Histogram<f64>,
    models: Histogram<f64>,
    tokens: Histogram<u64>,
}

impl Durations {
    fn new(meter: &Meter) -> Self {
        let seconds = |name: &'static str, help: &'static str| {
            meter.f64_histogram(name).with_unit("s").with_description(help).with_boundaries(SECONDS.to_vec()).build()
        };
        Self {
            commands: seconds("palyra.command.duration", "Command duration."),
            tools: seconds("palyra.tool_call.duration", "Tool call duration."),
            models: seconds("gen_ai.client.operation.duration", "GenAI operation duration."),
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("Number of input and output tokens used.")
                .with_boundaries(TOKENS.to_vec())
                .build(),
        }
    }
}

impl Mirror for Durations {
    fn command(&self, command: &'static str, outcome: CommandOutcome, duration: Duration) {
        let labels = [KeyValue::new("command", command), KeyValue::new("outcome", outcome.as_str())];
        self.commands.record(duration.as_secs_f64(), &labels);
    }

    fn model_call(&self, call: &ModelCall<'_>) {
        let mut labels = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", call.provider.to_owned()),
            KeyValue::new("gen_ai.request.model", call.model.to_owned()),
        ];
        for (kind, tokens) in [("input", call.input_tokens), ("output", call.output_tokens)] {
            if tokens > 0 {
                let kind = KeyValue::new("gen_ai.token.type", kind);
                let labels: Vec<KeyValue> = labels.iter().cloned().chain([kind]).collect();
                self.tokens.record(tokens, &labels);
            }
        }
        if call.outcome != ModelOutcome::Ok {
            labels.push(KeyValue::new("error.type", call.outcome.as_str()));
        }
        self.models.record(call.duration.as_secs_f64(), &labels);
    }

    fn tool_call(&self, class: ToolClass, outcome: ToolOutcome, duration: Duration) {
        let labels = [KeyValue::new("class", class.as_str()), KeyValue::new("outcome", outcome.as_str())];
        self.tools.record(duration.as_secs_f64(), &labels);
    }
}
