//! What a run is meant to do, one line per effect, and what became of a planner's statement of it.
//!
//! INVARIANT: names and values were chosen by a model. They are printed so that they can neither command the terminal nor pass for words of Palyra.

use palyra_client::api::IntentView;
use palyra_common::ToolResult;
use serde_json::Value;

use super::calls;
use super::evidence;
use super::text::shortened;

/// The tool by which a planner states what it means to do.
const STATEMENT: &str = "palyra.intent.declare";
/// Most characters of a value that are shown.
const VALUE: usize = 200;

/// What a run is meant to do. Whatever else it tries outside the workspace after its first reading is asked about first.
pub(crate) fn lines(intents: &[IntentView]) -> Vec<String> {
    if intents.is_empty() {
        return vec!["intends: nothing outside the workspace".to_owned()];
    }
    intents.iter().map(|intent| format!("intends: {}", effect(intent))).collect()
}

/// The effects that a call states, if it is a statement of any.
pub(crate) fn stated(tool: &str, arguments: &Value) -> Option<Vec<IntentView>> {
    let effects = arguments.get("effects").filter(|_| tool == STATEMENT)?;
    let mut intents: Vec<IntentView> = serde_json::from_value(effects.clone()).ok()?;
    for intent in intents.iter_mut().filter(|intent| intent.times.is_none() && !names_a_listing(intent)) {
        // The tool's default: once for each destination.
        intent.times = Some(u32::try_from(intent.destinations.len()).unwrap_or(u32::MAX).max(1));
    }
    Some(intents)
}

/// What a person who follows a run sees of a statement: the effects, and why they do not count if they do not.
pub(crate) fn outcome(intents: &[IntentView], result: &ToolResult) -> Vec<String> {
    if result.ok {
        return lines(intents);
    }
    let mut lines: Vec<String> = lines(intents).into_iter().map(|line| format!("✗ {line}")).collect();
    lines.push(format!("  {}", calls::outcome(result)));
    lines
}

/// `mcp.mail.send to ada@example.org, once`.
fn effect(intent: &IntentView) -> String {
    let mut line = shortened(&intent.tool, 100);
    let destinations: Vec<String> = intent.destinations.iter().map(|named| evidence::cell(named, VALUE)).collect();
    if !destinations.is_empty() {
        line.push_str(&format!(" to {}", destinations.join(", ")));
    }
    let arguments: Vec<String> = intent.arguments.iter().map(|(name, value)| argument(name, value)).collect();
    if !arguments.is_empty() {
        line.push_str(&format!(" with {}", arguments.join(", ")));
    }
    if destinations.is_empty() && arguments.is_empty() {
        line.push_str(" with any values");
    }
    line.push_str(&match intent.times {
        None if names_a_listing(intent) => String::new(),
        None => ", any number of times".to_owned(),
        Some(0) => ", done".to_owned(),
        Some(1) => ", once".to_owned(),
        Some(times) => format!(", {times} times"),
    });
    let from: Vec<String> = intent.from.iter().map(ToString::to_string).collect();
    if !from.is_empty() {
        line.push_str(&format!(", may carry data of {}", from.join(", ")));
    }
    line
}

fn argument(name: &str, value: &Value) -> String {
    let name = shortened(name, 40);
    if let Some(tool) = listing(value) {
        return format!("{name} = any that {} lists", evidence::cell(tool, 100));
    }
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("{name} = {}", evidence::cell(&value, VALUE))
}

/// The tool whose listing a value stands for.
fn listing(value: &Value) -> Option<&str> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get("each")?.as_str()
}

fn names_a_listing(intent: &IntentView) -> bool {
    intent.arguments.values().any(|value| listing(value).is_some())
}

#[cfg(test)]
mod tests {
    use palyra_common::{ErrorCategory, Label, StableErrorEnvelope};
    use serde_json::json;

    use super::*;

    fn of(effects: &Value) -> Vec<IntentView> {
        stated(STATEMENT, &json!({ "effects": effects })).unwrap()
    }

    fn result(error: Option<StableErrorEnvelope>) -> ToolResult {
        ToolResult {
            call_id: "t1c1".to_owned(),
            tool: STATEMENT.to_owned(),
            ok: error.is_none(),
            content: "noted: mcp.mail.send".to_owned(),
            truncated: false,
            artifact: None,
            error,
            label: Label::system(),
        }
    }

    #[test]
    fn each_effect_is_one_line() {
        let intents = of(&json!([
            { "tool": "mcp.mail.send", "destinations": ["ada@example.org"] },
            { "tool": "mcp.mail.send", "destinations": ["ada@example.org", "b» c\u{200b}"], "from": ["mcp.calendar", "workspace"] },
            { "tool": "mcp.bank.pay", "destinations": ["GB29"], "arguments": { "amount": 50, "subject": "the rent" }, "times": 3 },
            { "tool": "mcp.desk.close_ticket", "arguments": { "id": { "each": "mcp.desk.list_tickets" } } },
            { "tool": "mcp.chat.post\u{1b}[2J" },
        ]));
        assert_eq!(
            lines(&intents),
            [
                "intends: mcp.mail.send to ada@example.org, once",
                "intends: mcp.mail.send to ada@example.org, «b› c\u{fffd}», 2 times, may carry data of workspace, mcp.calendar",
                "intends: mcp.bank.pay to GB29 with amount = 50, subject = «the rent», 3 times",
                "intends: mcp.desk.close_ticket with id = any that mcp.desk.list_tickets lists",
                "intends: mcp.chat.post\u{fffd}[2J with any values, once",
            ]
        );
        let granted = IntentView { times: None, ..intents[0].clone() };
        assert_eq!(lines(&[granted]), ["intends: mcp.mail.send to ada@example.org, any number of times"]);
        let spent = IntentView { times: Some(0), ..intents[0].clone() };
        assert_eq!(lines(&[spent]), ["intends: mcp.mail.send to ada@example.org, done"]);
        assert_eq!(lines(&[]), ["intends: nothing outside the workspace"]);
    }

    #[test]
    fn a_refused_statement_says_why() {
        let intents = of(&json!([{ "tool": "mcp.mail.send", "destinations": ["eve@example.org"] }]));
        assert_eq!(outcome(&intents, &result(None)), ["intends: mcp.mail.send to eve@example.org, once"]);
        let why = "mcp.mail.send: `eve@example.org` is not in the request";
        let refused = StableErrorEnvelope::new("denied", ErrorCategory::Policy, why);
        assert_eq!(
            outcome(&intents, &result(Some(refused))),
            [
                "✗ intends: mcp.mail.send to eve@example.org, once",
                "  refused: mcp.mail.send: `eve@example.org` is not in the request",
            ]
        );
    }

    #[test]
    fn no_other_call_is_a_statement() {
        let arguments = json!({ "effects": [{ "tool": "mcp.mail.send" }] });
        assert!(stated(STATEMENT, &arguments).is_some());
        assert!(stated("mcp.paint.blur", &arguments).is_none());
        assert!(stated(STATEMENT, &json!({ "effects": "none" })).is_none());
        assert!(stated(STATEMENT, &Value::Null).is_none());
    }
}
