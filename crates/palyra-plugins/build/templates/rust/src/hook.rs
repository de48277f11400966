//! The hook of this skill: a function that is told what is about to happen and says what is to become of it.

use palyra_plugins_sdk::{Decision, Event, hook_plugin};
use serde::Deserialize;

hook_plugin!(guard);

/// What `run:before_tool` tells, as far as it matters here.
#[derive(Deserialize)]
struct Call {
    tool: Option<String>,
}

/// An error counts as a failing hook, and before an effect a failing hook refuses.
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
