//! Whether a mandate covers a call: role by role, value by value, with the equality of each value's kind.
//!
//! Before it has called any tool the planner may leave targets open, because it is still honest or bounded by what the user can see. Afterwards every target and limit has to be
//! bound, and something has to be: content alone never makes a call the one that was meant. Whether what a tool gave was trusted plays no part in that: what lies in a person's own files need not be
//! theirs.

use std::collections::BTreeSet;

use palyra_common::{Integrity, Label, Provenance, SinkKind};
use serde_json::Value;

use crate::checks::{Check, holds};
use crate::entity;
use crate::leaves::{Part, parts};
use crate::mandate::{Bound, Grantor, Mandates, Spent, Standing};
use crate::material::scalar;
use crate::reading::Reading;

/// What an argument does in its call. Whatever nobody reviewed is a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Chooses who or what is affected, or who receives.
    Target,
    /// How much, how many, how long.
    Limit,
    /// A flag, or a member of a list that the schema closes.
    Choice,
    /// A command line, which is one value however many words it has.
    Command,
    /// What is written or sent.
    Content,
}

impl Role {
    /// The role of an argument that a classification gives this sink, or none. `closed` tells whether its value is one that the schema lists.
    ///
    /// A number is no exception: that of a ticket says which one, and every smaller number is another ticket.
    pub(crate) fn of(sink: Option<SinkKind>, closed: bool) -> Self {
        match sink {
            Some(SinkKind::Content) => Self::Content,
            Some(SinkKind::Amount) => Self::Limit,
            Some(SinkKind::Command) => Self::Command,
            Some(SinkKind::Destination | SinkKind::Path | SinkKind::Credential) => Self::Target,
            None if closed => Self::Choice,
            None => Self::Target,
        }
    }
}

/// One argument of a call that is to be covered.
pub(crate) struct Covered<'a> {
    pub(crate) name: &'a str,
    pub(crate) role: Role,
    pub(crate) value: &'a Value,
    /// Where the value comes from; the worst of its parts.
    pub(crate) provenance: Provenance,
}

/// What a run knows that decides whether a mandate covers a call.
pub(crate) trait Known {
    /// Whether the tool listed this value in answer to the user's own query.
    fn is_listed_by(&self, tool: &str, value: &str) -> bool;

    /// Whether the server of the call issued this value, in this spelling.
    fn is_handle(&self, value: &str) -> bool;

    /// Whether a plain word names something rather than being a word of the language.
    fn names_something(&self, word: &str) -> bool;

    /// Whether a key is one that the tool's own schema lists.
    fn is_own_key(&self, key: &str) -> bool;

    /// Whether the tool's schema says that leaving the argument out means this value.
    fn is_default(&self, name: &str, value: &Value) -> bool;

    /// Whether the user wrote this number.
    fn is_number_of_user(&self, number: f64) -> bool;
}

/// How far the planner may be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planner {
    /// It has the task before it and nothing else: what it says is what it makes of the task.
    Fresh,
    /// It called tools, and what they gave is held in variables: it knows numbers and dates, but no text.
    Blind,
    /// It has seen what a tool gave, and anybody may be speaking through it.
    Tainted,
}

impl Planner {
    /// How far a planner may be relied on that was shown this.
    #[must_use]
    pub fn of(readings: &[Reading], seen: &Label) -> Self {
        let called = || readings.iter().filter(|reading| !reading.given);
        if seen.integrity == Integrity::Untrusted || called().any(|reading| reading.variable.is_none()) {
            Self::Tainted
        } else if called().next().is_some() {
            Self::Blind
        } else {
            Self::Fresh
        }
    }
}

/// What a call is covered by, or why nothing covers it.
pub(crate) enum Coverage {
    /// A mandate, of which this would be spent.
    By(Box<Spent>),
    /// Nothing, for these reasons.
    Nothing(Vec<String>),
}

