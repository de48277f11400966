//! What tools answer.

use serde_json::{Value, json};

use super::{Act, Tool, World};

/// The answer of a tool, structured.
#[must_use]
pub fn reply(world: &World, tool: &Tool) -> Value {
    let Some(server) = world.servers.get(tool.server) else { return Value::Null };
    match tool.act {
        Act::Records => json!({"items": server.records}),
        Act::Names => json!({"names": server.names}),
        Act::Lookup | Act::Fetch => json!({"items": [{"id": 1, "title": "result", "text": world.payload}]}),
        Act::Effect(_) => json!({"ok": true}),
    }
}
