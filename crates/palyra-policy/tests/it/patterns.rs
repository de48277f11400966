//! Patterns that a person agreed to: they cover exactly what they say, and no value can be more than a value.

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::{
    ApprovalId, Confidentiality, Consequence, DataOrigin, Integrity, Label, Timestamp, ToStableError as _, ToolVerdict,
};
use palyra_policy::{
    APPROVED_FILE, Argument, Asking, Envelope, ObservedCall, Origin, Pattern, PatternGrant, PatternScope, PolicyError,
    PolicySet, PolicySource, Provenance, Request, SinkKind, ValuePattern, narrowest_pattern, pattern_policy,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::{argument, execute, facts, with};

/// The policies that ask in these tests.
const ASKING: [&str; 5] = ["asking.ask_before", "sinks.clearance", "sinks.command", "sinks.destination", "own.ask"];

/// A pattern as it was recorded before patterns had more facts.
fn pattern() -> Pattern {
    Pattern {
        tool: "some.tool".into(),
        arguments: BTreeMap::new(),
        empty: BTreeSet::new(),
        content: BTreeSet::new(),
        content_up_to: Confidentiality::Public,
        workspace: None,
        method: None,
        destination: None,
        cleared: BTreeSet::new(),
        answers: BTreeSet::new(),
    }
}

fn grant(arguments: &[(&str, ValuePattern)]) -> PatternGrant {
    PatternGrant {
        id: "p1".into(),
        scope: PatternScope::Session("session1".into()),
        pattern: Pattern {
            tool: "some.tool".into(),
            arguments: arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            content: BTreeSet::from(["body".to_owned()]),
            answers: ASKING.map(str::to_owned).into(),
            ..pattern()
        },
        expires_at: None,
        approval: "01JCQ0000000000000000000AA".parse::<ApprovalId>().unwrap(),
    }
}

/// The shipped set, a permit for the tool, and the pattern.
fn agreed(grant: &PatternGrant) -> PolicySet {
    let permit =
        "@id(\"yes\") permit (principal, action == Action::\"tool.execute\", resource == Tool::\"some.tool\");";
    with(permit)
        .unwrap()
        .extended(&[PolicySource::new(APPROVED_FILE, pattern_policy(grant).unwrap())], Vec::new())
        .unwrap()
}

/// A call that is asked about unless a pattern answers.
fn asked(arguments: Vec<Argument>) -> Request {
    let mut request = execute();
    facts(&mut request).asking = Asking::AskBefore;
    facts(&mut request).arguments = arguments;
    request
}

fn valued(name: &str, sink: SinkKind, value: &str) -> Argument {
    Argument { value: Some(value.into()), ..argument(name, sink, Provenance::Untrusted) }
}

fn exact(value: &str) -> ValuePattern {
    ValuePattern::Exact(value.into())
}

#[test]
fn a_pattern_answers_the_question_it_was_agreed_for() {
    let grant = grant(&[("to", exact("bob"))]);
    let set = agreed(&grant);
    let decision = set.decide(&asked(vec![valued("to", SinkKind::Destination, "bob")]));
    assert_eq!(decision.verdict, ToolVerdict::Permit);
    assert_eq!(decision.policies, ["approved.p1", "own.yes"]);
    let said = "a person allowed some.tool `bob`, whatever `body` says (public) in this session";
    assert!(decision.person.contains(&said.to_owned()), "{decision:?}");
    assert_eq!(grant.policy_id(), "approved.p1");
}

#[test]
fn one_more_steering_argument_is_asked_about_again() {
    let set = agreed(&grant(&[("to", exact("bob"))]));
    let to = || valued("to", SinkKind::Destination, "bob");
    for (more, expected) in [
        (valued("cc", SinkKind::Destination, "bob"), ToolVerdict::NeedsApproval),
        (valued("cc", SinkKind::Destination, "eve"), ToolVerdict::NeedsApproval),
        (Argument { value: None, ..valued("cc", SinkKind::Destination, "") }, ToolVerdict::NeedsApproval),
        (valued("run", SinkKind::Command, "x"), ToolVerdict::NeedsApproval),
        (valued("file", SinkKind::Path, "x"), ToolVerdict::NeedsApproval),
        (valued("sum", SinkKind::Amount, "9999"), ToolVerdict::NeedsApproval),
        (valued("password", SinkKind::Credential, "x"), ToolVerdict::NeedsApproval),
        (valued("body", SinkKind::Content, "x"), ToolVerdict::Permit),
        (valued("subject", SinkKind::Content, "x"), ToolVerdict::NeedsApproval),
        (Argument { sink: None, ..valued("colour", SinkKind::Content, "red") }, ToolVerdict::NeedsApproval),
    ] {
        let decision = set.decide(&asked(vec![to(), more.clone()]));
        assert_eq!(decision.verdict, expected, "{} as {:?}", more.name, more.sink);
    }
    assert_eq!(set.decide(&asked(Vec::new())).verdict, ToolVerdict::NeedsApproval, "the argument itself is missing");
    let changed = set.decide(&asked(vec![valued("to", SinkKind::Destination, "bobby")]));
    assert_eq!(changed.verdict, ToolVerdict::NeedsApproval);
}

#[test]
fn a_pattern_holds_for_its_scope_tool_and_time_alone() {
    let mut grant = grant(&[("to", exact("bob"))]);
    grant.expires_at = Some(Timestamp(1_763_190_000_001));
    let call = || asked(vec![valued("to", SinkKind::Destination, "bob")]);
    let set = agreed(&grant);
    assert_eq!(set.decide(&call()).verdict, ToolVerdict::Permit);
    let mut late = call();
    facts(&mut late).now.0 += 1;
    assert_eq!(set.decide(&late).verdict, ToolVerdict::NeedsApproval, "it has ended");
    for (scope, expected) in [
        (PatternScope::Run("run1".into()), ToolVerdict::Permit),
        (PatternScope::Run("run2".into()), ToolVerdict::NeedsApproval),
        (PatternScope::Session("session2".into()), ToolVerdict::NeedsApproval),
        (PatternScope::User("me".into()), ToolVerdict::Permit),
        (PatternScope::User("you".into()), ToolVerdict::NeedsApproval),
    ] {
        grant.scope = scope;
        assert_eq!(agreed(&grant).decide(&call()).verdict, expected, "{:?}", grant.scope);
    }
    grant.scope = PatternScope::User("me".into());
    grant.pattern.tool = "other.tool".into();
    assert_eq!(agreed(&grant).decide(&call()).verdict, ToolVerdict::NeedsApproval);
}

#[test]
fn a_pattern_holds_where_it_was_agreed_and_for_its_method_alone() {
    let mut grant = grant(&[("to", exact("bob"))]);
    let call = || asked(vec![valued("to", SinkKind::Destination, "bob")]);
    for (workspace, method, expected) in [
        (Some("/w"), None, ToolVerdict::Permit),
        (Some("/w/below"), None, ToolVerdict::NeedsApproval),
        (Some("/other"), None, ToolVerdict::NeedsApproval),
        // The call does not connect at all.
        (Some("/w"), Some("GET"), ToolVerdict::NeedsApproval),
    ] {
        grant.pattern.workspace = workspace.map(Into::into);
        grant.pattern.method = method.map(Into::into);
        assert_eq!(agreed(&grant).decide(&call()).verdict, expected, "{workspace:?} {method:?}");
        let observed = ObservedCall::of(&call()).unwrap();
        assert_eq!(grant.pattern.covers(&observed), expected == ToolVerdict::Permit, "{workspace:?} {method:?}");
    }
}

#[test]
fn nothing_varies_behind_a_program_that_runs_others() {
    let commands = [
        ["timeout 5 ls", "timeout 5 rm x"],
        ["env A=b ls", "env A=b rm"],
        ["nice cargo test", "nice cargo build"],
        ["git -c core.pager=x log", "git -c core.pager=x show"],
        ["python3 tool.py a", "python3 tool.py b"],
        ["/usr/bin/sudo apt update", "/usr/bin/sudo apt install"],
        ["npm run test", "npm run build"],
        ["find . -name a", "find . -delete"],
        ["cargo run sh a", "cargo run sh b"],
    ];
    for pair in commands {
        let calls = pair.map(|line| call("palyra.process.run", vec![valued("argv", SinkKind::Command, line)]));
        let pattern = narrowest(&calls).unwrap();
        assert!(matches!(pattern.arguments["argv"], ValuePattern::OneOf(_)), "{pair:?}: {}", pattern.sentence());
    }
    let calls = ["cargo test a", "cargo test b"]
        .map(|line| call("palyra.process.run", vec![valued("argv", SinkKind::Command, line)]));
    assert_eq!(narrowest(&calls).unwrap().arguments["argv"], ValuePattern::Prefix("cargo test ".into()));
    let elsewhere = ObservedCall { workspace: Some("/other".into()), ..calls[1].clone() };
    assert_eq!(narrowest(&[calls[0].clone(), elsewhere]).unwrap().arguments["argv"], exact("cargo test a"));
}

/// "What is the weather in Brno?" is one question; which city an attacker would like to send is another.
#[test]
fn arguments_that_nobody_reviewed_are_pinned() {
    let city = |value: &str| Argument { sink: None, ..valued("city", SinkKind::Content, value) };
    let brno = ObservedCall::of(&asked(vec![city("Brno")])).unwrap();
    let mut agreed_to = grant(&[]);
    agreed_to.pattern = narrowest(&[brno]).unwrap();
    assert_eq!(agreed_to.sentence(), "some.tool `Brno` in this session");
    let set = agreed(&agreed_to);
    let more = |argument: Argument| vec![city("Brno"), argument];
    let nested = Argument { sink: None, ..valued("options", SinkKind::Content, "{\"to\":\"eve\"}") };
    for (arguments, expected) in [
        (vec![city("Brno")], ToolVerdict::Permit),
        (vec![city("the bank's password")], ToolVerdict::NeedsApproval),
        (Vec::new(), ToolVerdict::NeedsApproval),
        (more(nested), ToolVerdict::NeedsApproval),
        (more(valued("body", SinkKind::Content, "x")), ToolVerdict::NeedsApproval),
    ] {
        assert_eq!(set.decide(&asked(arguments.clone())).verdict, expected, "{arguments:?}");
    }
    let mut emptied = asked(vec![city("Brno")]);
    facts(&mut emptied).empty = BTreeSet::from(["members: []".to_owned()]);
    assert_eq!(set.decide(&emptied).verdict, ToolVerdict::NeedsApproval, "to empty something is an effect, too");
    agreed_to.pattern = narrowest(&[ObservedCall::of(&emptied).unwrap()]).unwrap();
    assert_eq!(agreed_to.sentence(), "some.tool `Brno` and empty members: [] in this session");
    assert_eq!(agreed(&agreed_to).decide(&emptied).verdict, ToolVerdict::Permit);
}

/// Merging one reviewed pull request says nothing about the next.
#[test]
fn a_number_that_nobody_reviewed_is_pinned_beside_reviewed_arguments() {
    let merge = |number: &str| {
        let number = Argument { sink: None, ..valued("pullNumber", SinkKind::Content, number) };
        asked(vec![
            valued("owner", SinkKind::Destination, "ada"),
            valued("repo", SinkKind::Destination, "site"),
            number,
        ])
    };
    let mut agreed_to = grant(&[]);
    agreed_to.pattern = narrowest(&[ObservedCall::of(&merge("120")).unwrap()]).unwrap();
    assert_eq!(agreed_to.sentence(), "some.tool with owner `ada`, pullNumber `120`, repo `site` in this session");
    let set = agreed(&agreed_to);
    assert_eq!(set.decide(&merge("120")).verdict, ToolVerdict::Permit);
    assert_eq!(set.decide(&merge("666")).verdict, ToolVerdict::NeedsApproval);
}

/// An answer is for the questions that were asked, and for the data that they were about.
#[test]
fn a_pattern_answers_no_other_question_and_clears_no_other_data() {
    let calendar = DataOrigin::Server("calendar".into());
    let carrying = |places: &[&DataOrigin]| {
        let mut request = execute();
        facts(&mut request).uncleared = places.iter().map(|place| (*place).clone()).collect();
        facts(&mut request).tool.origin = Some(Origin::Server("weather".into()));
        request
    };
    let call = carrying(&[&calendar]);
    let base = PolicySet::shipped().unwrap();
    let question = base.decide(&call);
    assert_eq!(question.asking, BTreeSet::from(["sinks.flow".to_owned()]));
    let mut grant = grant(&[]);
    grant.pattern = narrowest_pattern(&[ObservedCall::of(&call).unwrap()], question.asking).unwrap();
    assert_eq!(
        grant.sentence(),
        "some.tool, with data from the server calendar going to the server weather in this session"
    );
    let set = base.extended(&[PolicySource::new(APPROVED_FILE, pattern_policy(&grant).unwrap())], Vec::new()).unwrap();
    assert_eq!(set.decide(&call).verdict, ToolVerdict::Permit);
    assert_eq!(set.decide(&carrying(&[])).verdict, ToolVerdict::Permit, "nothing is asked");
    for other in [DataOrigin::Workspace, DataOrigin::Unknown, DataOrigin::Server("mail".into())] {
        let verdict = set.decide(&carrying(&[&calendar, &other])).verdict;
        assert_eq!(verdict, ToolVerdict::NeedsApproval, "{other}");
    }
    let mut elsewhere = call.clone();
    facts(&mut elsewhere).tool.origin = Some(Origin::Server("evil".into()));
    assert_eq!(set.decide(&elsewhere).verdict, ToolVerdict::NeedsApproval);
    let mut unmeant = call.clone();
    facts(&mut unmeant).consequence = Consequence::Consequential;
    facts(&mut unmeant).envelope = Envelope::Outside;
    let decision = set.decide(&unmeant);
    assert_eq!(decision.verdict, ToolVerdict::NeedsApproval, "no mandate was asked about");
    assert!(!decision.policies.iter().any(|id| id.starts_with("approved.")), "{decision:?}");
    grant.pattern.answers.insert("asking.outside_envelope".to_owned());
    let both = base.extended(&[PolicySource::new(APPROVED_FILE, pattern_policy(&grant).unwrap())], Vec::new()).unwrap();
    assert_eq!(both.decide(&unmeant).verdict, ToolVerdict::Permit);
}

/// Patterns that were recorded before they said what they answer are asked about again.
#[test]
fn a_pattern_without_facts_matches_nothing_beyond_them() {
    let recorded = r#"{"tool":"some.tool","arguments":{"to":{"exact":"bob"}},"content_up_to":"private"}"#;
    let mut grant = grant(&[]);
    grant.pattern = serde_json::from_str(recorded).unwrap();
    assert_eq!(serde_json::to_string(&grant.pattern).unwrap(), recorded);
    let call = || asked(vec![valued("to", SinkKind::Destination, "bob")]);
    assert_eq!(agreed(&grant).decide(&call()).verdict, ToolVerdict::NeedsApproval);
    // Even if it said what it answers, it would cover no content, no other argument and no data of others.
    grant.pattern.answers = ASKING.map(str::to_owned).into();
    assert_eq!(agreed(&grant).decide(&call()).verdict, ToolVerdict::Permit);
    for more in [valued("body", SinkKind::Content, "x"), Argument { sink: None, ..valued("n", SinkKind::Content, "1") }]
    {
        let mut wider = call();
        facts(&mut wider).arguments.push(more);
        assert_eq!(agreed(&grant).decide(&wider).verdict, ToolVerdict::NeedsApproval);
    }
    let mut carrying = call();
    facts(&mut carrying).uncleared = BTreeSet::from([DataOrigin::Workspace]);
    assert_eq!(agreed(&grant).decide(&carrying).verdict, ToolVerdict::NeedsApproval);
}

#[test]
fn what_a_sentence_cannot_show_is_not_offered() {
    for hidden in ["two\nlines", "a`b", "zero\u{200b}width", &"x".repeat(101)] {
        let argument = Argument { sink: None, ..valued("x", SinkKind::Content, hidden) };
        assert!(narrowest(&[call("some.tool", vec![argument])]).is_err(), "{hidden:?}");
        let name = Argument { sink: None, ..valued(hidden, SinkKind::Content, "x") };
        assert!(narrowest(&[call("some.tool", vec![name])]).is_err(), "{hidden:?}");
    }
    let many = (0..40).map(|n| valued(&format!("a{n}"), SinkKind::Destination, "x")).collect();
    assert!(narrowest(&[call("some.tool", many)]).is_err(), "too many to read");
}

/// Agreeing answers a question; it does not permit what no policy permits, and not what one forbids.
#[test]
fn a_pattern_grants_nothing() {
    let grant = grant(&[("to", exact("bob"))]);
    let text = pattern_policy(&grant).unwrap();
    let call = asked(vec![valued("to", SinkKind::Destination, "bob")]);
    let alone = PolicySet::shipped().unwrap().extended(&[PolicySource::new(APPROVED_FILE, text)], Vec::new()).unwrap();
    assert_eq!(alone.decide(&call).verdict, ToolVerdict::Deny);
    let mut of_a_server = call;
    facts(&mut of_a_server).tool.origin = Some(Origin::Server("some".into()));
    assert_eq!(alone.decide(&of_a_server).verdict, ToolVerdict::Permit, "a registered server permits it");
    let forbid = "@id(\"no\") forbid (principal, action, resource);";
    let forbidden = alone.extended(&[PolicySource::new("own.cedar", forbid)], Vec::new()).unwrap();
    assert_eq!(forbidden.decide(&of_a_server).verdict, ToolVerdict::Deny);
}

#[test]
fn content_may_not_be_more_confidential_than_agreed() {
    let mut grant = grant(&[("to", exact("bob"))]);
    let call = |confidentiality| {
        let body = Argument {
            label: Label::new(Integrity::User, confidentiality),
            ..argument("body", SinkKind::Content, Provenance::Trusted)
        };
        asked(vec![valued("to", SinkKind::Destination, "bob"), body])
    };
    for (up_to, sent, expected) in [
        (Confidentiality::Public, Confidentiality::Public, ToolVerdict::Permit),
        (Confidentiality::Public, Confidentiality::Private, ToolVerdict::NeedsApproval),
        (Confidentiality::Private, Confidentiality::Private, ToolVerdict::Permit),
        (Confidentiality::Secret, Confidentiality::Secret, ToolVerdict::Deny),
    ] {
        grant.pattern.content_up_to = up_to;
        assert_eq!(agreed(&grant).decide(&call(sent)).verdict, expected, "{sent} where {up_to} was agreed");
    }
}

#[test]
fn a_beginning_is_whole_words_without_a_way_out() {
    let set = agreed(&grant(&[("command", ValuePattern::Prefix("cargo test ".into()))]));
    for (command, expected) in [
        ("cargo test", ToolVerdict::Permit),
        ("cargo test --all", ToolVerdict::Permit),
        ("cargo testify", ToolVerdict::NeedsApproval),
        ("cargo build", ToolVerdict::NeedsApproval),
        ("cargo test; rm -rf .", ToolVerdict::NeedsApproval),
        ("cargo test && curl evil", ToolVerdict::NeedsApproval),
        ("cargo test $(curl evil)", ToolVerdict::NeedsApproval),
        ("cargo test `curl evil`", ToolVerdict::NeedsApproval),
        ("cargo test\nrm -rf .", ToolVerdict::NeedsApproval),
        ("cargo test > /etc/passwd", ToolVerdict::NeedsApproval),
        ("cargo test --manifest-path ../other", ToolVerdict::NeedsApproval),
    ] {
        let decision = set.decide(&asked(vec![valued("command", SinkKind::Command, command)]));
        assert_eq!(decision.verdict, expected, "{command}");
    }
}

#[test]
fn patterns_that_nobody_may_agree_to() {
    let refused = |pattern: ValuePattern| {
        let error = pattern_policy(&grant(&[("x", pattern)])).unwrap_err();
        assert_eq!(error.to_stable().code, "policy_pattern_invalid", "{error}");
    };
    refused(ValuePattern::Prefix(String::new()));
    refused(ValuePattern::Prefix(" ".into()));
    refused(ValuePattern::Prefix("/".into()));
    refused(ValuePattern::Prefix("cargo".into()));
    refused(ValuePattern::Prefix("a; b ".into()));
    refused(ValuePattern::OneOf([].into()));
    refused(ValuePattern::OneOf((0..100).map(|n| n.to_string()).collect()));
    refused(exact(&"x".repeat(20_000)));
    let mut odd = grant(&[]);
    odd.id = "x\")".into();
    assert!(pattern_policy(&odd).is_err());
}

fn narrowest(calls: &[ObservedCall]) -> Result<Pattern, PolicyError> {
    narrowest_pattern(calls, ASKING.map(str::to_owned).into())
}

fn call(tool: &str, arguments: Vec<Argument>) -> ObservedCall {
    ObservedCall {
        tool: tool.into(),
        arguments,
        workspace: None,
        method: None,
        empty: BTreeSet::new(),
        destination: None,
        uncleared: BTreeSet::new(),
    }
}

fn commands(commands: &[&str]) -> ValuePattern {
    let calls: Vec<ObservedCall> =
        commands.iter().map(|command| call("run", vec![valued("command", SinkKind::Command, command)])).collect();
    let pattern = narrowest(&calls).unwrap();
    assert!(calls.iter().all(|call| pattern.covers(call)), "{pattern:?}");
    pattern.arguments["command"].clone()
}

#[test]
fn the_narrowest_pattern() {
    let prefix = |text: &str| ValuePattern::Prefix(text.into());
    let one_of = |values: &[&str]| ValuePattern::OneOf(values.iter().map(|value| (*value).to_owned()).collect());
    assert_eq!(commands(&["cargo test"]), exact("cargo test"));
    assert_eq!(commands(&["cargo test -p a", "cargo test -p b", "cargo test"]), prefix("cargo test "));
    assert_eq!(commands(&["cargo test -p a", "cargo test -p b"]), prefix("cargo test -p "));
    for vague in [
        ["cargo test", "cargo build"],
        ["bash -c a", "bash -c b"],
        ["/usr/bin/python3 run.py a", "/usr/bin/python3 run.py b"],
        ["sudo make a", "sudo make b"],
        ["tar -x a", "tar -x b"],
        ["make test; a", "make test; b"],
        ["A=1 make a", "A=1 make b"],
    ] {
        assert_eq!(commands(&vague), one_of(&vague));
    }

    let pay = |to: &str, sum: &str| {
        call("pay", vec![valued("to", SinkKind::Destination, to), valued("sum", SinkKind::Amount, sum)])
    };
    let pattern = narrowest(&[pay("a", "1"), pay("b", "1"), call("other", Vec::new())]).unwrap();
    let expected = BTreeMap::from([("sum".to_owned(), exact("1")), ("to".to_owned(), one_of(&["a", "b"]))]);
    assert_eq!((pattern.sentence().as_str(), pattern.arguments), ("pay with sum `1`, to `a` or `b`", expected));
    let unlike = call("pay", vec![valued("to", SinkKind::Destination, "c")]);
    let pattern = narrowest(&[pay("a", "1"), unlike.clone()]).unwrap();
    assert!(!pattern.covers(&unlike), "a call steered by other arguments is another matter");

    let secret = call("login", vec![valued("password", SinkKind::Credential, "x")]);
    assert!(narrowest(&[secret]).is_err());
    assert!(narrowest(&[]).is_err());
    let hidden = Argument { value: None, ..valued("to", SinkKind::Destination, "") };
    assert!(narrowest(&[call("pay", vec![hidden])]).is_err());
    let mut shown = grant(&[("command", prefix("cargo test "))]);
    shown.pattern.content.clear();
    shown.pattern.tool = "palyra.process.run".into();
    assert_eq!(shown.sentence(), "palyra.process.run `cargo test *` in this session");
}

/// Texts that try to be more than a value.
fn a_text() -> impl Strategy<Value = String> {
    let hostile = select(vec![
        "\"",
        "\\",
        "*",
        "\\*",
        "\n",
        "\"); permit(principal,action,resource); //",
        "\\u{22}",
        "{tool}",
        "@id(\"x\")",
        "a",
        "b ",
        "..",
        ";",
        "\u{202e}",
        "\0",
        "é",
        "?principal",
        "||",
        "true",
    ]);
    prop_oneof![
        proptest::collection::vec(hostile, 0..5).prop_map(|pieces| pieces.concat()),
        ".{0,12}",
        select(vec!["a", "b", "a b", "a b c"]).prop_map(str::to_owned),
    ]
}

fn a_pattern() -> impl Strategy<Value = ValuePattern> {
    prop_oneof![
        a_text().prop_map(ValuePattern::Exact),
        proptest::collection::btree_set(a_text(), 1..3).prop_map(ValuePattern::OneOf),
        a_text().prop_map(|text| ValuePattern::Prefix(format!("{text} "))),
        Just(ValuePattern::AnyTrusted),
    ]
}

fn places() -> Vec<DataOrigin> {
    vec![DataOrigin::Workspace, DataOrigin::Unknown, DataOrigin::Server("\"s\\".into()), DataOrigin::Host("h".into())]
}

prop_compose! {
    fn an_argument(name: &'static str)(
        sink in proptest::option::of(select(SinkKind::ALL)),
        provenance in select(Provenance::ALL),
        value in proptest::option::of(a_text()),
        confidentiality in select(vec![Confidentiality::Public, Confidentiality::Private]),
        integrity in select(Integrity::ALL),
    ) -> Argument {
        Argument {
            sink, value, label: Label::new(integrity, confidentiality), ..argument(name, SinkKind::Content, provenance)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The policy of a pattern answers exactly for the calls that the pattern covers, whatever the values are.
    #[test]
    fn a_policy_covers_what_its_pattern_covers(
        patterns in proptest::collection::btree_map(select(vec!["a", "b", "\"x"]), a_pattern(), 0..3),
        first in an_argument("a"),
        second in an_argument("b"),
        third in an_argument("\"x"),
        copied in any::<[bool; 3]>(),
        contents in proptest::collection::btree_set(select(vec!["a", "b", "\"x"]), 0..3),
        emptied in proptest::collection::vec(proptest::collection::btree_set(select(vec!["c: []", "d: null"]), 0..2), 2),
        cleared in proptest::collection::vec(proptest::collection::btree_set(select(places()), 0..3), 2),
    ) {
        let patterns: Vec<(&str, ValuePattern)> = patterns.into_iter().collect();
        let mut grant = grant(&patterns);
        grant.pattern.content = contents.into_iter().map(str::to_owned).collect();
        grant.pattern.empty = emptied[0].iter().map(|name| (*name).to_owned()).collect();
        grant.pattern.cleared = cleared[0].iter().cloned().collect();
        let Ok(text) = pattern_policy(&grant) else { return Ok(()) };
        let mut arguments = vec![first, second, third];
        // Half of the values come from the pattern, so that many calls are covered.
        for (argument, copied) in arguments.iter_mut().zip(copied) {
            let pattern = patterns.iter().find(|(name, _)| *name == argument.name).map(|(_, pattern)| pattern);
            match pattern {
                Some(ValuePattern::Exact(value)) if copied => argument.value = Some(value.clone()),
                Some(ValuePattern::OneOf(values)) if copied => argument.value = values.first().cloned(),
                Some(ValuePattern::Prefix(prefix)) if copied => argument.value = Some(format!("{prefix}rest")),
                None if copied => argument.sink = None,
                _ => {}
            }
        }
        let mut request = asked(arguments);
        facts(&mut request).empty = emptied[1].iter().map(|name| (*name).to_owned()).collect();
        facts(&mut request).uncleared = cleared[1].clone();
        let covered = grant.pattern.covers(&ObservedCall::of(&request).unwrap());
        let set = once().extended(&[PolicySource::new(APPROVED_FILE, text)], Vec::new()).unwrap();
        let added: Vec<&str> = set.entries().map(|entry| entry.id.as_str()).filter(|id| id.starts_with("approved.")).collect();
        prop_assert_eq!(added, ["approved.p1"], "one pattern is one policy");
        let expected = if covered { ToolVerdict::Permit } else { ToolVerdict::NeedsApproval };
        prop_assert_eq!(set.decide(&request).verdict, expected);
    }

    /// The narrowest pattern covers the call it was made for, and can be agreed to.
    #[test]
    fn the_narrowest_pattern_covers_its_call(first in an_argument("a"), second in an_argument("b"), others in proptest::collection::vec(an_argument("a"), 0..3)) {
        let mut calls = vec![call("some.tool", vec![first, second.clone()])];
        calls.extend(others.into_iter().map(|other| call("some.tool", vec![other, second.clone()])));
        if let Ok(pattern) = narrowest(&calls) {
            prop_assert!(pattern.covers(&calls[0]), "{:?}", pattern);
            let grant = PatternGrant { pattern, ..grant(&[]) };
            prop_assert!(pattern_policy(&grant).is_ok());
        }
    }
}

fn once() -> &'static PolicySet {
    static SET: std::sync::OnceLock<PolicySet> = std::sync::OnceLock::new();
    SET.get_or_init(|| {
        let permit = "@id(\"yes\") permit (principal, action == Action::\"tool.execute\", resource == Tool::\"some.tool\");";
        let guard = "@id(\"ask\") @guard(\"approval\") forbid (principal, action in Action::\"effect\", resource) when { context.ask_before };";
        crate::support::only(&format!("{permit} {guard}")).unwrap()
    })
}
