//! The semantics of ADR 0022, written down once more: small, slow, and meant to be read beside the ADR.
//!
//! Nothing is shared with the product, entity parsers included (`entities`). Labels are sets of origins, matching is a loop over all parts, clearance is a
//! subset. Where the ADR leaves something open, the choice stands in a comment that begins with `Choice:`.

mod entities;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use entities::{Entity, entities, entity};

/// Most parts of a call, and deepest nesting, that are looked at.
const MAX_PARTS: usize = 20_000;
const MAX_DEPTH: usize = 64;
/// Most parts of a call of which each is taken for what it is.
const MAX_CHOICES: usize = 16;

/// Who may have written something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Integrity {
    /// `T`
    Trusted,
    /// `U`
    Untrusted,
}

/// `ℓ = (i, c, O)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// `i`
    pub integrity: Integrity,
    /// Whether `c` is above public.
    pub is_private: bool,
    /// `O`
    pub origins: BTreeSet<String>,
}

impl Label {
    /// What the user wrote.
    #[must_use]
    pub fn user() -> Self {
        Self { integrity: Integrity::Trusted, is_private: false, origins: BTreeSet::new() }
    }

    /// `ℓ ⊔ ℓ'`
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        Self {
            integrity: self.integrity.max(other.integrity),
            is_private: self.is_private || other.is_private,
            origins: self.origins.union(&other.origins).cloned().collect(),
        }
    }
}

/// What an argument decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Who or what is affected, or who receives.
    Target,
    /// How much.
    Limit,
    /// One of a closed set, or a flag.
    Option,
    /// What is written or sent.
    Content,
}

/// A tool.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its server, or where else its effect goes; none for tools that stay in the workspace or in the run.
    pub destination: Option<String>,
    /// Whether its effect matters outside the run.
    pub is_consequential: bool,
    /// Roles by argument; what is not listed is a target.
    pub roles: BTreeMap<String, Role>,
    /// Closed sets by argument.
    pub closed: BTreeMap<String, Vec<Value>>,
}

/// `m = (d, t, bind, n, cap)`
#[derive(Debug, Clone, PartialEq)]
pub struct Mandate {
    /// `t`, which names `d`.
    pub tool: String,
    /// Targets, by argument: any of these.
    pub targets: BTreeMap<String, Vec<String>>,
    /// Dictated content, by argument.
    pub dictated: BTreeMap<String, String>,
    /// `cap`, by argument.
    pub caps: BTreeMap<String, i64>,
    /// `n`
    pub count: u32,
    /// `open(m)`
    pub open: BTreeSet<String>,
}

/// What the semantics say about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Says {
    /// It may happen.
    Permit,
    /// A person is asked, because of this.
    Ask(&'static str),
    /// It may not be made.
    Refuse(&'static str),
}

/// What the planner was shown of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    Text,
    /// Nothing that anybody else wrote.
    Preview,
}

/// `σ = (K, E, H, M, G, F)`, without `G`, which nobody adds to here.
#[derive(Debug, Clone)]
pub struct Reference {
    tools: BTreeMap<String, Declared>,
    context: Label,
    entities: BTreeSet<Entity>,
    user: Vec<String>,
    issued: BTreeSet<(String, String)>,
    mandates: Vec<Mandate>,
    files: BTreeMap<String, Label>,
    results: BTreeMap<String, Label>,
}

/// One part of a call with its label.
struct Part<'a> {
    argument: &'a str,
    text: String,
    value: Option<&'a Value>,
    is_key: bool,
    label: Label,
}

impl Reference {
    /// Nothing has happened.
    #[must_use]
    pub fn new(tools: BTreeMap<String, Declared>) -> Self {
        Self {
            tools,
            context: Label::user(),
            entities: BTreeSet::new(),
            user: Vec::new(),
            issued: BTreeSet::new(),
            mandates: Vec::new(),
            files: BTreeMap::new(),
            results: BTreeMap::new(),
        }
    }

    /// Step *user*.
    pub fn user(&mut self, text: &str) {
        self.entities.extend(entities(text));
        self.user.push(text.to_owned());
    }

