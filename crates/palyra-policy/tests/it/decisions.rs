//! How permits, guards and forbids combine.

use palyra_common::ToolVerdict;
use palyra_policy::{ActionKind, Asking, EffectScope, Location, PolicySet, Provenance, Resource, SinkKind};

use crate::support::{argument, call, execute, facts, only, read, to, with};

const PERMIT: &str = "@id(\"yes\") permit (principal, action == Action::\"tool.execute\", resource);";

#[test]
fn nothing_permits_means_no() {
    let decision = PolicySet::shipped().unwrap().decide(&execute());
    assert_eq!(decision.verdict, ToolVerdict::Deny);
    assert!(decision.policies.is_empty());
    assert_eq!(decision.person, ["no policy permits `tool.execute` on `some.tool`"]);
}

#[test]
fn an_empty_set_permits_nothing() {
    let set = only("").unwrap();
    assert_eq!(set.decide(&read()).verdict, ToolVerdict::Deny);
}

#[test]
fn a_forbid_wins_over_every_kind_of_permit() {
    let forbid = "@id(\"no\") @reason_person(\"never {tool}\") forbid (principal, action == Action::\"tool.execute\", resource);";
    for approval in ["", "@approval(\"required\")", "@approval(\"waived\")"] {
        let decision = only(&format!("{approval} {PERMIT} {forbid}")).unwrap().decide(&execute());
        assert_eq!(decision.verdict, ToolVerdict::Deny, "{approval}");
        assert_eq!(decision.policies, ["own.no"]);
        assert_eq!(decision.person, ["never some.tool"]);
    }
}

#[test]
fn one_permit_that_asks_is_enough_to_ask() {
    let asks = PERMIT.replace("yes", "asks").replace("@id", "@approval(\"required\") @id");
    let decision = only(&format!("{PERMIT} {asks}")).unwrap().decide(&execute());
    assert_eq!(decision.verdict, ToolVerdict::NeedsApproval);
    assert_eq!(decision.policies, ["own.asks", "own.yes"]);
}

#[test]
fn a_waiver_stands_above_questions() {
    let asks = PERMIT.replace("yes", "asks").replace("@id", "@approval(\"required\") @id");
    let waives = PERMIT.replace("yes", "waives").replace("@id", "@approval(\"waived\") @id");
    let mut request = execute();
    facts(&mut request).asking = Asking::AskBefore;
    assert_eq!(with(PERMIT).unwrap().decide(&request).verdict, ToolVerdict::NeedsApproval);
    assert_eq!(with(&format!("{asks} {waives}")).unwrap().decide(&request).verdict, ToolVerdict::Permit);
}

#[test]
fn a_guard_grants_nothing() {
    let guard = "@id(\"guard\") @guard(\"approval\") forbid (principal, action, resource);";
    assert_eq!(only(guard).unwrap().decide(&execute()).verdict, ToolVerdict::Deny);
    let both = only(&format!("{guard} {PERMIT}")).unwrap().decide(&execute());
    assert_eq!(both.verdict, ToolVerdict::NeedsApproval);
}

/// Integer overflow is the one way a validated policy can still fail.
#[test]
fn a_policy_that_fails_denies() {
    let overflow = "context.now * 9223372036854775807 > 0";
    let permit = format!("{PERMIT} @id(\"odd\") permit (principal, action, resource) when {{ {overflow} }};");
    let forbid = format!("{PERMIT} @id(\"odd\") forbid (principal, action, resource) when {{ {overflow} }};");
    let guard = format!(
        "{PERMIT} @id(\"odd\") @guard(\"approval\") forbid (principal, action, resource) when {{ {overflow} }};"
    );
    for text in [permit, forbid, guard] {
        let decision = only(&text).unwrap().decide(&execute());
        assert_eq!(decision.verdict, ToolVerdict::Deny, "{text}");
        assert_eq!(decision.errors.len(), 1);
        assert!(decision.errors[0].contains("own.odd"), "{:?}", decision.errors);
    }
}

