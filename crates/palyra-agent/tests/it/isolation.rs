//! What a run's details say about programs that ran with less isolation than asked for.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_common::{Label, SandboxTier};
use palyra_tools::{
    CallResource, EffectScope, ExecutionFacts, Invocation, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput,
    Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::Setup;

/// Two calls that ran as asked, and one between them that fell back.
const SCRIPT: &str = r#"
[[turn]]
[[turn.call]]
tool = "test.confined"
arguments = { command = "first" }
[[turn]]
[[turn.call]]
tool = "test.confined"
arguments = { command = "second", fallback = "no user namespaces" }
[[turn]]
[[turn.call]]
tool = "palyra.fs.list"
arguments = {}
[[turn]]
text = "done"
"#;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Confine {
    #[serde(rename = "command")]
    _command: String,
    /// Why the tier that was asked for is not available.
    fallback: Option<String>,
}

/// A tool whose program runs in tier C, or in tier B for a reason.
struct Confined(ToolDeclaration);

impl Confined {
    fn new() -> Self {
        let declaration = ToolDeclaration::of::<Confine>(ToolName::new("test.confined").unwrap(), "test", "test");
        Self(declaration.reads(EffectScope::Pure))
    }
}

#[async_trait]
impl Tool for Confined {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("test"))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let arguments: Confine = serde_json::from_value(invocation.arguments).unwrap();
        let execution = ExecutionFacts {
            executor: "test".to_owned(),
            tier: Some(if arguments.fallback.is_some() { SandboxTier::B } else { SandboxTier::C }),
            fallback_reasons: arguments.fallback.into_iter().collect(),
            cpu_ms: None,
            memory_bytes: None,
            output_bytes: None,
            timed_out: false,
        };
        Ok(ToolOutput { execution: Some(execution), ..ToolOutput::text("ran", Label::system()) })
    }
}

#[tokio::test]
async fn calls_that_fell_back_to_a_weaker_tier_are_told_with_their_reasons() {
    let mut setup = Setup::script(SCRIPT);
    setup.tools = vec![Arc::new(Confined::new())];
    let bench = setup.start().await;
    let (run, _) = bench.run("run them").await;
    let reduced = bench.engine.run_details(run.run_id).await.unwrap().reduced_isolation;
    let [call] = reduced.as_slice() else { panic!("one call fell back: {reduced:?}") };
    assert_eq!((call.call_id.as_str(), call.tool.as_str(), call.tier), ("t2c1", "test.confined", SandboxTier::B));
    assert_eq!(call.reasons, ["no user namespaces"]);
    assert_eq!(call.arguments, Some(json!({ "command": "second", "fallback": "no user namespaces" })));
}
