//! What a language model is sent before anybody has said anything.
//!
//! - `prompt.core`: tokens of Palyra's instructions and of the tools that every run is offered, on the wire where they are most.
//! - `prompt.<wire>`: the same on each wire.
//!
//! Bodies are counted whole, as they would be sent, with the vocabulary `o200k_base`. Left out: project files, the run's surroundings (about 50 tokens), tools
//! of servers and skills, and the instructions that some vendors add by themselves.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_agent::{core_prompt_tokens, engine_tools};
use palyra_figures::{Aim, Report};
use palyra_tools::{
    CallResource, Invocation, Registry, Tool, ToolDeclaration, ToolError, ToolOutput, Workspace, builtin,
};
use serde_json::Value;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A tool that only says what it is.
struct Declared(ToolDeclaration);

#[async_trait]
impl Tool for Declared {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool(""))
    }

    async fn call(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Internal("it is only declared".to_owned()))
    }
}

fn main() -> Result<(), Failure> {
    let executors = palyra_executors::declarations().into_iter().map(|tool| Arc::new(Declared(tool)) as Arc<dyn Tool>);
    let registry = Registry::builder().with_all(builtin()).with_all(engine_tools()?).with_all(executors).build()?;
    let costs = core_prompt_tokens(&registry);
    let most = costs.iter().map(|(_, tokens)| *tokens).max().unwrap_or_default();
    let mut report = Report::new("prompt");
    report.figure("prompt.core", count(most), "tokens", None, Aim::AtMost(2_000.0), 1, None);
    for (wire, tokens) in costs {
        report.figure(&format!("prompt.{wire}"), count(tokens), "tokens", None, Aim::None, 1, None);
    }
    report.note(
        "Whole request bodies, counted with o200k_base; without project files, surroundings and what vendors add.",
    );
    report.finish()?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn count(tokens: u64) -> f64 {
    tokens as f64
}