    /// Step *mandate*.
    pub fn state(&mut self, mandate: Mandate) -> bool {
        let is_span = |text: &String| self.is_span(text);
        let is_admitted = self.context.integrity == Integrity::Trusted
            && mandate.targets.values().flatten().all(is_span)
            && mandate.dictated.values().all(|text| self.user.iter().any(|user| user.contains(text)))
            && mandate.caps.values().all(|cap| self.is_span(&cap.to_string()));
        if is_admitted {
            self.mandates.push(mandate);
        }
        is_admitted
    }

    /// Whether a text is an entity of `E`, or words of the user's as a whole.
    ///
    /// Choice: a plain word is bound to its span and compared letter by letter; that the server lists it is for the engine to look up.
    fn is_span(&self, text: &str) -> bool {
        match entity(text) {
            Some(entity) => self.entities.contains(&entity),
            None => self.user.iter().any(|user| whole_words(user, text)),
        }
    }

    /// A new run of the session begins: what was said before is as good as its label.
    pub fn next_run(&mut self, answer: &Label, shown: Shown) {
        self.context = Label::user();
        self.mandates.clear();
        self.results.clear();
        self.show(answer, shown);
    }

    /// What the planner has seen.
    #[must_use]
    pub fn context(&self) -> &Label {
        &self.context
    }

    fn show(&mut self, label: &Label, shown: Shown) {
        let mut label = label.clone();
        if shown == Shown::Preview {
            // Choice: numbers and lengths of a preview come from the same place, but nobody else chose their words.
            label.integrity = Integrity::Trusted;
        }
        self.context = self.context.join(&label);
    }

    /// Step *read*, after the call has happened.
    pub fn read(&mut self, tool: &str, label: Label, data: &Value, shown: Shown) {
        if let Some(destination) = self.tools.get(tool).and_then(|tool| tool.destination.clone()) {
            let mut leaves = Vec::new();
            parts_of(data, 0, &mut leaves);
            // Choice: every scalar of a result is issued by its server, for calls back to it and for nothing else.
            for (_, text, _) in leaves {
                self.issued.insert((destination.clone(), text));
            }
        }
        self.show(&label, shown);
        self.results.insert(tool.to_owned(), label);
    }

    /// The text of an earlier result is shown.
    pub fn reveal(&mut self, tool: &str) {
        if let Some(label) = self.results.get(tool).cloned() {
            self.show(&label, Shown::Text);
        }
    }

    /// Step *write*: a file holds what the planner had seen, and what it was given by reference.
    pub fn write(&mut self, path: &str, given: &Label) {
        self.files.insert(path.to_owned(), self.context.join(given));
    }

    /// The label of a file: its own, or that of any file of the workspace.
    #[must_use]
    pub fn file(&self, path: &str) -> Label {
        let own = Label {
            integrity: Integrity::Trusted,
            is_private: true,
            origins: [crate::reference::WORKSPACE.to_owned()].into(),
        };
        self.files.get(path).map_or(own.clone(), |label| label.join(&own))
    }

    /// What the semantics say about a call. `written` is what the planner wrote, `given` the same with references resolved, `variables` says what each holds.
    #[must_use]
    pub fn propose(&self, tool: &str, written: &Value, given: &Value, variables: &BTreeMap<String, String>) -> Says {
        let Some(declared) = self.tools.get(tool) else { return Says::Refuse("no such tool") };
        let mut parts = Vec::new();
        for (argument, value) in given.as_object().into_iter().flatten() {
            let label = self.label_of(written.get(argument).unwrap_or(value), variables);
            let mut found = Vec::new();
            if !parts_of(value, 1, &mut found) || parts.len() + found.len() > MAX_PARTS {
                return Says::Refuse("more parts than are looked at");
            }
            parts.extend(found.into_iter().map(|(is_key, text, value)| Part {
                argument,
                text,
                value,
                is_key,
                label: label.clone(),
            }));
        }
        let Some(destination) = &declared.destination else { return Says::Permit };
        if !declared.is_consequential {
            return self.cleared(declared, destination, &parts, None);
        }
        let mut last = Says::Ask("no mandate");
        for mandate in self.mandates.iter().filter(|mandate| mandate.tool == tool && mandate.count > 0) {
            let says = match self.matches(mandate, declared, destination, &parts) {
                Says::Permit => self.cleared(declared, destination, &parts, Some(mandate)),
                other => other,
            };
            if says == Says::Permit {
                return says;
            }
            last = says;
        }
        last
    }

