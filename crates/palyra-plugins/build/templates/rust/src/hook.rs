//! The hook of this skill: a function that receives an event and returns a decision.

use palyra_plugins_sdk::{Decision, Event, hook_plugin};
use serde::Deserialize;

hook_plugin!(guard);

/// The fields of `run:before_tool` that this hook needs.
#[derive(Deserialize)]
struct Call {
    tool: Option<String>,
}

/// An error means that the hook failed; before an effect, a failing hook refuses.
fn guard(event: Event) -> Result<Decision, String> {
    let call: Call = event.read()?;
    if call.tool.is_none() {
        return Err("the payload names no tool".to_owned());
    }
    if event.payload.contains(".env") {
        return Ok(Decision::block("the call is about a `.env` file"));
    }
    Ok(Decision::proceed())
}
