//! Cancellation: reads stop, writes are whole or not at all.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use serde_json::json;

use crate::support::{Bench, runtime};

#[test]
fn a_cancelled_call_does_nothing() {
    let bench = Bench::new();
    bench.file("f", "x\n");
    bench.cancel.cancel();
    for (tool, arguments) in [
        ("fs.read", json!({"path": "f"})),
        ("fs.list", json!({})),
        ("fs.search", json!({"pattern": "x"})),
        ("fs.write", json!({"path": "f", "content": "y"})),
        ("fs.apply_patch", json!({"patch": "*** Begin Patch\n*** Delete File: f\n*** End Patch"})),
        ("artifact.read", json!({"digest": palyra_common::Digest::of(b"")})),
    ] {
        assert_eq!(bench.refusal(tool, arguments), "tool_cancelled", "{tool}");
    }
    assert_eq!(bench.text("f").unwrap(), "x\n");
}

/// The work is a gigabyte long; the call must come back cancelled, not finished.
#[test]
fn long_reads_stop_when_told() {
    let bench = Bench::new();
    let mut file = File::create(bench.root().join("huge")).unwrap();
    file.write_all("text\n".repeat(4_000).as_bytes()).unwrap();
    file.set_len(1 << 30).unwrap();
    for (tool, arguments) in [
        ("palyra.fs.read", json!({"path": "huge", "digest": true})),
        ("palyra.fs.read", json!({"path": "huge", "offset": 900_000_000})),
    ] {
        let mut invocation = bench.invocation("e", arguments);
        let token = tokio_util::sync::CancellationToken::new();
        invocation.cancel = token.clone();
        let tool = Arc::clone(bench.registry.get(tool).unwrap());
        let error = runtime().block_on(async move {
            let call = tokio::spawn(async move { tool.call(invocation).await });
            tokio::task::yield_now().await;
            token.cancel();
            call.await.unwrap().unwrap_err()
        });
        assert_eq!(error.code(), "tool_cancelled");
    }
}