    /// A call that was permitted without anybody's word has happened: `M -= m` once.
    pub fn spend(&mut self, tool: &str, written: &Value, given: &Value, variables: &BTreeMap<String, String>) {
        for index in 0..self.mandates.len() {
            let mut alone = self.clone();
            alone.mandates = vec![self.mandates[index].clone()];
            if alone.mandates[0].tool == tool && alone.propose(tool, written, given, variables) == Says::Permit {
                self.mandates[index].count = self.mandates[index].count.saturating_sub(1);
                return;
            }
        }
    }

    fn matches(&self, mandate: &Mandate, declared: &Declared, destination: &str, parts: &[Part<'_>]) -> Says {
        for part in parts {
            match bound_role(mandate, declared, part) {
                Role::Target => {
                    let bound = mandate.targets.get(part.argument).into_iter().flatten();
                    let is_schema_key = part.is_key && self.is_name_of_schema(part);
                    if !is_schema_key && !bound.into_iter().any(|bound| same(bound, &part.text)) {
                        return Says::Ask("a target is not bound");
                    }
                }
                Role::Limit => {
                    let cap = mandate.caps.get(part.argument);
                    let within =
                        |cap: &i64| part.text.parse::<f64>().is_ok_and(|value| value <= *cap as f64 && value >= 0.0);
                    if !cap.is_some_and(within) {
                        return Says::Ask("a limit is exceeded");
                    }
                }
                Role::Option => {
                    let closed = declared.closed.get(part.argument);
                    let is_flag = matches!(part.value, Some(Value::Bool(_)));
                    if !is_flag && !closed.is_some_and(|closed| part.value.is_some_and(|value| closed.contains(value)))
                    {
                        return Says::Ask("an option is not in its set");
                    }
                }
                Role::Content => {
                    if let Some(dictated) = mandate.dictated.get(part.argument) {
                        if !part.is_key && *dictated != part.text {
                            return Says::Ask("content is not what was dictated");
                        }
                        continue;
                    }
                    let is_open = |entity: &Entity| {
                        self.entities.contains(entity)
                            || self.issued.contains(&(destination.to_owned(), entity.written().to_owned()))
                    };
                    if !entities(&part.text).iter().all(is_open) {
                        return Says::Ask("content holds an address");
                    }
                }
            }
        }
        Says::Permit
    }

    fn cleared(&self, declared: &Declared, destination: &str, parts: &[Part<'_>], mandate: Option<&Mandate>) -> Says {
        for part in parts {
            if parts.len() <= MAX_CHOICES && self.is_known_to(declared, destination, part) {
                continue;
            }
            let role = mandate.map_or_else(|| role(declared, part), |mandate| bound_role(mandate, declared, part));
            // What is bound is the user's own. Choice: a member of a closed set and a number within its cap tell a few bits at most.
            let is_bound = mandate.is_some() && matches!(role, Role::Target | Role::Limit | Role::Option)
                || mandate.is_some_and(|mandate| mandate.dictated.contains_key(part.argument));
            // Choice: what a server holds may go back to it, and to whom a mandate of one of its tools is bound.
            let may =
                |origin: &String| origin == destination || mandate.is_some_and(|mandate| mandate.open.contains(origin));
            if !is_bound && part.label.is_private && !part.label.origins.iter().all(may) {
                return Says::Ask("a part is not cleared");
            }
        }
        Says::Permit
    }

    /// Whether the destination learns nothing from a part but that it was chosen: the user's own words, what it issued itself, a member of a closed set, a flag.
    ///
    /// Choice: a few of those tell a few bits; many can spell something.
    fn is_known_to(&self, declared: &Declared, destination: &str, part: &Part<'_>) -> bool {
        let folded = part.text.to_lowercase();
        let is_number_of_user = || {
            let number = part.text.parse::<f64>().ok();
            number.is_some_and(|number| self.user.iter().any(|user| numbers(user).any(|written| written == number)))
        };
        let closed = declared.closed.get(part.argument).zip(part.value);
        matches!(part.value, Some(Value::Bool(_)))
            || closed.is_some_and(|(closed, value)| closed.contains(value))
            || self.is_span(&part.text)
            || self.user.iter().any(|user| whole_words(&user.to_lowercase(), &folded))
            || self.issued.contains(&(destination.to_owned(), part.text.clone()))
            || is_number_of_user()
    }

    fn is_name_of_schema(&self, part: &Part<'_>) -> bool {
        entity(&part.text).is_none() && SCHEMA_NAMES.contains(&part.text.as_str())
    }

    /// The label of what the planner wrote: its own words have that of all that it has seen; a reference has that of what it stands for.
    fn label_of(&self, written: &Value, variables: &BTreeMap<String, String>) -> Label {
        let mut leaves = Vec::new();
        parts_of(written, 0, &mut leaves);
        let mut label = Label::user();
        for (_, text, _) in &leaves {
            let is_reference = variables.keys().any(|name| text == name || text.starts_with(&format!("{name}.")));
            if !is_reference {
                label = label.join(&self.context);
            }
            for (name, tool) in variables {
                let inside = format!("${{{}", name.trim_start_matches('$'));
                if is_reference && (text == name || text.starts_with(&format!("{name}."))) || text.contains(&inside) {
                    label = label.join(self.results.get(tool).unwrap_or(&self.context));
                }
            }
        }
        label
    }

    /// The label of a value that was given by reference or written, for *write*.
    #[must_use]
    pub fn given(&self, written: &Value, variables: &BTreeMap<String, String>) -> Label {
        self.label_of(written, variables)
    }
}

/// The name of the workspace among origins.
pub const WORKSPACE: &str = "workspace";

/// Names of fields of arguments that schemas list in these worlds.
const SCHEMA_NAMES: &[&str] = &["value", "address", "id", "name"];

fn role(declared: &Declared, part: &Part<'_>) -> Role {
    if matches!(part.value, Some(Value::Bool(_))) || declared.closed.contains_key(part.argument) {
        return Role::Option;
    }
    declared.roles.get(part.argument).copied().unwrap_or(Role::Target)
}

/// Choice: what a mandate binds is judged by the kind of its binding, whatever the tool says of the argument.
fn bound_role(mandate: &Mandate, declared: &Declared, part: &Part<'_>) -> Role {
    if mandate.targets.contains_key(part.argument) {
        Role::Target
    } else if mandate.caps.contains_key(part.argument) {
        Role::Limit
    } else if mandate.dictated.contains_key(part.argument) {
        Role::Content
    } else {
        role(declared, part)
    }
}

/// The numbers of a text.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    text.split(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .filter_map(|word| word.trim_matches('.').parse().ok())
}

fn same(one: &str, other: &str) -> bool {
    match (entity(one), entity(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one == other.trim(),
        _ => false,
    }
}

fn whole_words(text: &str, words: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    !words.is_empty()
        && text.match_indices(words).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text.get(at + words.len()..).and_then(|after| after.chars().next());
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

/// Every key and leaf: whether it is a key, its text, and the leaf. False if there are too many or they lie too deep.
fn parts_of<'a>(value: &'a Value, depth: usize, found: &mut Vec<(bool, String, Option<&'a Value>)>) -> bool {
    if depth > MAX_DEPTH || found.len() > MAX_PARTS {
        return false;
    }
    match value {
        Value::Null => true,
        Value::String(text) if text.is_empty() => true,
        Value::String(text) => {
            found.push((false, text.clone(), Some(value)));
            true
        }
        Value::Bool(_) | Value::Number(_) => {
            found.push((false, value.to_string(), Some(value)));
            true
        }
        Value::Array(items) => items.iter().all(|item| parts_of(item, depth + 1, found)),
        Value::Object(members) => members.iter().all(|(key, member)| {
            found.push((true, key.clone(), None));
            parts_of(member, depth + 1, found)
        }),
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
