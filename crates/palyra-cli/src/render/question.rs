//! A question before an effect, as it is put to a person: what, how bad, why, which values steer it and who chose them.
//!
//! What can be allowed for longer than once is never shortened here: a person allows what they were shown.

use palyra_client::api::ApprovalView;
use palyra_common::{ApprovalEvidence, ApprovalId, Risk, RunId, ToolApprovalRequest};
use serde_json::Value;

use super::evidence::{self, Extent};
use super::text::{shortened, visible};
use super::{calls, intents};
use crate::console::{Console, Style};

/// Where the name of a tool would stand in a question about files that take effect later.
const CHANGES: &str = "palyra.changes";
/// Of such a question, how many files are shown with it, how many lines of each, and how much of a line.
const FILES: usize = 8;
const LINES: usize = 16;
const WIDTH: usize = 200;

/// A question that waits, wherever it was learnt of.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) approval_id: ApprovalId,
    /// The run that waits, if it is one.
    pub(crate) run_id: Option<RunId>,
    /// The client that asks in its own words, if it is one.
    pub(crate) asked_by: Option<String>,
    pub(crate) risk: Risk,
    pub(crate) summary: String,
    pub(crate) reason: String,
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Option<Value>,
    pub(crate) evidence: Vec<ApprovalEvidence>,
    pub(crate) offer: Option<String>,
}

impl Question {
    /// A question from a run's tape.
    pub(crate) fn on_tape(run_id: RunId, request: ToolApprovalRequest) -> Self {
        Self {
            approval_id: request.approval_id,
            run_id: Some(run_id),
            asked_by: None,
            risk: request.risk,
            summary: request.summary,
            reason: request.reason,
            tool: request.tool,
            arguments: request.arguments,
            evidence: request.evidence,
            offer: request.offer,
        }
    }
}

impl From<ApprovalView> for Question {
    fn from(view: ApprovalView) -> Self {
        Self {
            approval_id: view.approval_id,
            run_id: view.run_id,
            asked_by: view.asked_by,
            risk: view.risk,
            summary: view.summary,
            reason: view.reason,
            tool: view.tool,
            arguments: view.arguments,
            evidence: view.evidence,
            offer: view.offer,
        }
    }
}

/// The question itself, line by line.
pub(crate) fn lines(question: &Question, console: &Console) -> Vec<String> {
    let fit = |line: String| console.fit_prompt(&line);
    let mut lines = vec![fit(console.styled(Style::Ask, &format!("? {}", shortened(&question.summary, 300))))];
    if let Some(client) = &question.asked_by {
        lines.push(fit(format!("  {}", in_its_own_words(client))));
    }
    if let (Some(tool), Some(arguments)) = (&question.tool, &question.arguments) {
        match step(tool, arguments) {
            Some(texts) if tool == CHANGES => lines.extend(differences(&texts)),
            _ => lines.extend(about(tool, arguments).into_iter().map(|line| fit(format!("  {line}")))),
        }
    }
    lines.push(fit(format!("  {} risk; {}", question.risk, shortened(&question.reason, 300))));
    let evidence = evidence::lines(&question.evidence, Extent::Glance).into_iter();
    lines.extend(evidence.map(|line| fit(format!("  {line}"))));
    if let Some(offer) = &question.offer {
        lines.push(fit(format!("  to stop being asked, allow: {}", agreed(offer))));
    }
    lines
}

/// What is asked about: the texts of a step, the effects that a run states, or the call in one line.
fn about(tool: &str, arguments: &Value) -> Vec<String> {
    if let Some(texts) = step(tool, arguments) {
        let line = |(name, text): &(&str, &str)| format!("{}: {}", shortened(name, 100), shortened(text, 300));
        return texts.iter().map(line).collect();
    }
    match intents::stated(tool, arguments) {
        Some(intents) => intents::lines(&intents),
        None => vec![format!("{} {}", shortened(tool, 100), calls::subject(arguments)).trim_end().to_owned()],
    }
}

