//! A model that is a function of what it sees, and outside tools that count what reaches them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::stream;
use palyra_common::{
    Confidentiality, Consequence, FieldClass, FieldRole, Integrity, OutputClass, SinkKind, ToolClassification,
};
use palyra_models::{
    Message, ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, OutputShape, ProviderInfo, Purpose,
    StopReason,
};
use palyra_tools::{CallResource, Invocation, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// What a brain does next.
pub(crate) enum Next {
    Call(&'static str, Value),
    Calls(Vec<(&'static str, Value)>),
    Say(String),
}

/// Plans by a function of the messages; extracts by another of the text.
pub(crate) struct Brain {
    plan: Box<Plan>,
    extract: Box<Extract>,
    context_tokens: u32,
}

type Plan = dyn Fn(&[Message]) -> Next + Send + Sync;
type Extract = dyn Fn(&str) -> String + Send + Sync;

impl Brain {
    pub(crate) fn new(plan: impl Fn(&[Message]) -> Next + Send + Sync + 'static) -> Arc<Self> {
        Self::extracting(plan, |_| "{}".into())
    }

    pub(crate) fn extracting(
        plan: impl Fn(&[Message]) -> Next + Send + Sync + 'static,
        extract: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::with_window(128_000, plan, extract)
    }

    /// The same with so many tokens of context.
    pub(crate) fn with_window(
        context_tokens: u32,
        plan: impl Fn(&[Message]) -> Next + Send + Sync + 'static,
        extract: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { plan: Box::new(plan), extract: Box::new(extract), context_tokens })
    }

    /// Makes these calls one after the other, whatever comes back, and ends with the newest result.
    pub(crate) fn playing(calls: Vec<(&'static str, Value)>) -> Arc<Self> {
        Self::new(move |messages| {
            let done = results(messages).len();
            match calls.get(done) {
                Some((tool, arguments)) => Next::Call(tool, arguments.clone()),
                None => Next::Say(results(messages).last().cloned().unwrap_or_else(|| "done".into())),
            }
        })
    }
}

/// The tool results that a model sees, oldest first.
pub(crate) fn results(messages: &[Message]) -> Vec<String> {
    messages.iter().filter(|message| message.tool_call_id.is_some()).map(|message| message.content.clone()).collect()
}

#[async_trait]
impl ModelProvider for Brain {
    fn name(&self) -> &str {
        "brain"
    }
    fn describe(&self) -> ProviderInfo {
        let (name, model) = ("brain".into(), "brain".into());
        ProviderInfo { name, model, context_tokens: self.context_tokens, is_language_model: false }
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let next = match request.purpose {
            Purpose::Turn => (self.plan)(&request.messages),
            Purpose::Auxiliary(_) => {
                let answer = (self.extract)(&request.messages.last().unwrap().content);
                Next::Say(fields_of(&request.output, &answer).unwrap_or(answer))
            }
        };
        let calls = match next {
            Next::Say(text) => {
                let events = [ModelEvent::TextDelta(text), ModelEvent::Finished(StopReason::EndTurn)];
                return Ok(Box::pin(stream::iter(events.map(Ok))));
            }
            Next::Call(tool, arguments) => vec![(tool, arguments)],
            Next::Calls(calls) => calls,
        };
        let deltas = (0_u32..).zip(calls).map(|(index, (tool, arguments))| ModelEvent::ToolCallDelta {
            index: Some(index),
            id: Some(format!("c{index}")),
            name: Some(tool.into()),
            arguments: arguments.to_string(),
        });
        let events: Vec<ModelEvent> = deltas.chain([ModelEvent::Finished(StopReason::ToolUse)]).collect();
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

/// Of an answer that knows everything, the fields that were asked for.
fn fields_of(output: &OutputShape, answer: &str) -> Option<String> {
    let OutputShape::Json { schema, .. } = output else { return None };
    let Value::Object(mut fields) = serde_json::from_str(answer).ok()? else { return None };
    fields.retain(|name, _| schema["properties"].get(name).is_some());
    Some(Value::Object(fields).to_string())
}

/// What reached the outside, in order.
pub(crate) type Outbox = Arc<Mutex<Vec<(String, Value)>>>;

#[derive(Deserialize, JsonSchema)]
struct Anything {}

/// One tool of an outside server.
pub(crate) struct Outside {
    declaration: ToolDeclaration,
    reply: Value,
    outbox: Outbox,
}

impl Outside {
    fn made(server: &str, tool: &str, class: &ToolClassification, reply: Value, outbox: &Outbox) -> Arc<dyn Tool> {
        let name = ToolName::new(format!("mcp.{server}.{tool}")).unwrap();
        let mut declaration = ToolDeclaration::of::<Anything>(name, tool, "call it").classified(class);
        declaration.input_schema = json!({"type": "object"}).into();
        declaration.server = Some(server.into());
        Arc::new(Self { declaration, reply, outbox: Arc::clone(outbox) })
    }

    /// Reads something that anyone may have written.
    pub(crate) fn reading(server: &str, tool: &str, reply: Value, outbox: &Outbox) -> Arc<dyn Tool> {
        let field = |field: &str, role| FieldClass { field: field.into(), role };
        let class = ToolClassification {
            consequence: Consequence::Contained,
            output: OutputClass {
                integrity: Integrity::Untrusted,
                confidentiality: Confidentiality::Private,
                fields: vec![
                    field("items.*.id", FieldRole::Assigned),
                    field("items.*.from", FieldRole::Author),
                    field("channels.*", FieldRole::Identifier),
                ],
                named: vec!["items.*.body".into()],
            },
            sinks: [].into(),
            repeatable: true,
        };
        Self::made(server, tool, &class, reply, outbox)
    }

    /// Does what its classification says.
    pub(crate) fn classified(server: &str, tool: &str, class: &ToolClassification, outbox: &Outbox) -> Arc<dyn Tool> {
        Self::made(server, tool, class, json!({"ok": true}), outbox)
    }

    /// Sends `body` to `to`.
    pub(crate) fn sending(server: &str, tool: &str, outbox: &Outbox) -> Arc<dyn Tool> {
        let class = ToolClassification {
            consequence: Consequence::Consequential,
            output: OutputClass {
                integrity: Integrity::ToolTrusted,
                confidentiality: Confidentiality::Private,
                fields: vec![],
                named: vec![],
            },
            sinks: [("to".into(), SinkKind::Destination), ("body".into(), SinkKind::Content)].into(),
            repeatable: false,
        };
        Self::made(server, tool, &class, json!({"ok": true}), outbox)
    }
}

#[async_trait]
impl Tool for Outside {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }
    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool(format!("{}{arguments}", self.declaration.name)))
    }
    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        if self.declaration.consequence == Consequence::Consequential {
            self.outbox.lock().unwrap().push((self.declaration.name.to_string(), invocation.arguments));
        }
        Ok(ToolOutput::text(self.reply.to_string(), self.declaration.output.clone()).with_data(self.reply.clone()))
    }
}
