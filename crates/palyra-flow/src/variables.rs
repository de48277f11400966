//! Variables: values that a planner passes on without having read them.
//!
//! An argument that is `$v3` or `$v3.items.0.body` stands for that value, with its type. Inside a longer text it is written `${v3.body}`. References
//! are resolved before anything else looks at a call, so that schemas, policies, approvals and tools all see the same values; the references themselves
//! are kept, because they say where a value comes from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::material::scalar;
use crate::reading::Reading;

/// A value of an argument that was taken from a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The top-level argument it stands in.
    pub argument: String,
    /// The variable.
    pub variable: u32,
    /// The path inside of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

/// Arguments with their references resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The arguments as the tool gets them.
    pub arguments: Value,
    /// What was taken from variables.
    pub references: Vec<Reference>,
    /// References that lead nowhere, as they were written.
    pub missing: Vec<String>,
}

/// The variables of a run.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'a>(pub &'a [Reading]);

impl<'a> Variables<'a> {
    /// The reading behind a variable.
    #[must_use]
    pub fn reading(self, variable: u32) -> Option<&'a Reading> {
        self.0.iter().find(|reading| reading.variable == Some(variable))
    }

    /// The value at a path.
    #[must_use]
    pub fn value(self, variable: u32, path: &[String]) -> Option<Value> {
        let reading = self.reading(variable)?;
        let whole = reading.data.clone().unwrap_or_else(|| Value::String(reading.text.clone()));
        let mut value = &whole;
        for step in path {
            value = match value {
                Value::Object(members) => members.get(step)?,
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(value.clone())
    }
}

/// Resolves the references in the arguments of a call.
#[must_use]
pub fn resolve(arguments: Value, variables: Variables<'_>) -> Resolved {
    resolve_with(arguments, variables, Missing::IsAnError)
}

/// The same for runs in which nothing may depend on what a variable holds: a path that leads nowhere inside of a variable that there is leads to nothing.
#[must_use]
pub fn resolve_blind(arguments: Value, variables: Variables<'_>) -> Resolved {
    resolve_with(arguments, variables, Missing::IsNothing)
}

/// What a path is that leads nowhere inside of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsAnError,
    IsNothing,
}

fn resolve_with(arguments: Value, variables: Variables<'_>, missing_path: Missing) -> Resolved {
    let mut resolver = Resolver { variables, missing_path, references: Vec::new(), missing: Vec::new() };
    let arguments = match arguments {
        Value::Object(members) => Value::Object(
            members.into_iter().map(|(name, value)| (name.clone(), resolver.value(&name, value))).collect(),
        ),
        other => other,
    };
    Resolved { arguments, references: resolver.references, missing: resolver.missing }
}

/// Resolves the references in a text that is shown to the person, such as an answer. Those that lead nowhere stay as they are.
#[must_use]
pub fn resolve_text(text: &str, variables: Variables<'_>) -> String {
    let missing_path = Missing::IsAnError;
    let mut resolver = Resolver { variables, missing_path, references: Vec::new(), missing: Vec::new() };
    resolver.text("", text)
}

struct Resolver<'a> {
    variables: Variables<'a>,
    missing_path: Missing,
    references: Vec<Reference>,
    missing: Vec<String>,
}