#[test]
fn hierarchies_hold() {
    let permits = |text: &str, request| {
        let text = format!("@id(\"a\") permit ({text});");
        only(&text).unwrap().decide(&request).verdict == ToolVerdict::Permit
    };
    for who in ["User::\"me\"", "Agent::\"default\"", "Session::\"session1\"", "Role::\"admin\""] {
        assert!(permits(&format!("principal in {who}, action, resource"), read()), "{who}");
    }
    for who in ["User::\"you\"", "Agent::\"me\"", "Role::\"guest\""] {
        assert!(!permits(&format!("principal in {who}, action, resource"), read()), "{who}");
    }
    for directory in [".", "notes", "notes/a.txt"] {
        assert!(permits(&format!("principal, action, resource in Path::\"{directory}\""), read()), "{directory}");
    }
    for directory in ["note", "notes/a", "/", "a.txt"] {
        assert!(!permits(&format!("principal, action, resource in Path::\"{directory}\""), read()), "{directory}");
    }
    let connect = |host| call(ActionKind::Connect, Resource::Host(to(host)), EffectScope::External);
    for host in ["example.org", "API.Example.org.", "a.b.example.org"] {
        assert!(permits("principal, action, resource in Host::\"example.org\"", connect(host)), "{host}");
    }
    for host in ["badexample.org", "example.org.evil.net", "org"] {
        assert!(!permits("principal, action, resource in Host::\"example.org\"", connect(host)), "{host}");
    }
    // An address is not a domain: `10.0.0.1` is in no `0.0.1`.
    assert!(!permits("principal, action, resource in Host::\"0.0.1\"", connect("10.0.0.1")));
}

#[test]
fn a_policy_reads_the_provenance_of_one_argument() {
    let text = "@id(\"mail\") permit (principal, action == Action::\"tool.execute\", resource)
        when { context.args.hasTag(\"to\") && context.args.getTag(\"to\").provenance == Provenance::\"trusted\" };";
    let set = only(text).unwrap();
    for (name, provenance, expected) in [
        ("to", Provenance::Trusted, ToolVerdict::Permit),
        ("to", Provenance::Untrusted, ToolVerdict::Deny),
        ("cc", Provenance::Trusted, ToolVerdict::Deny),
    ] {
        let mut request = execute();
        facts(&mut request).arguments.push(argument(name, SinkKind::Destination, provenance));
        assert_eq!(set.decide(&request).verdict, expected, "{name} {provenance}");
    }
}

/// What a person approved as a pattern is a policy about the value of an argument.
#[test]
fn a_pattern_over_a_command_can_be_granted() {
    let text = "@id(\"tests\") @approval(\"waived\")
        permit (principal in Session::\"session1\", action == Action::\"tool.execute\", resource == Tool::\"some.tool\")
        when { context.args.hasTag(\"command\") && context.args.getTag(\"command\") has value &&
               context.args.getTag(\"command\").value like \"cargo test *\" && context.now < 1763190000001 };";
    let set = with(text).unwrap();
    let mut request = execute();
    facts(&mut request).arguments.push(argument("command", SinkKind::Command, Provenance::Invented));
    assert_eq!(set.decide(&request).verdict, ToolVerdict::Deny);
    facts(&mut request).arguments[0].value = Some("cargo test --all".into());
    assert_eq!(set.decide(&request).verdict, ToolVerdict::Permit);
    facts(&mut request).now.0 += 1;
    assert_eq!(set.decide(&request).verdict, ToolVerdict::Deny);
}

#[test]
fn the_effects_of_one_call_are_decided_together() {
    let set = PolicySet::shipped().unwrap();
    let mut asked = read();
    facts(&mut asked).asking = Asking::AskBefore;
    assert_eq!(set.decide_all(&[read(), read()]).verdict, ToolVerdict::Permit);
    assert_eq!(set.decide_all(&[read(), asked.clone()]).verdict, ToolVerdict::NeedsApproval);
    let all = set.decide_all(&[asked, execute(), read()]);
    assert_eq!((all.verdict, all.person), (ToolVerdict::Deny, set.decide(&execute()).person));
    assert_eq!(set.decide_all(&[]).verdict, ToolVerdict::Deny, "no effect named is no permission");
}

#[test]
fn reasons_are_one_clean_line() {
    let set = with("@id(\"yes\") permit (principal, action, resource);").unwrap();
    let mut request = execute();
    let mut destination = argument("to", SinkKind::Destination, Provenance::Untrusted);
    destination.value = Some(format!("a\n\u{1b}[2J\u{202e}{}", "x".repeat(500)));
    facts(&mut request).arguments.push(destination);
    let decision = set.decide(&request);
    assert_eq!(decision.verdict, ToolVerdict::NeedsApproval);
    let reason = &decision.person[0];
    assert!(reason.starts_with("where it goes was not your choice: `a  [2J xxx"), "{reason}");
    assert!(reason.chars().count() < 220 && !reason.chars().any(char::is_control), "{reason}");
}

#[test]
fn a_path_outside_is_not_the_workspace() {
    let mut request = read();
    request.resource = Resource::Path { name: "/etc/passwd".into(), location: Location::OutsideWorkspace };
    assert_eq!(PolicySet::shipped().unwrap().decide(&request).verdict, ToolVerdict::Deny);
}
