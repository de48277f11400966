//! Work that is part of somebody else's trace: the `traceparent` header of W3C Trace Context.
//!
//! A header that makes no sense is passed over, as the standard asks: the work then begins a trace of its own. Only what an admitted caller sends should be
//! taken over, since it decides under which trace the work is found and whether it is sampled.

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Makes a span that was just opened part of the trace that `traceparent` names. Does nothing if nothing is exported.
pub fn continue_trace(span: &Span, traceparent: &str) {
    if let Some(remote) = read(traceparent) {
        // The one failure is that the span is not exported, and then there is nothing to do.
        let _ = span.set_parent(Context::new().with_remote_span_context(remote));
    }
}

/// `00-<trace>-<span>-<flags>`; later versions may append more.
fn read(text: &str) -> Option<SpanContext> {
    let mut parts = text.trim().split('-');
    let version = lower_hex(parts.next()?, 2)?;
    let trace = lower_hex(parts.next()?, 32)?;
    let span = lower_hex(parts.next()?, 16)?;
    let flags = u8::from_str_radix(lower_hex(parts.next()?, 2)?, 16).ok()?;
    if version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let sampled = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let context = SpanContext::new(trace, span, sampled, true, TraceState::NONE);
    context.is_valid().then_some(context)
}

fn lower_hex(text: &str, length: usize) -> Option<&str> {
    let fits = text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    fits.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_standard_allows_is_read() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let read_one = read(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!(read_one.trace_id().to_string(), trace);
        assert!(read_one.is_sampled() && read_one.is_remote());
        assert!(!read(&format!("00-{trace}-{span}-fe")).unwrap().is_sampled());
        assert!(read(&format!("01-{trace}-{span}-01-more")).is_some(), "a later version may say more");
        for wrong in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}ä-{span}-01"),
            format!("00-{trace}-+0f067aa0ba902b7-01"),
            "-".repeat(100_000),
        ] {
            assert!(read(&wrong).is_none(), "{wrong:.80}");
        }
    }
}