/// Looks for a mandate that covers a call.
pub(crate) fn coverage(
    mandates: &Mandates,
    tool: &str,
    arguments: &[Covered<'_>],
    planner: Planner,
    known: &dyn Known,
) -> Coverage {
    let of_tool = || {
        mandates.all().iter().enumerate().filter(|(_, standing)| {
            (standing.mandate.tool == tool || !holds(Check::MandatesNameTheirTool)) && !standing.revoked
        })
    };
    let mut gaps = Vec::new();
    for (place, standing) in of_tool() {
        match covers(standing, arguments, planner, known) {
            Ok(members) => return Coverage::By(Box::new(Spent { mandate: place, members })),
            Err(reasons) if gaps.is_empty() => gaps = reasons,
            Err(_) => {}
        }
    }
    if gaps.is_empty() {
        gaps.push("the run did not state this effect before its first reading".to_owned());
    }
    Coverage::Nothing(gaps)
}

/// The members of a listing and the destinations that the call uses up, if the mandate covers it; otherwise what is missing.
fn covers(
    standing: &Standing,
    arguments: &[Covered<'_>],
    planner: Planner,
    known: &dyn Known,
) -> Result<BTreeSet<String>, Vec<String>> {
    let mut check = Comparison {
        standing,
        planner,
        known,
        members: BTreeSet::new(),
        gaps: Vec::new(),
        is_bound: false,
        reached: Reached::None,
    };
    if standing.left == Some(0) && holds(Check::UsesAreCounted) {
        check.gaps.push(format!("`{}` was done as often as the run said it would", standing.mandate.tool));
    }
    for argument in arguments {
        check.argument(argument);
    }
    for name in standing.mandate.arguments.keys() {
        if holds(Check::BoundArgumentsAreThere) && !arguments.iter().any(|argument| argument.name == name) {
            check.gaps.push(format!("`{name}` is missing"));
        }
    }
    if !standing.mandate.destinations.is_empty()
        && check.reached != Reached::One
        && holds(Check::DestinationsAreReached)
    {
        check.gaps.push(match check.reached {
            Reached::Several => "the run did not say which of its targets is which".to_owned(),
            Reached::None | Reached::One => "the call goes to none of those that the run said it would".to_owned(),
        });
    }
    let has_to_be_bound = planner != Planner::Fresh && standing.grantor != Grantor::Person;
    if has_to_be_bound && !check.is_bound && holds(Check::SomethingIsBound) {
        check.gaps.push("the run did not say what it would be done to".to_owned());
    }
    if check.gaps.is_empty() { Ok(check.members) } else { Err(check.gaps) }
}

/// A call beside one mandate.
struct Comparison<'a> {
    standing: &'a Standing,
    planner: Planner,
    known: &'a dyn Known,
    members: BTreeSet<String>,
    gaps: Vec<String>,
    /// Whether a value of the call is one that the mandate binds.
    is_bound: bool,
    /// How many arguments the destinations of the mandate bind.
    reached: Reached,
}

/// How many arguments of a call are bound to the destinations of a mandate. They say whom a call is for, not which of two is to get what of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    None,
    One,
    Several,
}

