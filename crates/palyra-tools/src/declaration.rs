//! What a tool says about itself: the facts that policy, the engine, the model and a person judge a call by.
//!
//! A declaration is data. Nothing here decides; the `Decide` port of the engine reads it.

use std::sync::Arc;
use std::time::Duration;

use palyra_common::{
    Confidentiality, Consequence, DataOrigin, EffectScope, FieldClass, Integrity, Label, OutputClass, Risk, SinkKind,
    ToolClassification, runtime_contract_enum,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallResource, ToolName};

/// How long a tool may work unless it says otherwise (contracts: tool, 120 s by default).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

runtime_contract_enum! {
    /// Whether calls may run at the same time.
    pub enum Concurrency("concurrency") {
        /// Only reads: may run together with other shared calls.
        Shared = "shared",
        /// Runs alone.
        Exclusive = "exclusive",
    }
}

runtime_contract_enum! {
    /// What a crash in the middle of a call allows.
    pub enum Repeatability("repeatability") {
        /// With the same effect id it is safe to run again.
        Repeatable = "repeatable",
        /// As long as it has not reported that its effect begins, nothing has happened and it runs again; afterwards a person decides.
        UntilBegun = "until_begun",
        /// A second run could be a second effect; a person decides.
        NonRepeatable = "non_repeatable",
    }
}

runtime_contract_enum! {
    /// When a model is told about a tool. This is about the size of requests and never about permission: a call of any tool is decided in the
    /// same way, offered or not.
    pub enum Offering("tool_offering") {
        /// In every turn.
        Always = "always",
        /// In every turn as long as there is room for all tools of this kind; else when it is searched for.
        IfRoom = "if_room",
        /// When the run has come to need it, or when it is searched for.
        OnDemand = "on_demand",
    }
}

/// An argument that steers the effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sink {
    /// Name of the argument.
    pub argument: String,
    /// What it decides.
    pub kind: SinkKind,
}

/// What a tool says about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDeclaration {
    /// The name it is called by.
    pub name: ToolName,
    /// A few words for people.
    pub title: String,
    /// What the model reads.
    pub description: String,
    /// JSON Schema (2020-12) of the arguments, shared with every request that offers the tool.
    pub input_schema: Arc<Value>,
    /// How far its effect reaches.
    pub scope: EffectScope,
    /// Whether its effect matters outside the run.
    pub consequence: Consequence,
    /// The outside server that offers it; built-in tools have none.
    pub server: Option<String>,
    /// The skill that it belongs to.
    pub skill: Option<String>,
    /// Whether it may run beside others.
    pub concurrency: Concurrency,
    /// Whether it may run again after a crash.
    pub repeatability: Repeatability,
    /// How much harm it could do.
    pub risk: Risk,
    /// The arguments that steer its effect.
    pub sinks: Vec<Sink>,
    /// The label its output gets unless the call says more.
    pub output: Label,
    /// Fields of its structured output that have a role of their own.
    pub fields: Vec<FieldClass>,
    /// Fields of its structured output that its pinned output schema names, and nothing more is known about.
    #[serde(skip)]
    pub named: Vec<String>,
    /// How long it may work; the engine cancels it then.
    pub timeout: Duration,
    /// One line for a person, with `{argument}` where an argument's value goes.
    pub summary: String,
    /// When the model is told about it.
    pub offering: Offering,
    /// Whether the label of a result covers every byte of it. Otherwise a result may hold whatever the call was given and whatever lies in the workspace.
    #[serde(skip)]
    pub labels_results: bool,
    /// Whether a guarded run shows untrusted results to its planner, in a frame, instead of holding them in a variable. Nobody could work on a clone otherwise.
    #[serde(skip)]
    pub shown_inline: bool,
}

impl ToolDeclaration {
    /// A declaration whose schema and description come from the input struct: its doc comments are what the model reads.
    ///
    /// Everything else starts at the cautious end (external, exclusive, not repeatable, high risk, untrusted private
    /// output) and is narrowed by the methods below.
    #[must_use]
    pub fn of<Input: JsonSchema>(name: ToolName, title: &str, summary: &str) -> Self {
        let (description, input_schema) = input_schema::<Input>();
        Self {
            name,
            title: title.to_owned(),
            description,
            input_schema: Arc::new(input_schema),
            scope: EffectScope::External,
            consequence: Consequence::Consequential,
            server: None,
            skill: None,
            concurrency: Concurrency::Exclusive,
            repeatability: Repeatability::NonRepeatable,
            risk: Risk::High,
            sinks: Vec::new(),
            output: Label::new(Integrity::Untrusted, Confidentiality::Private),
            fields: Vec::new(),
            named: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            summary: summary.to_owned(),
            offering: Offering::IfRoom,
            labels_results: false,
            shown_inline: false,
        }
    }

    /// A tool that reports when its effect begins; see [`BeginReport`](crate::BeginReport).
    #[must_use]
    pub fn reporting_begin(mut self) -> Self {
        if self.repeatability == Repeatability::NonRepeatable {
            self.repeatability = Repeatability::UntilBegun;
        }
        self
    }

    /// A tool that only reads: shared, repeatable, low risk.
    #[must_use]
    pub fn reads(mut self, scope: EffectScope) -> Self {
        self.scope = scope;
        self.consequence = Consequence::Contained;
        self.concurrency = Concurrency::Shared;
        self.repeatability = Repeatability::Repeatable;
        self.risk = Risk::Low;
        self
    }

