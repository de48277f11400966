//! What surrounds decisions: lint, test cases, diff, simulation, explanation.

use palyra_common::{ToStableError as _, ToolVerdict};
use palyra_policy::{
    Asking, Change, KnownEntities, LintRule, Outcome, PastDecision, PolicySet, diff, lint, run_test_text, simulate,
};

use crate::support::{execute, facts, only, read, with};

fn rules(text: &str) -> Vec<LintRule> {
    let known = KnownEntities::from([("Tool".to_owned(), ["palyra.fs.read".to_owned()].into())]);
    lint(&only(text).unwrap(), &known).unwrap().into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn the_linter_finds_what_is_not_meant() {
    let why = "@reason_person(\"a\") @reason_model(\"b\")";
    assert_eq!(rules(&format!("{why} @id(\"a\") permit (principal, action, resource);")), [LintRule::OverBroadPermit]);
    let missing = rules("@id(\"a\") permit (principal, action == Action::\"tool.read\", resource);");
    assert_eq!(missing, [LintRule::MissingReason, LintRule::MissingReason]);
    let forbid = format!("{why} @approval(\"required\") @id(\"a\") forbid (principal, action, resource);");
    assert_eq!(rules(&forbid), [LintRule::ApprovalOnForbid]);
    let waiver = format!(
        "{why} @approval(\"waived\") @id(\"a\") permit (principal, action == Action::\"tool.read\", resource);"
    );
    assert_eq!(rules(&waiver), [LintRule::UnconditionalWaiver]);
    let unused = format!(
        "{why} @id(\"a\") permit (principal, action == Action::\"tool.compute\", resource == Tool::\"palyra.fs.raed\");"
    );
    assert_eq!(rules(&unused), [LintRule::UnusedEntity]);
    assert!(rules(&unused.replace("raed", "read")).is_empty());
    let never = format!("{why} @id(\"a\") permit (principal is User, action == Action::\"tool.read\", resource);");
    assert_eq!(rules(&never), [LintRule::NeverApplies]);
    let placeholder =
        "@reason_person(\"{credential}\") @reason_model(\"b\") @id(\"a\") forbid (principal, action, resource);";
    assert_eq!(rules(placeholder), [LintRule::UnknownPlaceholder]);
    let template = format!("{why} @id(\"a\") permit (principal == ?principal, action, resource);");
    assert_eq!(rules(&template), [LintRule::UnusedTemplate]);
    let hopeful = format!(
        "{why} @id(\"a\") permit (principal, action == Action::\"tool.execute\", resource) when {{ context.signals.kinds.isEmpty() }};"
    );
    assert_eq!(rules(&hopeful), [LintRule::PermitBySignals], "the absence of a warning permits nothing");
    assert!(rules(&hopeful.replace("permit", "forbid")).is_empty());
    let deceptive = format!(
        "{why} @id(\"a\") forbid (principal, action, resource) when {{ context.now == 1 && resource == Tool::\"p\u{430}lyra\" }};"
    );
    let deceptive = deceptive.replace("action,", "action == Action::\"tool.compute\",");
    assert!(rules(&deceptive).contains(&LintRule::DeceptiveText));
}

const CASES: &str = "[request]
action = 'tool.read'
principal.run = { run = 'r', session = 's', agent = 'a', user = 'me' }
resource.path = { name = 'a', location = 'inside_workspace' }
[request.context.effect]
tool = { name = 'palyra.fs.read' }
scope = 'workspace_read'
risk = 'low'
mode = 'open'
labels = { integrity = 'user', confidentiality = 'public' }
asking = 'not_listed'
consequence = 'contained'
envelope = 'inside'
now = 0
";

#[test]
fn cases_pass_fail_and_are_refused() {
    let set = PolicySet::shipped().unwrap();
    let run = |cases: &str| run_test_text(&set, "own.policy-test.toml", &format!("{CASES}{cases}"));

    let passed = run("[[case]]\nname = 'a'\nexpect = 'permit'\npolicies = ['workspace.read']\n").unwrap();
    assert!(passed.passed() && passed.cases == 1);

    let failed = run("[[case]]\nname = 'a'\nexpect = 'permit'\n[[case]]\nname = 'b'\nexpect = 'deny'\n").unwrap();
    let [failure] = &failed.failures[..] else { panic!("{failed:?}") };
    assert_eq!((failure.case.as_str(), failure.difference.as_str()), ("b", "expected deny, got permit"));
    assert_eq!(failure.at.line, 18);

    let other = run("[[case]]\nname = 'a'\nexpect = 'permit'\npolicies = ['workspace.write']\n").unwrap();
    assert_eq!(other.failures[0].difference, "expected the policies workspace.write, got workspace.read");
    let reason = run("[[case]]\nname = 'a'\nexpect = 'permit'\nperson = 'because'\n").unwrap();
    assert!(reason.failures[0].difference.starts_with("expected the reason `because`"));

    for bad in [
        "[[case]]\nname = 'a'\nexpect = 'maybe'\n",
        "[[case]]\nname = 'a'\nexpect = 'permit'\nrequest.colour = 'red'\n",
        "[[case]]\nname = 'a'\n",
        "[[case]\n",
        "",
    ] {
        assert_eq!(run(bad).unwrap_err().to_stable().code, "policy_test_malformed", "{bad}");
    }
    let faulty = format!("policies = 'permit ('\n{CASES}[[case]]\nname = 'a'\nexpect = 'permit'\n");
    assert_eq!(run_test_text(&set, "x", &faulty).unwrap_err().to_stable().code, "policy_malformed");
}

#[test]
fn a_diff_sees_meaning_and_not_layout() {
    let before = only(
        "@id(\"a\") permit (principal, action, resource) when { context.now > 1 };
        @id(\"b\") forbid (principal, action, resource);",
    )
    .unwrap();
    let same = only(
        "// said differently\n@id(\"a\")\npermit (principal, action, resource)\nwhen { context.now > 1 };
        @id(\"b\") forbid (principal,action,resource);",
    )
    .unwrap();
    assert!(diff(&before, &same).unwrap().is_empty());
    let after = only(
        "@id(\"a\") permit (principal, action, resource) when { context.now > 2 };
        @id(\"c\") permit (principal, action, resource);",
    )
    .unwrap();
    let difference = diff(&before, &after).unwrap();
    let [Change::Changed { .. }, Change::Removed { .. }, Change::Added { .. }] = &difference.changes[..] else {
        panic!("{difference}")
    };
    assert!(difference.changes.iter().all(Change::may_widen));
    assert!(difference.to_string().contains("removed own.b from own.cedar:2 (may widen)"), "{difference}");
    let narrowed = diff(&before, &with("").unwrap()).unwrap().changes;
    assert!(narrowed.iter().any(|change| change.id() == "own.a" && !change.may_widen()));
    let annotated = only(
        "@approval(\"required\") @id(\"a\") permit (principal, action, resource) when { context.now > 1 };
        @id(\"b\") forbid (principal, action, resource);",
    )
    .unwrap();
    assert_eq!(diff(&before, &annotated).unwrap().changes.len(), 1, "an annotation is part of the meaning");
}

#[test]
fn a_simulation_lists_what_would_change() {
    let past = [(read(), ToolVerdict::Permit), (execute(), ToolVerdict::Deny)].map(|(request, verdict)| PastDecision {
        reference: request.action.to_string(),
        requests: vec![request],
        verdict,
    });
    assert!(simulate(past.clone(), &PolicySet::shipped().unwrap()).changed.is_empty());
    let proposed = with(
        "@id(\"run\") permit (principal, action == Action::\"tool.execute\", resource);
        @id(\"no\") forbid (principal, action == Action::\"tool.read\", resource);",
    )
    .unwrap();
    let simulation = simulate(past, &proposed);
    assert_eq!(simulation.considered, 2);
    let found: Vec<_> =
        simulation.changed.iter().map(|changed| (changed.reference.as_str(), changed.widens())).collect();
    assert_eq!(found, [("tool.read", false), ("tool.execute", true)]);
}

#[test]
fn an_explanation_shows_every_policy_that_concerns_the_action() {
    let set = PolicySet::shipped().unwrap();
    let mut request = read();
    facts(&mut request).asking = Asking::AskBefore;
    let explanation = set.explain(&request);
    assert_eq!(explanation.decision, set.decide(&request));
    let applied: Vec<&str> = explanation
        .policies
        .iter()
        .filter(|policy| policy.outcome == Outcome::Applies)
        .map(|policy| policy.id.as_str())
        .collect();
    assert_eq!(applied, ["asking.ask_before", "workspace.read"]);
    let ids: Vec<&str> = explanation.policies.iter().map(|policy| policy.id.as_str()).collect();
    assert!(ids.contains(&"sinks.destination") && !ids.contains(&"workspace.write"), "{ids:?}");
    request.action = palyra_policy::ActionKind::Execute;
    assert!(set.explain(&request).refused.is_some(), "a request that does not fit is said to");
}
