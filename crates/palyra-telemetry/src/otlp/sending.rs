//! The last step before the wire: spans are translated, and what the collector did not take is counted.

use std::time::Duration;

use opentelemetry_otlp::{MetricExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as ExportSpans};

use super::ContentCapture;
use super::admission::Flight;
use super::conventions;
use crate::metrics::{Metrics, Signal};

/// Sends spans in the words of the conventions and nothing else.
#[derive(Debug)]
pub(super) struct TranslatedSpans {
    next: SpanExporter,
    content: ContentCapture,
    flight: Flight,
    metrics: Metrics,
}

impl TranslatedSpans {
    pub(super) fn new(next: SpanExporter, content: ContentCapture, flight: Flight, metrics: Metrics) -> Self {
        Self { next, content, flight, metrics }
    }
}

impl ExportSpans for TranslatedSpans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let batch = batch.into_iter().filter_map(|span| conventions::translate(span, self.content)).collect();
        let outcome = self.next.export(batch).await;
        self.flight.leave(spans);
        if outcome.is_err() {
            self.metrics.telemetry_dropped(Signal::Traces, u64::try_from(spans).unwrap_or(u64::MAX));
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.next.set_resource(resource);
    }
}

/// Sends numbers and counts the times it could not.
pub(super) struct CountedMetrics {
    next: MetricExporter,
    metrics: Metrics,
}

impl CountedMetrics {
    pub(super) fn new(next: MetricExporter, metrics: Metrics) -> Self {
        Self { next, metrics }
    }
}

impl PushMetricExporter for CountedMetrics {
    async fn export(&self, numbers: &ResourceMetrics) -> OTelSdkResult {
        let outcome = self.next.export(numbers).await;
        if outcome.is_err() {
            self.metrics.telemetry_dropped(Signal::Metrics, 1);
        }
        outcome
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.next.temporality()
    }
}
