//! Export to an OpenTelemetry collector, over OTLP and gRPC.
//!
//! Spans of work and the numbers of the registry are sent in batches by threads of the SDK. Whoever works never waits for the collector: what it does not take
//! in time is dropped and counted. What is sent is decided by the table in `conventions.rs` alone.

mod admission;
mod connect;
mod conventions;
mod numbers;
mod sending;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider};
use palyra_common::{BuildInfo, RedactedUrl, SecretString};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use self::admission::{Admission, Flight};
use self::sending::{CountedMetrics, TranslatedSpans};
use crate::error::TelemetryError;
use crate::metrics::Metrics;
use crate::work::WorkFilter;

/// Spans that may wait for the collector; those beyond are dropped.
const QUEUE: usize = 2_048;

/// Whether what people, models and tools wrote is exported too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentCapture {
    /// Prompts, answers, arguments and results stay here.
    Off,
    /// They are exported, cut to a limit.
    On,
}

/// Where and how to export.
#[derive(Debug)]
pub struct OtlpOptions {
    /// The collector, such as `http://127.0.0.1:4317`.
    pub endpoint: RedactedUrl,
    /// Headers for the collector, such as a token.
    pub headers: Vec<(String, SecretString)>,
    /// Certificate authorities (PEM) to trust beside those of the system.
    pub ca_pem: Option<Vec<u8>>,
    /// How many of a hundred traces are exported.
    pub sample_percent: u8,
    /// Whether content is exported.
    pub content: ContentCapture,
    /// How long the collector may take for one batch.
    pub timeout: Duration,
    /// How long spans are gathered before they are sent.
    pub span_interval: Duration,
    /// How often numbers are sent.
    pub metric_interval: Duration,
}

impl OtlpOptions {
    /// Everything as the conventions advise, to this collector.
    #[must_use]
    pub fn to(endpoint: RedactedUrl) -> Self {
        Self {
            endpoint,
            headers: Vec::new(),
            ca_pem: None,
            sample_percent: 100,
            content: ContentCapture::Off,
            timeout: Duration::from_secs(10),
            span_interval: Duration::from_secs(5),
            metric_interval: Duration::from_secs(60),
        }
    }
}

/// A running export.
#[derive(Debug)]
pub(crate) struct Export {
    traces: SdkTracerProvider,
    numbers: SdkMeterProvider,
    content: ContentCapture,
}

impl Export {
    pub(crate) fn start(options: &OtlpOptions, metrics: &Metrics) -> Result<Self, TelemetryError> {
        let flight = Flight::default();
        let spans =
            TranslatedSpans::new(connect::span_exporter(options)?, options.content, flight.clone(), metrics.clone());
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_scheduled_delay(options.span_interval)
            .build();
        let processor = BatchSpanProcessor::builder(spans).with_batch_config(batches).build();
        let sampler = Sampler::TraceIdRatioBased(f64::from(options.sample_percent.min(100)) / 100.0);
        let traces = SdkTracerProvider::builder()
            .with_resource(resource())
            .with_sampler(Sampler::ParentBased(Box::new(sampler)))
            .with_span_processor(Admission::new(processor, flight, QUEUE, metrics.clone()))
            .build();
        let exporter = CountedMetrics::new(connect::metric_exporter(options)?, metrics.clone());
        let reader = PeriodicReader::builder(exporter).with_interval(options.metric_interval).build();
        let numbers = SdkMeterProvider::builder().with_resource(resource()).with_reader(reader).build();
        numbers::register(&numbers, metrics);
        Ok(Self { traces, numbers, content: options.content })
    }

    /// The layer that turns spans of work into exported ones.
    pub(crate) fn layer<S>(&self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let filter = match self.content {
            ContentCapture::Off => WorkFilter::SpansOnly,
            ContentCapture::On => WorkFilter::SpansAndContent,
        };
        tracing_opentelemetry::layer()
            .with_tracer(self.traces.tracer("palyra"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false)
            .with_error_events_to_status(false)
            .with_error_events_to_exceptions(false)
            .with_error_fields_to_exceptions(false)
            .with_error_records_to_exceptions(false)
            .with_filter(filter)
            .boxed()
    }

    /// Sends what is still to be sent. A collector that does not answer is waited for no longer than `patience`.
    pub(crate) fn shutdown(&self, patience: Duration) {
        let (done, answers) = mpsc::sync_channel(2);
        let (traces, numbers, second) = (self.traces.clone(), self.numbers.clone(), done.clone());
        // On threads of their own, since the numbers' shutdown has a limit of its own that cannot be set.
        let spawned = [
            thread::Builder::new().spawn(move || {
                let _ = traces.shutdown_with_timeout(patience);
                let _ = done.send(());
            }),
            thread::Builder::new().spawn(move || {
                let _ = numbers.shutdown_with_timeout(patience);
                let _ = second.send(());
            }),
        ];
        let until = std::time::Instant::now() + patience;
        for _ in spawned.iter().flatten() {
            let _ = answers.recv_timeout(until.saturating_duration_since(std::time::Instant::now()));
        }
    }
}

/// Who is speaking. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` are honoured for everything else.
fn resource() -> Resource {
    let build = BuildInfo::current();
    Resource::builder()
        .with_service_name("palyrad")
        .with_attribute(opentelemetry::KeyValue::new("service.version", build.version))
        .build()
}
