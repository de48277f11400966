//! The reference beside the product: told of everything that happens, asked about every call, and counted where it says something else.

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::{Confidentiality, Consequence, RunMode, SinkKind, ToolVerdict};
use serde_json::{Value, json};

use crate::attack::Statement;
use crate::reference::{Declared, Integrity, Label, Mandate, Reference, Role, Says, Shown, WORKSPACE};
use crate::world::{Origin, Tool, World, reply};

/// A run as the reference sees it.
pub struct Shadow<'a> {
    world: &'a World,
    mode: RunMode,
    reference: Reference,
}

/// A call on which the two do not agree, by class.
pub type Difference = String;

impl<'a> Shadow<'a> {
    /// A run begins.
    #[must_use]
    pub fn new(world: &'a World, mode: RunMode) -> Self {
        let mut tools: BTreeMap<String, Declared> =
            world.tools.iter().map(|tool| (tool.name.clone(), declared(world, tool))).collect();
        for own in ["palyra.fs.read", "palyra.fs.write"] {
            let inside = Declared {
                destination: None,
                is_consequential: false,
                roles: BTreeMap::new(),
                closed: BTreeMap::new(),
            };
            tools.insert(own.to_owned(), inside);
        }
        let mut reference = Reference::new(tools);
        reference.user(&world.request.text);
        Self { world, mode, reference }
    }

    /// The planner stated what it will do.
    pub fn stated(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.reference.state(Mandate {
                tool: statement.tool.clone(),
                targets: statement.targets.clone(),
                dictated: statement.dictated.clone(),
                caps: statement.caps.clone(),
                count: statement.count,
                open: statement.sources.iter().map(|origin| named(self.world, *origin)).collect(),
            });
        }
    }

    /// A call was judged: whether the reference judges otherwise, and how.
    pub fn judged(&mut self, call: Compared<'_>) -> Option<Difference> {
        let Compared { tool, written, given, variables, verdict, policies, happened } = call;
        let says = self.reference.propose(tool, written, given, variables);
        let difference = self.difference(tool, says, verdict, policies);
        match happened {
            Happened::No => {}
            Happened::Alone | Happened::Agreed => {
                if happened == Happened::Alone && says == Says::Permit {
                    self.reference.spend(tool, written, given, variables);
                }
                self.happened(tool, written, given, variables);
            }
        }
        difference
    }

    fn difference(&self, tool: &str, says: Says, verdict: ToolVerdict, policies: &[String]) -> Option<Difference> {
        // A call that could not be made anyway says nothing about the rule.
        if policies.iter().any(|policy| policy.starts_with("engine.") || policy.starts_with("safety.")) {
            return None;
        }
        // What a person agreed to for longer is no matter of mandates.
        if policies.iter().any(|policy| policy.starts_with("approved.")) {
            return None;
        }
        let kind = self
            .world
            .tool(tool)
            .map_or_else(|| "built-in".to_owned(), |tool| format!("{:?} ({})", tool.act, tool.class.consequence));
        match (says, verdict) {
            (Says::Permit, ToolVerdict::Permit) => None,
            (Says::Ask(why) | Says::Refuse(why), ToolVerdict::Permit) => {
                Some(format!("only the product permits: {kind}, {why}"))
            }
            (Says::Permit, ToolVerdict::NeedsApproval | ToolVerdict::Deny) => {
                Some(format!("only the reference permits: {kind}, {}", policies.join(" ")))
            }
            (Says::Ask(_) | Says::Refuse(_), ToolVerdict::NeedsApproval | ToolVerdict::Deny) => None,
        }
    }

    fn happened(&mut self, tool: &str, written: &Value, given: &Value, variables: &BTreeMap<String, String>) {
        let path = given.get("path").and_then(Value::as_str).unwrap_or_default();
        match tool {
            "palyra.fs.write" => {
                let label = self.reference.given(written, variables);
                self.reference.write(path, &label);
            }
            "palyra.fs.read" => {
                let label = self.reference.file(path);
                let shown = if label.integrity == Integrity::Trusted { Shown::Text } else { self.by_mode() };
                self.reference.read(tool, label, &Value::Null, shown);
            }
            _ => {
                let Some(found) = self.world.tool(tool) else { return };
                let label = Label {
                    integrity: Integrity::Untrusted,
                    is_private: found.class.output.confidentiality > Confidentiality::Public,
                    origins: [self.world.servers[found.server].name.clone()].into(),
                };
                let data = reply(self.world, found);
                let shown = self.by_mode();
                self.reference.read(tool, label, &data, shown);
            }
        }
    }

    /// The text of a variable was shown.
    pub fn revealed(&mut self, tool: &str) {
        self.reference.reveal(tool);
    }

    /// The planner answered, and another run began.
    pub fn next_run(&mut self, answer: &str, variables: &BTreeMap<String, String>) {
        let label = self.reference.given(&json!(answer), variables).join(self.reference.context());
        let shown = if label.integrity == Integrity::Trusted { Shown::Text } else { self.by_mode() };
        self.reference.next_run(&label, shown);
    }

    fn by_mode(&self) -> Shown {
        match self.mode {
            RunMode::Open => Shown::Text,
            RunMode::Guarded | RunMode::Strict => Shown::Preview,
        }
    }
}