impl Comparison<'_> {
    fn argument(&mut self, argument: &Covered<'_>) {
        let mandate = &self.standing.mandate;
        match (mandate.arguments.get(argument.name), argument.role) {
            (Some(Bound::Each(each)), _) => self.member(argument, &each.each),
            (Some(Bound::Exactly(bound)), Role::Limit) => self.limit(argument, bound),
            (Some(Bound::Exactly(bound)), Role::Content | Role::Command) => self.content(argument, bound),
            (Some(Bound::Exactly(bound)), Role::Target) => self.one_of(argument, &[bound]),
            (Some(Bound::Exactly(bound)), Role::Choice) => self.choice(argument, bound),
            (None, Role::Target) if !mandate.destinations.is_empty() => self.destinations(argument),
            (None, Role::Target | Role::Command) => self.open_target(argument),
            (None, Role::Limit) => self.open_limit(argument),
            (None, Role::Choice) => self.open_choice(argument),
            (None, Role::Content) => {}
        }
    }

    /// Every text of the argument has to be one of these.
    fn one_of(&mut self, argument: &Covered<'_>, bound: &[&Value]) {
        let named: Vec<String> = bound.iter().filter_map(|bound| texts(bound, self.known)).flatten().collect();
        let is_named =
            |text: &String| named.iter().any(|named| names(named, text, self.known)) && is_nameable(text, self.known);
        match texts(argument.value, self.known) {
            Some(texts) if !texts.is_empty() && texts.iter().all(is_named) => self.is_bound = true,
            _ if !holds(Check::TargetsAreBound) => self.is_bound = true,
            _ => self.gaps.push(format!("`{}` is not what the run said it would be", argument.name)),
        }
    }

    /// Every text of the argument has to be a destination of the mandate, and one that is still left: without a number each of several is meant once.
    fn destinations(&mut self, argument: &Covered<'_>) {
        let mandate = &self.standing.mandate;
        self.reached = if self.reached == Reached::None { Reached::One } else { Reached::Several };
        let named: Vec<Value> = mandate.destinations.iter().cloned().map(Value::String).collect();
        self.one_of(argument, &named.iter().collect::<Vec<_>>());
        if mandate.times.is_some() || mandate.destinations.len() < 2 || self.standing.grantor == Grantor::Person {
            return;
        }
        let given = texts(argument.value, self.known).unwrap_or_default();
        let used = mandate.destinations.iter().filter(|named| given.iter().any(|text| entity::same(named, text)));
        for destination in used {
            if self.standing.acted_on.contains(destination) && holds(Check::UsesAreCounted) {
                self.gaps.push(format!("`{destination}` was acted on as often as the run said it would be"));
            } else {
                self.members.insert(destination.clone());
            }
        }
    }

    fn member(&mut self, argument: &Covered<'_>, tool: &str) {
        let texts = texts(argument.value, self.known).unwrap_or_default();
        let unspent = |text: &String| {
            (self.known.is_listed_by(tool, text) || !holds(Check::MembersAreListed))
                && !self.standing.acted_on.contains(text)
                // Which of them was chosen is as good as whoever chose it, unless all may be acted on.
                && (self.planner != Planner::Tainted || self.standing.left.is_none())
        };
        if !texts.is_empty() && texts.iter().all(unspent) {
            self.is_bound = true;
            self.members.extend(texts);
        } else {
            self.gaps.push(format!(
                "`{}` is not one of those that `{tool}` lists, or was chosen among them after untrusted text was read",
                argument.name
            ));
        }
    }

    fn limit(&mut self, argument: &Covered<'_>, cap: &Value) {
        let (Some(value), Some(cap)) = (number(argument.value), number(cap)) else {
            return self.one_of(argument, &[cap]);
        };
        if (0.0..=cap).contains(&value) || !holds(Check::LimitsAreCaps) {
            self.is_bound = true;
        } else {
            self.gaps.push(format!("`{}` is more than the run said it would be", argument.name));
        }
    }

    fn content(&mut self, argument: &Covered<'_>, dictated: &Value) {
        let fits = match (argument.value, dictated) {
            (Value::String(text), Value::String(template)) => fits(template, text),
            (value, dictated) => value == dictated,
        };
        // A template that is nothing but holes says nothing.
        let says_something = match dictated {
            Value::String(template) => template.replace("{}", "").contains(char::is_alphanumeric),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => true,
        };
        if fits || !holds(Check::DictatedWords) {
            self.is_bound |= says_something;
        } else {
            self.gaps.push(format!("`{}` is not the text that the run said it would be", argument.name));
        }
    }

    fn open_target(&mut self, argument: &Covered<'_>) {
        // A person who grants a tool without a target leaves it to the records of its server; what a planner leaves open is what the user wrote.
        let worst = match self.standing.grantor {
            Grantor::Person => Provenance::ToolTrusted,
            Grantor::Planner => Provenance::Trusted,
        };
        if argument.provenance > worst && holds(Check::OpenTargetsAreKnown) {
            self.gaps.push(format!("`{}` is not in the request", argument.name));
        } else if self.planner != Planner::Fresh
            && self.standing.grantor != Grantor::Person
            && holds(Check::OpenTargetsBeforeReading)
        {
            self.gaps.push(format!("the run did not say what `{}` would be before its first reading", argument.name));
        }
    }

    fn choice(&mut self, argument: &Covered<'_>, bound: &Value) {
        if argument.value != bound && holds(Check::TargetsAreBound) {
            self.gaps.push(format!("`{}` is not what the run said it would be", argument.name));
        }
    }

    /// A flag can publish what was private, and what a server lists can be recipients: only what happens anyway, unless said otherwise, needs no word.
    fn open_choice(&mut self, argument: &Covered<'_>) {
        let is_open = self.planner != Planner::Fresh && self.standing.grantor != Grantor::Person;
        let is_default = self.known.is_default(argument.name, argument.value);
        if is_open && !is_default && holds(Check::OpenChoicesBeforeReading) {
            self.gaps.push(format!("the run did not say what `{}` would be before its first reading", argument.name));
        }
    }

    fn open_limit(&mut self, argument: &Covered<'_>) {
        let is_written = number(argument.value).is_some_and(|number| self.known.is_number_of_user(number));
        if self.standing.grantor != Grantor::Person && !is_written && holds(Check::OpenLimitsAreWritten) {
            self.gaps.push(format!("the request does not say how much `{}` is", argument.name));
            return;
        }
        let is_open = self.planner != Planner::Fresh && self.standing.grantor != Grantor::Person;
        if is_open && holds(Check::OpenLimitsBeforeReading) {
            self.gaps
                .push(format!("the run did not say how much `{}` would be before its first reading", argument.name));
        }
    }
}