impl Resolver<'_> {
    fn find(&self, variable: u32, path: &[String]) -> Option<Value> {
        let found = self.variables.value(variable, path);
        match self.missing_path {
            Missing::IsAnError => found,
            Missing::IsNothing => found.or_else(|| self.variables.reading(variable).map(|_| Value::Null)),
        }
    }

    fn value(&mut self, argument: &str, value: Value) -> Value {
        match value {
            Value::String(text) => match parse(&text) {
                Some((variable, path)) => match self.find(variable, &path) {
                    Some(found) => {
                        self.references.push(Reference { argument: argument.to_owned(), variable, path });
                        found
                    }
                    None => {
                        self.missing.push(text.clone());
                        Value::String(text)
                    }
                },
                None => Value::String(self.text(argument, &text)),
            },
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(argument, item)).collect()),
            Value::Object(members) => {
                Value::Object(members.into_iter().map(|(name, member)| (name, self.value(argument, member))).collect())
            }
            other => other,
        }
    }

    /// Replaces `${v3.path}` inside a text.
    fn text(&mut self, argument: &str, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${v") {
            out.push_str(before);
            let inner = after.split_once('}');
            let reference = inner.and_then(|(inner, _)| parse(&format!("$v{inner}")));
            match (inner, reference) {
                (Some((inner, tail)), Some((variable, path))) => {
                    match self.find(variable, &path) {
                        Some(found) => {
                            out.push_str(&scalar(&found).unwrap_or_else(|| found.to_string()));
                            self.references.push(Reference { argument: argument.to_owned(), variable, path });
                        }
                        None => {
                            out.push_str(&format!("${{v{inner}}}"));
                            self.missing.push(format!("${{v{inner}}}"));
                        }
                    }
                    rest = tail;
                }
                _ => {
                    out.push_str("${v");
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// Reads `$v3` or `$v3.items.0.body`.
pub(crate) fn parse(text: &str) -> Option<(u32, Vec<String>)> {
    let mut steps = text.strip_prefix("$v")?.split('.');
    let variable = steps.next().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    let path: Vec<String> = steps.map(str::to_owned).collect();
    let plain = |step: &String| {
        !step.is_empty() && !step.contains(|letter: char| letter.is_whitespace() || "{}$".contains(letter))
    };
    path.iter().all(plain).then_some((variable, path))
}

/// Reads a reference as a model writes it.
impl Reference {
    /// `$v3.items.0` as a reference that stands in no argument.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text.trim();
        let bare = bare.strip_prefix("${").and_then(|inner| inner.strip_suffix('}')).map(|inner| format!("${inner}"));
        let (variable, path) = parse(bare.as_deref().unwrap_or_else(|| text.trim()))?;
        Some(Self { argument: String::new(), variable, path })
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::{Confidentiality, Integrity, Label, OutputClass};
    use serde_json::json;

    use super::*;
    use crate::reading::SourceNaming;

    fn readings() -> Vec<Reading> {
        let label = Label::new(Integrity::Untrusted, Confidentiality::Private);
        vec![Reading {
            call_id: "t1c1".to_owned(),
            tool: "mcp.mail.read".to_owned(),
            server: Some("mail".to_owned()),
            class: OutputClass::whole(&label),
            label,
            source: SourceNaming::ChosenOtherwise,
            text: String::new(),
            data: Some(json!({"items": [{"body": "hello", "n": 3}]})),
            suspicions: Vec::new(),
            variable: Some(1),
            given: false,
        }]
    }

    #[test]
    fn references_keep_their_type_and_are_remembered() {
        let readings = readings();
        let given = json!({"count": "$v1.items.0.n", "text": "They wrote: ${v1.items.0.body}!", "all": ["$v1.items"], "plain": "$5"});
        let resolved = resolve(given, Variables(&readings));
        assert_eq!(
            resolved.arguments,
            json!({"count": 3, "text": "They wrote: hello!", "all": [[{"body": "hello", "n": 3}]], "plain": "$5"})
        );
        let mut names: Vec<&str> = resolved.references.iter().map(|reference| reference.argument.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["all", "count", "text"]);
        assert!(resolved.missing.is_empty());
    }

    #[test]
    fn what_a_variable_holds_does_not_show_in_what_a_blind_reference_leads_to() {
        let readings = readings();
        let given = json!({"a": "$v1.nothing.0", "b": "x ${v1.nothing} y"});
        let resolved = resolve_blind(given.clone(), Variables(&readings));
        assert!(resolved.missing.is_empty());
        assert_eq!((resolved.arguments["a"].clone(), resolved.references.len()), (Value::Null, 2));
        assert_eq!(
            resolve_blind(json!({"a": "$v9"}), Variables(&readings)).missing,
            ["$v9"],
            "there is no such variable"
        );
    }

    #[test]
    fn references_that_lead_nowhere_are_named() {
        let readings = readings();
        let resolved = resolve(json!({"a": "$v9", "b": "x ${v1.nothing} y ${v"}), Variables(&readings));
        assert_eq!(resolved.missing, ["$v9", "${v1.nothing}"]);
        assert_eq!(resolved.arguments, json!({"a": "$v9", "b": "x ${v1.nothing} y ${v"}));
    }

    #[test]
    fn an_answer_shows_what_the_planner_never_saw() {
        let readings = readings();
        assert_eq!(resolve_text("It says ${v1.items.0.body}.", Variables(&readings)), "It says hello.");
        assert_eq!(Reference::parse("$v1.items").map(|reference| reference.path), Some(vec!["items".to_owned()]));
        assert_eq!(Reference::parse("${v1}").map(|reference| reference.variable), Some(1));
        assert_eq!(Reference::parse("v1"), None);
    }
}
