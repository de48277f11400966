//! How many spans may be on their way to the collector. The SDK's own queue drops without telling; this one stands before it, is no larger, and counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanProcessor};

use crate::metrics::{Metrics, Signal};

/// The number of spans that ended and were neither sent nor given up yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Flight(Arc<AtomicUsize>);

impl Flight {
    fn enter(&self, most: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < most).then_some(now + 1)).is_ok()
    }

    pub(super) fn leave(&self, spans: usize) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_sub(spans)));
    }
}

/// Lets so many spans through at a time.
#[derive(Debug)]
pub(super) struct Admission {
    next: BatchSpanProcessor,
    flight: Flight,
    most: usize,
    metrics: Metrics,
}

impl Admission {
    pub(super) fn new(next: BatchSpanProcessor, flight: Flight, most: usize, metrics: Metrics) -> Self {
        Self { next, flight, most, metrics }
    }
}

impl SpanProcessor for Admission {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.next.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.flight.enter(self.most) {
            self.next.on_end(span);
        } else {
            self.metrics.telemetry_dropped(Signal::Traces, 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.next.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_under_way_than_may_be() {
        let flight = Flight::default();
        assert!(flight.enter(2));
        assert!(flight.enter(2));
        assert!(!flight.enter(2));
        flight.leave(1);
        assert!(flight.enter(2));
        flight.leave(100);
        assert!(flight.enter(1), "leaving more than entered makes no room beyond the limit");
        assert!(!flight.enter(1));
    }
}