/// The texts and numbers of a value, and the keys that its tool does not list. Nothing if there are too many to look at.
fn texts(value: &Value, known: &dyn Known) -> Option<Vec<String>> {
    let texts = parts(value)?.into_iter().filter_map(|part| match part {
        Part::Key(key) => (!known.is_own_key(key)).then(|| key.to_owned()),
        Part::Value(value) => scalar(value),
    });
    Some(texts.collect())
}

/// Whether a bound text names what a call says: the same entity, the same word, or the word in the spelling of the server that lists it.
fn names(bound: &str, text: &str, known: &dyn Known) -> bool {
    let is_spelled = bound == text || entity::Entity::parse(text).is_some() || known.is_handle(text);
    entity::same(bound, text) && (is_spelled || !holds(Check::HandlesAreExact))
}

/// An address, a number, or a word that names something.
fn is_nameable(text: &str, known: &dyn Known) -> bool {
    entity::Entity::parse(text).is_some()
        || text.parse::<f64>().is_ok()
        || known.names_something(text)
        || !holds(Check::WordsNameSomething)
}

/// A number as such, or written as a text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

/// Longest text that fills a hole of a template, in characters.
const LONGEST_FILLING: usize = 100;

/// Whether a text is the template with each `{}` filled by something short on one line.
fn fits(template: &str, text: &str) -> bool {
    let mut fixed = template.split("{}");
    let Some(mut rest) = fixed.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut fixed = fixed.peekable();
    while let Some(next) = fixed.next() {
        let end = if fixed.peek().is_none() {
            rest.len().checked_sub(next.len()).filter(|_| rest.ends_with(next))
        } else {
            rest.find(next)
        };
        let Some(filling) = end.and_then(|end| rest.get(..end)) else { return false };
        if filling.contains('\n') || filling.chars().count() > LONGEST_FILLING {
            return false;
        }
        rest = rest.get(filling.len() + next.len()..).unwrap_or_default();
    }
    rest.is_empty()
}

#[cfg(test)]
#[path = "coverage_tests.rs"]
mod tests;