/// The beginning of each difference, and how much of it is below: a person who allows a change without having seen it has to know that.
fn differences(texts: &[(&str, &str)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, difference) in texts.iter().take(FILES) {
        lines.push(format!("  {}:", shortened(path, 100)));
        let all: Vec<String> = visible(difference).lines().map(str::to_owned).collect();
        lines.extend(all.iter().take(LINES).map(|line| format!("    {}", shortened(line, WIDTH))));
        let cut = all.iter().take(LINES).filter(|line| line.chars().count() > WIDTH).count();
        match (all.len().saturating_sub(LINES), cut) {
            (0, 0) => {}
            (0, cut) => lines.push(format!("    … {cut} of these lines are longer: [m]ore shows them")),
            (more, _) => lines.push(format!("    … {more} more lines that are not shown here: [m]ore shows them")),
        }
    }
    if let Some(more) = texts.len().checked_sub(FILES).filter(|more| *more > 0) {
        lines.push(format!("  … {more} more files that are not shown here: [m]ore shows them"));
    }
    lines
}

/// The keys, ending where the answer is typed.
pub(crate) fn choices(question: &Question) -> &'static str {
    match question.offer {
        // How far each reaches is said here, because the pattern does not say it.
        Some(_) => {
            "  [a]llow once, [s] in this session, [t] for an hour in all your sessions, [d]eny (d because …), [m]ore > "
        }
        None => "  [a]llow once, [d]eny (d because …), [m]ore > ",
    }
}

/// Everything about the call, unshortened: this is what a person agrees to.
pub(crate) fn more(question: &Question) -> Vec<String> {
    let mut lines = vec![match question.run_id {
        Some(run_id) => format!("  approval {}, run {run_id}", question.approval_id),
        None => format!("  approval {}", question.approval_id),
    }];
    lines.push(format!("  why: {}", visible(&question.reason).replace('\n', " ")));
    lines.extend(evidence::lines(&question.evidence, Extent::Whole).into_iter().map(|line| format!("  {line}")));
    match about_step(question.tool.as_deref(), question.arguments.as_ref()) {
        Some(whole) => lines.extend(whole.into_iter().map(|line| format!("  {line}"))),
        None => {
            lines.extend(question.tool.iter().map(|tool| format!("  tool {}", shortened(tool, 200))));
            lines.extend(arguments(question.arguments.as_ref()).into_iter().map(|line| format!("  {line}")));
        }
    }
    if let Some(offer) = &question.offer {
        lines.push(format!("  can be allowed for longer: {}", agreed(offer)));
    }
    lines
}

/// The texts that a question about a step of the run itself is about. There is no call: a hook wants a person to agree that the run begins, or that an answer is
/// delivered, or another in its place; or the run changed files that take effect later.
fn step<'a>(tool: &'a str, arguments: &'a Value) -> Option<Vec<(&'a str, &'a str)>> {
    let named: &[(&str, &str)] = match tool {
        "palyra.run" => &[("the task", "prompt")],
        CHANGES => {
            let text = |file: &'a Value| Some((file.get("path")?.as_str()?, file.get("difference")?.as_str()?));
            return Some(arguments.get("files")?.as_array()?.iter().filter_map(text).collect());
        }
        "palyra.delivery" => &[("the answer", "answer"), ("the other text", "proposed")],
        _ => return None,
    };
    let text = |(name, member): &(&'static str, &str)| -> Option<(&'a str, &'a str)> {
        Some((*name, arguments.get(member)?.as_str()?))
    };
    Some(named.iter().filter_map(text).collect())
}

/// The same, whole: each text below its name.
pub(crate) fn about_step(tool: Option<&str>, arguments: Option<&Value>) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for (name, text) in step(tool?, arguments?)? {
        lines.push(format!("{}:", visible(name)));
        lines.extend(visible(text).lines().map(|line| format!("  {line}")));
    }
    Some(lines)
}

/// Arguments as indented JSON.
pub(crate) fn arguments(arguments: Option<&Value>) -> Vec<String> {
    let Some(arguments) = arguments else { return vec!["(no arguments)".to_owned()] };
    let pretty = serde_json::to_string_pretty(arguments).unwrap_or_else(|_| arguments.to_string());
    visible(&pretty).lines().map(str::to_owned).collect()
}

/// Whose words a question is in, when they are not Palyra's.
pub(crate) fn in_its_own_words(client: &str) -> String {
    format!("asked by {} in its own words, which are not verified", shortened(client, 120))
}

