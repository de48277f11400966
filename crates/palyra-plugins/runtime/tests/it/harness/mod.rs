//! What the tests are made with: guests written as text, and a host that remembers.

mod desk;
mod guest;

use std::sync::{Arc, LazyLock};

use palyra_plugins_runtime::{
    Allocation, CallOptions, CapabilityGrantSet, ChannelGrant, Failed, Finished, HttpGrant, Plugin, PluginRuntime,
    PoolSizes, RuntimeOptions, SecretGrant, SecretUse, StorageGrant, ToolCall,
};

pub(crate) use desk::Desk;
pub(crate) use guest::{component, core_of, hook, tool, tool_with};

/// One runtime for all tests of the process: they disturb each other as guests in a daemon would.
pub(crate) static RUNTIME: LazyLock<PluginRuntime> = LazyLock::new(|| {
    let sizes = PoolSizes { calls: 32, core_instances: 512, memories: 64, tables: 256 };
    let options = RuntimeOptions { allocation: Allocation::Pool(sizes), ..RuntimeOptions::default() };
    PluginRuntime::new(options).unwrap()
});

/// Compiles a guest that has to be sound.
pub(crate) fn prepare(wasm: &[u8]) -> Arc<Plugin> {
    RUNTIME.prepare(wasm).unwrap()
}

/// Calls the tool `t` with the input `{}`.
pub(crate) async fn call(plugin: &Plugin, options: CallOptions) -> Result<Finished<String>, Failed> {
    call_with(plugin, "{}", options).await
}

/// Calls the tool `t`.
pub(crate) async fn call_with(plugin: &Plugin, input: &str, options: CallOptions) -> Result<Finished<String>, Failed> {
    RUNTIME.call_tool(plugin, ToolCall { tool: "t".to_owned(), input: input.to_owned(), options }).await
}

/// One grant of every kind.
pub(crate) fn all_grants() -> CapabilityGrantSet {
    CapabilityGrantSet {
        http: vec![HttpGrant { rule: "GET https://api.example".to_owned() }],
        secrets: vec![SecretGrant { name: "token".to_owned(), usage: SecretUse::Reveal, hosts: Vec::new() }],
        storage: vec![StorageGrant { name: "notes".to_owned(), max_bytes: 1 << 20, max_keys: 100 }],
        channels: vec![ChannelGrant { name: "ops".to_owned() }],
    }
}

/// Options with a host that remembers and these grants.
pub(crate) fn options(desk: &Arc<Desk>, grants: CapabilityGrantSet) -> CallOptions {
    let services: Arc<Desk> = Arc::clone(desk);
    CallOptions { grants, services, ..CallOptions::default() }
}
