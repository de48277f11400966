//! Many calls at once.

use std::sync::Arc;
use std::time::Duration;

use palyra_plugins_runtime::{
    Allocation, CallOptions, PluginError, PluginRuntime, PoolSizes, RuntimeLimits, RuntimeOptions, ToolCall,
};

use crate::harness::{RUNTIME, call_with, prepare, tool};
use crate::hostile::resident_bytes;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_share_a_few_places() {
    // Each touches 2 MB: a thousand at once without turns would hold 2 GB.
    let plugin = prepare(&tool(
        "",
        "(drop (memory.grow (i32.const 32))) (memory.fill (i32.const 131072) (i32.const 1) (i32.const 2000000))
        (call $answer (local.get $input) (local.get $input_len))",
    ));
    let calls: Vec<_> = (0..1000)
        .map(|number| {
            let plugin = Arc::clone(&plugin);
            tokio::spawn(async move { call_with(&plugin, &number.to_string(), CallOptions::default()).await })
        })
        .collect();
    let mut largest = 0;
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().value, number.to_string());
        largest = largest.max(resident_bytes());
    }
    assert!(largest < 768 << 20, "{largest} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_guests_do_not_keep_honest_ones_waiting() {
    let endless = prepare(&tool("", "(loop $again (br $again)) unreachable"));
    let limits = RuntimeLimits { fuel_budget: u64::MAX, ..RuntimeLimits::default() };
    let options = CallOptions { limits, ..CallOptions::default() };
    let cancel = options.cancel.clone();
    let loops: Vec<_> = (0..8)
        .map(|_| {
            let (plugin, options) = (Arc::clone(&endless), options.clone());
            tokio::spawn(async move { call_with(&plugin, "{}", options).await })
        })
        .collect();
    let honest = prepare(&tool("", "(call $answer (local.get $input) (local.get $input_len))"));
    for _ in 0..5 {
        let served = tokio::time::timeout(Duration::from_secs(20), call_with(&honest, "x", CallOptions::default()));
        assert_eq!(served.await.expect("its turn comes").unwrap().value, "x");
    }
    cancel.cancel();
    for running in loops {
        assert!(matches!(running.await.unwrap().unwrap_err().error, PluginError::Cancelled));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_finds_no_place_is_turned_away() {
    let sizes = PoolSizes { calls: 1, core_instances: 8, memories: 2, tables: 4 };
    let options = RuntimeOptions { allocation: Allocation::Pool(sizes), max_waiting: 1, ..RuntimeOptions::default() };
    let runtime = PluginRuntime::new(options).unwrap();
    let plugin = runtime.prepare(&tool("", "(loop $again (br $again)) unreachable")).unwrap();
    let limits =
        RuntimeLimits { fuel_budget: u64::MAX, wall_clock: Duration::from_secs(60), ..RuntimeLimits::default() };
    let call = ToolCall {
        tool: String::new(),
        input: String::new(),
        options: CallOptions { limits, ..CallOptions::default() },
    };
    let cancel = call.options.cancel.clone();
    let spawn = |call: ToolCall| {
        let (runtime, plugin) = (runtime.clone(), Arc::clone(&plugin));
        tokio::spawn(async move { runtime.call_tool(&plugin, call).await })
    };
    // One runs and one waits; which of the three is turned away does not matter.
    let mut calls = [spawn(call.clone()), spawn(call.clone()), spawn(call.clone())];
    let turned_away = loop {
        if let Some(position) = calls.iter().position(tokio::task::JoinHandle::is_finished) {
            break position;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let failed = (&mut calls[turned_away]).await.unwrap().unwrap_err();
    assert!(matches!(failed.error, PluginError::Overloaded), "{failed}");
    // Waiting has an end of its own.
    let mut impatient = call.clone();
    impatient.options.limits.wall_clock = Duration::from_millis(50);
    impatient.options.cancel = tokio_util::sync::CancellationToken::new();
    let failed = spawn(impatient).await.unwrap().unwrap_err();
    assert!(matches!(failed.error, PluginError::Overloaded), "{failed}");
    cancel.cancel();
    for (position, running) in calls.into_iter().enumerate() {
        if position != turned_away {
            assert!(matches!(running.await.unwrap().unwrap_err().error, PluginError::Cancelled));
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_already_never_starts() {
    let plugin = prepare(&tool("", "unreachable"));
    let options = CallOptions::default();
    options.cancel.cancel();
    let call = ToolCall { tool: String::new(), input: String::new(), options };
    let failed = RUNTIME.call_tool(&plugin, call).await.unwrap_err();
    assert!(matches!(failed.error, PluginError::Cancelled));
    assert_eq!(failed.usage.fuel, 0);
}
