//! The same faults on every wire: each run ends right, or fails with the class that says what it was.

use std::time::Duration;

use palyra_models::ModelErrorClass as Class;
use palyra_models::testing::{Fault, ModelServer, Reply};
use serde_json::json;

use crate::wires::{IMPATIENT, PATIENT, answer, assert_calls, options, reply, wires};

/// What has to come of a fault.
enum Outcome {
    /// The calls arrive whole; the text too, unless the wire cannot tell a repetition from a fault.
    Right,
    /// An error of this class, with this wait, whose line has this in it.
    Fails(Class, Option<u64>, &'static str),
}

/// The beginning of what a compressor writes.
const GZIPPED: &[u8] = b"\x1F\x8B\x08\x00\x00\x00\x00\x00\x00\x03\xCB\x48\xCD\xC9\xC9\x07\x00";

/// A document with the status of a success.
fn as_json(body: &serde_json::Value) -> Reply {
    Reply::raw(body.to_string()).content_type("application/json")
}

fn faults() -> Vec<(&'static str, Duration, Reply, Outcome)> {
    let busy = || Reply::status(429, &json!({"error": {"message": "slow down"}}));
    let year = "Tue, 01 Jan 2002 00:00:07 GMT";
    vec![
        ("429", PATIENT, busy(), Outcome::Fails(Class::RateLimit, None, "slow down")),
        (
            "429 with a wait",
            PATIENT,
            busy().header("retry-after", "7"),
            Outcome::Fails(Class::RateLimit, Some(7000), "slow down"),
        ),
        (
            "429 with a wait, by a clock that is off by decades",
            PATIENT,
            busy().header("date", "Tue, 01 Jan 2002 00:00:00 GMT").header("retry-after", year),
            Outcome::Fails(Class::RateLimit, Some(7000), "slow down"),
        ),
        (
            "500",
            PATIENT,
            Reply::status(500, &json!({"error": {"message": "oops"}})),
            Outcome::Fails(Class::Transient, None, "answered 500: oops"),
        ),
        (
            "reset in a chunk",
            PATIENT,
            reply().fault(Fault::ResetAfter(700)),
            Outcome::Fails(Class::Network, None, "broke"),
        ),
        (
            "end in a chunk",
            PATIENT,
            reply().fault(Fault::CloseAfter(700)),
            Outcome::Fails(Class::Network, None, "broke"),
        ),
        (
            "reset before the answer",
            PATIENT,
            reply().fault(Fault::CloseBeforeAnswer),
            Outcome::Fails(Class::Network, None, "cannot reach"),
        ),
        (
            "truncated JSON",
            PATIENT,
            reply().fault(Fault::TruncateEvent),
            Outcome::Fails(Class::Malformed, None, "not JSON"),
        ),
        ("every event twice", PATIENT, reply().fault(Fault::RepeatEvents), Outcome::Right),
        (
            "silence at the start",
            IMPATIENT,
            reply().fault(Fault::SilentAfter(0)),
            Outcome::Fails(Class::Timeout, None, "no first byte"),
        ),
        (
            "silence in the middle",
            IMPATIENT,
            reply().fault(Fault::SilentAfter(700)),
            Outcome::Fails(Class::Timeout, None, "between two parts"),
        ),
        ("another content type", PATIENT, reply().content_type("text/html"), Outcome::Right),
        (
            "a web page",
            PATIENT,
            Reply::raw("<!doctype html><title>hi</title>").content_type("text/html"),
            Outcome::Fails(Class::Permanent, None, "not a model server"),
        ),
        (
            "a huge event",
            PATIENT,
            reply().fault(Fault::HugeEvent(9 * 1024 * 1024)),
            Outcome::Fails(Class::Malformed, None, "larger than 8 MiB"),
        ),
        ("no UTF-8", PATIENT, reply().fault(Fault::InvalidUtf8), Outcome::Fails(Class::Malformed, None, "UTF-8")),
        (
            "429 until a time that has passed",
            PATIENT,
            busy().header("retry-after", year),
            Outcome::Fails(Class::RateLimit, Some(0), "slow down"),
        ),
        (
            "529",
            PATIENT,
            Reply::status(
                529,
                &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            ),
            Outcome::Fails(Class::Transient, None, "answered 529: Overloaded"),
        ),
        (
            "413",
            PATIENT,
            Reply::status(413, &json!({"error": {"message": "too large"}})),
            Outcome::Fails(Class::ContextTooLong, None, "answered 413: too large"),
        ),
        (
            "404 with a web page",
            PATIENT,
            Reply::raw("<html>gone</html>").with_status(404).content_type("text/html"),
            Outcome::Fails(Class::Permanent, None, "a web page; check the base URL"),
        ),
        (
            "a success that is an error",
            PATIENT,
            as_json(&json!({"error": {"message": "busy now", "type": "server_error"}})),
            Outcome::Fails(Class::Transient, None, "busy now"),
        ),
        (
            "a success that is a refusal of the key",
            PATIENT,
            as_json(&json!({"error": {"message": "sk-hunter2 is unknown", "code": "invalid_api_key"}})),
            Outcome::Fails(Class::Auth, None, "does not accept the key: [redacted] is unknown"),
        ),
        (
            "another server's JSON",
            PATIENT,
            as_json(&json!({"hello": "world"})),
            Outcome::Fails(Class::Malformed, None, "check the base URL"),
        ),
        (
            "an answer that is packed",
            PATIENT,
            Reply::raw(GZIPPED).header("content-encoding", "gzip"),
            Outcome::Fails(Class::Permanent, None, "compressed its answer (`gzip`) although that was not requested"),
        ),
        (
            "an answer that is packed and does not say so",
            PATIENT,
            Reply::raw(GZIPPED),
            Outcome::Fails(Class::Permanent, None, "compressed its answer (`gzip`) although that was not requested"),
        ),
        (
            "a refusal that is packed",
            PATIENT,
            Reply::raw(GZIPPED).with_status(401).header("content-encoding", "gzip"),
            Outcome::Fails(Class::Auth, None, "does not accept the key (401): no explanation"),
        ),
        ("nothing at all", PATIENT, Reply::raw(""), Outcome::Fails(Class::Network, None, "without an answer")),
    ]
}

#[tokio::test]
async fn every_fault_on_every_wire_ends_right_or_with_the_right_class() {
    let mut tried = 0;
    for (wire, speaks, make) in wires() {
        for (fault, patience, reply, outcome) in faults() {
            let name = format!("{wire}: {fault}");
            let server = ModelServer::speaking(vec![speaks()], vec![reply]).unwrap();
            let provider = make(options(&server, patience)).unwrap();
            let ended = answer(provider.as_ref()).await;
            match (outcome, ended) {
                (Outcome::Right, Ok(turn)) => assert_calls(&turn, &name),
                (Outcome::Fails(class, wait, line), Err(error)) => {
                    assert_eq!((error.class, error.retry_after_ms), (class, wait), "{name}: {error}");
                    assert!(error.message.contains(line), "{name}: {error}");
                }
                (_, ended) => panic!("{name}: {ended:?}"),
            }
            assert_eq!(server.requests().len(), 1, "{name}: one call is one request");
            tried += 1;
        }
    }
    assert!(tried >= 26 * 7, "{tried}");
}
