//! Compiled code on disk, seen from outside.

use std::path::Path;

use palyra_plugins_runtime::{Allocation, CacheKey, CacheStats, CallOptions, PluginRuntime, RuntimeOptions, ToolCall};

use crate::harness::tool;

fn runtime(dir: &Path) -> PluginRuntime {
    let key = CacheKey::load_or_create(&dir.join("key")).unwrap();
    let options = RuntimeOptions {
        allocation: Allocation::OnDemand { calls: 1 },
        ..RuntimeOptions::cached(dir.join("code"), key)
    };
    PluginRuntime::new(options).unwrap()
}

async fn answer(runtime: &PluginRuntime, wasm: &[u8]) -> String {
    let plugin = runtime.prepare(wasm).unwrap();
    let call = ToolCall { tool: String::new(), input: "hi".to_owned(), options: CallOptions::default() };
    runtime.call_tool(&plugin, call).await.unwrap().value
}

#[tokio::test]
async fn code_is_kept_over_a_restart_and_made_anew_when_somebody_touched_it() {
    let dir = tempfile::tempdir().unwrap();
    let wasm = tool("", "(call $answer (local.get $input) (local.get $input_len))");
    let first = runtime(dir.path());
    assert_eq!(answer(&first, &wasm).await, "hi");
    assert_eq!(first.cache_stats(), CacheStats { misses: 1, stored: 1, ..CacheStats::default() });
    let second = runtime(dir.path());
    assert_eq!(answer(&second, &wasm).await, "hi");
    assert_eq!(second.cache_stats(), CacheStats { hits: 1, ..CacheStats::default() });

    // Somebody turns one byte of machine code.
    let file = std::fs::read_dir(dir.path().join("code")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&file, &bytes).unwrap();
    let third = runtime(dir.path());
    assert_eq!(answer(&third, &wasm).await, "hi");
    assert_eq!(third.cache_stats(), CacheStats { refused: 1, stored: 1, ..CacheStats::default() });

    // Somebody exchanges the key: what was written under the old one is worth nothing.
    std::fs::remove_file(dir.path().join("key")).unwrap();
    let fourth = runtime(dir.path());
    assert_eq!(answer(&fourth, &wasm).await, "hi");
    assert_eq!(fourth.cache_stats(), CacheStats { refused: 1, stored: 1, ..CacheStats::default() });

    let plugin = fourth.prepare(&wasm).unwrap();
    fourth.forget(plugin.digest()).unwrap();
    assert_eq!(std::fs::read_dir(dir.path().join("code")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_costs_time_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime(dir.path());
    std::fs::remove_dir_all(dir.path().join("code")).unwrap();
    std::fs::write(dir.path().join("code"), b"in the way").unwrap();
    let wasm = tool("", "(call $answer (local.get $input) (local.get $input_len))");
    assert_eq!(answer(&runtime, &wasm).await, "hi");
    assert_eq!(runtime.cache_stats().failed, 1);
}