/// What is agreed to, whole and on one line.
pub(crate) fn agreed(sentence: &str) -> String {
    visible(sentence).replace(['\n', '\t'], " ").trim().to_owned()
}

/// What is said where nobody can type an answer: the question, and a command to copy for each thing that can be done about it.
pub(crate) fn elsewhere(question: &Question) -> Vec<String> {
    let id = question.approval_id;
    let mut lines = vec![format!("needs an answer: {}", shortened(&question.summary, 300))];
    if let (Some(tool), Some(arguments)) = (&question.tool, &question.arguments)
        && let Some(intents) = intents::stated(tool, arguments)
    {
        lines.extend(intents::lines(&intents).into_iter().map(|line| format!("  {line}")));
    }
    lines.push(format!("  {} risk; {}", question.risk, shortened(&question.reason, 300)));
    lines.extend(evidence::lines(&question.evidence, Extent::Glance).into_iter().map(|line| format!("  {line}")));
    let mut next = |what: &str, command: String| lines.push(format!("  {what:<8}  {command}"));
    next("details", format!("palyra approvals show {id}"));
    next("allow", format!("palyra approvals decide {id} allow"));
    next("deny", format!("palyra approvals decide {id} deny"));
    if let Some(run_id) = question.run_id {
        next("go on", format!("palyra runs attach {run_id}"));
        next("give up", format!("palyra runs abort {run_id}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use palyra_common::{Provenance, SinkKind};
    use serde_json::json;

    use super::*;

    fn question() -> Question {
        Question {
            approval_id: ApprovalId::from_u128(1),
            run_id: Some(RunId::from_u128(9)),
            asked_by: None,
            risk: Risk::High,
            summary: "send money to US133".to_owned(),
            reason: "untrusted text chose the recipient".to_owned(),
            tool: Some("mcp.bank.send_money".to_owned()),
            arguments: Some(json!({ "recipient": "US133", "subject": "a\u{1b}[8m\u{200b}" })),
            evidence: vec![ApprovalEvidence {
                argument: "recipient".to_owned(),
                sink: SinkKind::Destination,
                value: "US133".to_owned(),
                provenance: Provenance::Untrusted,
                source: Some("the result of mcp.bank.read_file (t1c1)".to_owned()),
                sentence: Some("IBAN: US133".to_owned()),
            }],
            offer: Some("mcp.bank.send_money `US133`".to_owned()),
        }
    }

    #[test]
    fn a_question_names_value_source_and_sentence() {
        assert_eq!(
            lines(&question(), &Console::for_tests()),
            [
                "? send money to US133",
                "  mcp.bank.send_money",
                "  high risk; untrusted text chose the recipient",
                "  recipient = US133",
                "    found in the result of mcp.bank.read_file (t1c1): «IBAN: US133»",
                "  to stop being asked, allow: mcp.bank.send_money `US133`",
            ]
        );
        assert!(choices(&question()).contains("[s] in this session, [t] for an hour in all your sessions"));
    }

    #[test]
    fn no_question_needs_a_glossary() {
        let asked = question();
        let every_origin: Vec<ApprovalEvidence> = Provenance::ALL
            .iter()
            .flat_map(|provenance| SinkKind::ALL.iter().map(move |sink| (*provenance, *sink)))
            .map(|(provenance, sink)| ApprovalEvidence { provenance, sink, source: None, ..asked.evidence[0].clone() })
            .collect();
        let asked = Question { evidence: every_origin, ..asked };
        let mut said = lines(&asked, &Console::for_tests());
        said.extend(more(&asked));
        said.extend(elsewhere(&asked));
        said.push(choices(&asked).to_owned());
        for jargon in ["mandate", "sink", "provenance", "envelope", "label", "integrity", "clearance"] {
            assert!(said.iter().all(|line| !line.to_lowercase().contains(jargon)), "{jargon}: {said:#?}");
        }
    }

    #[test]
    fn without_an_offer_nothing_lasts() {
        let plain = Question { offer: None, evidence: Vec::new(), ..question() };
        assert_eq!(choices(&plain), "  [a]llow once, [d]eny (d because …), [m]ore > ");
        assert_eq!(lines(&plain, &Console::for_tests()).len(), 3);
    }

    #[test]
    fn a_hook_that_proposes_another_text_has_both_shown() {
        let asked = Question {
            summary: "deliver another text than the answer; refusing delivers the answer as it is".to_owned(),
            reason: "hook redact: it names a customer".to_owned(),
            risk: Risk::Medium,
            tool: Some("palyra.delivery".to_owned()),
            arguments: Some(json!({ "answer": "Ada owes\n10", "proposed": "A customer owes 10" })),
            evidence: Vec::new(),
            offer: None,
            ..question()
        };
        assert_eq!(
            lines(&asked, &Console::for_tests()),
            [
                "? deliver another text than the answer; refusing delivers the answer as it is",
                "  the answer: Ada owes 10",
                "  the other text: A customer owes 10",
                "  medium risk; hook redact: it names a customer",
            ]
        );
        let whole = more(&asked).join("\n");
        assert!(whole.contains("  the answer:\n    Ada owes\n    10\n  the other text:\n    A customer"), "{whole}");
        let begins =
            Question { tool: Some("palyra.run".to_owned()), arguments: Some(json!({ "prompt": "tidy up" })), ..asked };
        assert_eq!(lines(&begins, &Console::for_tests())[1], "  the task: tidy up");
    }

    #[test]
    fn a_question_about_what_a_run_will_do_lists_all_of_it() {
        let effects = json!([
            { "tool": "mcp.mail.send", "destinations": ["ada@example.org"] },
            { "tool": "mcp.bank.pay", "destinations": ["GB29"], "arguments": { "amount": 50 } },
        ]);
        let asked = Question {
            summary: "accept what the run will do: mcp.mail.send, mcp.bank.pay".to_owned(),
            reason: "you want to be asked before anything is paid".to_owned(),
            risk: Risk::Low,
            tool: Some("palyra.intent.declare".to_owned()),
            arguments: Some(json!({ "effects": effects })),
            evidence: Vec::new(),
            offer: None,
            ..question()
        };
        let intended = [
            "  intends: mcp.mail.send to ada@example.org, once",
            "  intends: mcp.bank.pay to GB29 with amount = 50, once",
        ];
        assert_eq!(lines(&asked, &Console::for_tests())[1..3], intended);
        assert_eq!(elsewhere(&asked)[1..3], intended);
        assert_eq!(elsewhere(&asked)[3], "  low risk; you want to be asked before anything is paid");
    }

    #[test]
    fn more_shows_all_and_a_long_offer_is_never_cut() {
        let offer = format!("mcp.bank.send_money `{}`", "x".repeat(5000));
        let long = Question { offer: Some(offer.clone()), ..question() };
        let whole = more(&long).join("\n");
        assert!(whole.contains("\"subject\": \"a\\u001b[8m\u{fffd}\""), "{whole}");
        assert!(whole.contains("decides where it goes") && whole.contains(&offer));
        assert!(lines(&long, &Console::for_tests()).join("\n").contains(&offer));
        assert!(elsewhere(&long).join("\n").contains("palyra approvals decide 0000000000"));
    }

    #[test]
    fn a_question_about_changes_counts_what_it_does_not_show() {
        let about = |files: Value| {
            let arguments = Some(json!({ "files": files }));
            let tool = Some(CHANGES.to_owned());
            lines(&Question { tool, arguments, ..question() }, &Console::for_tests()).join("\n")
        };
        let small = about(json!([{ "path": ".envrc", "difference": "@@ line 1\n+evil\n" }]));
        assert!(small.contains("  .envrc:\n    @@ line 1\n    +evil\n") && !small.contains("[m]ore"), "{small}");
        let long = about(json!([{ "path": "a", "difference": "+\n".repeat(99) + "+evil\n" }]));
        assert!(long.contains("… 84 more lines that are not shown here"), "{long}");
        let wide = about(json!([{ "path": "a", "difference": format!("+{}evil\n", " x".repeat(300)) }]));
        assert!(wide.contains("… 1 of these lines are longer"), "{wide}");
        let many: Vec<Value> = (0..20).map(|n| json!({ "path": format!("f{n}"), "difference": "+x\n" })).collect();
        assert!(about(json!(many)).contains("… 12 more files that are not shown here"));
    }
}