    /// A tool that changes the workspace exactly once per effect id: exclusive, repeatable, and undone by `undo`.
    #[must_use]
    pub fn writes_workspace(mut self) -> Self {
        self.scope = EffectScope::WorkspaceWrite;
        self.consequence = Consequence::Contained;
        self.concurrency = Concurrency::Exclusive;
        self.repeatability = Repeatability::Repeatable;
        self.risk = Risk::Medium;
        self
    }

    /// A tool that knows the label of all that it gives: it reads files through the workspace, or only says what it did.
    #[must_use]
    pub fn labelling_results(mut self) -> Self {
        self.labels_results = true;
        self
    }

    /// Whose data its results hold, where they are not public; nothing for a tool that reads nothing.
    #[must_use]
    pub fn origin(&self) -> Option<DataOrigin> {
        match (&self.server, &self.skill, self.scope) {
            (Some(server), ..) => Some(DataOrigin::Server(server.clone())),
            (None, Some(skill), _) => Some(DataOrigin::Skill(skill.clone())),
            (None, None, EffectScope::Pure) => None,
            // Palyra's own tools read the workspace, or run programs in it; what they fetch is public.
            (None, None, EffectScope::WorkspaceRead | EffectScope::WorkspaceWrite | EffectScope::External) => {
                Some(DataOrigin::Workspace)
            }
        }
    }

    /// Where the arguments of a call go, if they leave the workspace.
    #[must_use]
    pub fn destination(&self, resource: &CallResource) -> Option<DataOrigin> {
        match (&self.server, &self.skill, resource) {
            (Some(server), ..) => Some(DataOrigin::Server(server.clone())),
            (None, Some(skill), _) => Some(DataOrigin::Skill(skill.clone())),
            (None, None, CallResource::Request(target)) => Some(DataOrigin::Host(target.host.clone())),
            // What a program may send is decided by the grant that it runs under.
            (None, None, CallResource::Files(_) | CallResource::Directory(_) | CallResource::Tool { .. }) => None,
        }
    }

    /// A tool that gives what lies in the workspace or what programs made of it: the planner reads it and is tainted by it.
    #[must_use]
    pub fn showing_inline(mut self) -> Self {
        self.shown_inline = true;
        self
    }

    /// Says when the model is told about the tool.
    #[must_use]
    pub fn offered(mut self, offering: Offering) -> Self {
        self.offering = offering;
        self
    }

    /// Adds an argument that steers the effect.
    #[must_use]
    pub fn sink(mut self, argument: &str, kind: SinkKind) -> Self {
        self.sinks.push(Sink { argument: argument.to_owned(), kind });
        self
    }

    /// Sets the default label of the output.
    #[must_use]
    pub fn output(mut self, integrity: Integrity, confidentiality: Confidentiality) -> Self {
        self.output = Label::new(integrity, confidentiality);
        self
    }

    /// Takes consequence, sinks, repeatability and labels from a classification; the scope stays external.
    #[must_use]
    pub fn classified(mut self, class: &ToolClassification) -> Self {
        self.scope = EffectScope::External;
        self.consequence = class.consequence;
        (self.concurrency, self.risk) = match class.consequence {
            Consequence::Contained => (Concurrency::Shared, Risk::Low),
            Consequence::Consequential => (Concurrency::Exclusive, Risk::High),
        };
        self.repeatability = if class.repeatable { Repeatability::Repeatable } else { Repeatability::NonRepeatable };
        self.sinks =
            class.sinks.iter().map(|(argument, kind)| Sink { argument: argument.clone(), kind: *kind }).collect();
        self.output = Label::new(class.output.integrity, class.output.confidentiality);
        self.fields.clone_from(&class.output.fields);
        self.named.clone_from(&class.output.named);
        self
    }

    /// How the information-flow rule treats the tool.
    #[must_use]
    pub fn classification(&self) -> ToolClassification {
        ToolClassification {
            consequence: self.consequence,
            output: OutputClass {
                integrity: self.output.integrity,
                confidentiality: self.output.confidentiality,
                fields: self.fields.clone(),
                named: self.named.clone(),
            },
            sinks: self.sinks.iter().map(|sink| (sink.argument.clone(), sink.kind)).collect(),
            repeatable: self.repeatability == Repeatability::Repeatable,
        }
    }

    /// Fills the summary template from the arguments; an argument that is absent becomes `…`.
    #[must_use]
    pub fn summarise(&self, arguments: &Value) -> String {
        let mut line = String::with_capacity(self.summary.len() + 32);
        let mut rest = self.summary.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            line.push_str(before);
            let Some((name, tail)) = after.split_once('}') else {
                line.push('{');
                rest = after;
                break;
            };
            line.push_str(&shown(arguments.get(name)));
            rest = tail;
        }
        line.push_str(rest);
        line
    }
}

/// Longest value shown inside a summary line, in characters.
const SHOWN_CHARACTERS: usize = 120;

fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "…".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    // A summary is one line on somebody's screen: no line breaks, no terminal control characters.
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARACTERS).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        line.push('…');
    }
    line
}

/// Splits the generated schema into the description (the struct's doc comment) and the schema of the arguments.
fn input_schema<Input: JsonSchema>() -> (String, Value) {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema: Schema = settings.into_generator().into_root_schema_for::<Input>();
    schema.remove("title");
    let description = match schema.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    (description, schema.to_value())
}