/// A call as both see it.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The arguments as the planner wrote them.
    pub written: &'a Value,
    /// The same with references resolved.
    pub given: &'a Value,
    /// Which variable holds the result of which tool.
    pub variables: &'a BTreeMap<String, String>,
    /// What the product decided.
    pub verdict: ToolVerdict,
    /// On what grounds.
    pub policies: &'a [String],
    /// What came of it.
    pub happened: Happened,
}

/// Whether a call was carried out, and on whose word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It was not.
    No,
    /// On nobody's.
    Alone,
    /// On a person's.
    Agreed,
}

fn named(world: &World, origin: Origin) -> String {
    match origin {
        Origin::Server(server) => world.servers[server].name.clone(),
        Origin::Workspace => WORKSPACE.to_owned(),
    }
}

/// A tool by its accepted classification. What that does not list is a target.
fn declared(world: &World, tool: &Tool) -> Declared {
    let role = |kind: &SinkKind| match kind {
        SinkKind::Destination | SinkKind::Command | SinkKind::Path | SinkKind::Credential => Role::Target,
        SinkKind::Amount => Role::Limit,
        SinkKind::Content => Role::Content,
    };
    let properties = tool.description.input_schema.get("properties").and_then(Value::as_object);
    let listed = |(name, schema): (&String, &Value)| Some((name.clone(), schema.get("enum")?.as_array()?.clone()));
    Declared {
        destination: Some(world.servers[tool.server].name.clone()),
        is_consequential: tool.class.consequence == Consequence::Consequential,
        roles: tool.class.sinks.iter().map(|(name, kind)| (name.clone(), role(kind))).collect(),
        closed: properties.into_iter().flatten().filter_map(listed).collect(),
    }
}

/// Which variable holds the result of which tool, by what the planner was shown.
#[must_use]
pub fn variables(shown: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for text in shown {
        for piece in text.split("\"variable\":\"").skip(1) {
            let name = piece.split('"').next().unwrap_or_default();
            let from = piece.split_once("\"from\":\"").map(|(_, from)| from.split(" (").next().unwrap_or_default());
            if let Some(from) = from {
                found.insert(name.to_owned(), from.to_owned());
            }
        }
    }
    found
}

/// Differences by class with how often and where first.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// How many calls were compared.
    pub compared: u64,
    /// By class: how often, and the first.
    pub classes: BTreeMap<Difference, (u64, String)>,
}

impl Differences {
    /// Takes one in.
    pub fn add(&mut self, difference: Difference, example: String) {
        self.classes.entry(difference).or_insert((0, example)).0 += 1;
    }

    /// Takes all of another in.
    pub fn join(&mut self, other: Self) {
        self.compared += other.compared;
        for (class, (count, example)) in other.classes {
            self.classes.entry(class).or_insert((0, example)).0 += count;
        }
    }

    /// The classes alone.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        self.classes.keys().map(String::as_str).collect()
    }
}
