//! Requests that do not fit are denied, never guessed at.

use palyra_common::ToolVerdict;
use palyra_policy::{ActionKind, EffectScope, PolicySet, Principal, Provenance, Request, Resource, SinkKind};

use crate::support::{argument, call, execute, facts, path, read, to, with};

/// A set that permits everything, so that a denial can only come from the request.
fn permissive() -> PolicySet {
    with("@id(\"all\") @approval(\"waived\") permit (principal, action, resource);").unwrap()
}

fn denied_because(request: &Request, word: &str) {
    let decision = permissive().decide(request);
    assert_eq!(decision.verdict, ToolVerdict::Deny, "{request:?}");
    assert!(decision.policies.is_empty());
    let [error] = &decision.errors[..] else { panic!("{decision:?}") };
    assert!(error.contains("[policy_request_invalid]") && error.contains(word), "{error}");
}

#[test]
fn the_permissive_set_permits() {
    assert_eq!(permissive().decide(&read()).verdict, ToolVerdict::Permit);
    assert_eq!(permissive().decide(&execute()).verdict, ToolVerdict::Permit);
}

#[test]
fn a_resource_of_the_wrong_kind() {
    denied_because(&call(ActionKind::Execute, path("a"), EffectScope::External), "resource");
    denied_because(&call(ActionKind::Compute, Resource::Host(to("a")), EffectScope::Pure), "resource");
}

#[test]
fn a_principal_of_the_wrong_kind() {
    let mut request = read();
    request.principal = Principal::User("me".into());
    denied_because(&request, "principal");
}

#[test]
fn a_context_of_the_wrong_kind() {
    let mut request = read();
    request.action = ActionKind::DecideApproval;
    request.principal = Principal::User("me".into());
    request.resource = Resource::Run(crate::support::run());
    denied_because(&request, "context");
}

#[test]
fn facts_that_are_missing_or_too_many() {
    let mut request = call(ActionKind::Connect, Resource::Host(to("example.org")), EffectScope::External);
    let connection = facts(&mut request).connection.take();
    denied_because(&request, "needs a connection");
    let mut request = read();
    facts(&mut request).connection = connection;
    denied_because(&request, "no connection");
    let mut request = read();
    facts(&mut request).secret_for = Some(to("example.org"));
    denied_because(&request, "no secret");
    let secret = Resource::Secret { scope: "global".into(), name: "token".into() };
    let mut request = call(ActionKind::UseSecret, secret, EffectScope::External);
    facts(&mut request).secret_for = None;
    denied_because(&request, "needs the host");
}

#[test]
fn names_that_are_none() {
    for host in ["", "a b", "exa\u{440}ple.org", "a..b", "x/y", "user@host"] {
        denied_because(&call(ActionKind::Connect, Resource::Host(to(host)), EffectScope::External), "");
    }
    for name in ["/etc/passwd", "../a", "a/../../b", "", "a\0b"] {
        denied_because(&call(ActionKind::Read, path(name), EffectScope::WorkspaceRead), "");
    }
    let mut request = execute();
    facts(&mut request).tool.name = "x".repeat(5_000);
    denied_because(&request, "name");
}

#[test]
fn arguments_out_of_bounds() {
    let twice = argument("to", SinkKind::Destination, Provenance::Trusted);
    let mut request = execute();
    facts(&mut request).arguments = vec![twice.clone(), twice.clone()];
    denied_because(&request, "twice");
    let mut request = execute();
    facts(&mut request).arguments =
        (0..300).map(|n| argument(&n.to_string(), SinkKind::Amount, Provenance::Trusted)).collect();
    denied_because(&request, "arguments");
    let mut request = execute();
    let mut long = twice;
    long.value = Some("x".repeat(20_000));
    facts(&mut request).arguments = vec![long];
    denied_because(&request, "longer");
}

/// A name is data: Cedar text inside it changes nothing.
#[test]
fn names_cannot_become_policy() {
    let set = with("@id(\"one\") permit (principal, action == Action::\"tool.execute\", resource == Tool::\"good\");")
        .unwrap();
    let mut request = execute();
    facts(&mut request).tool.name = "good\"); permit(principal,action,resource); //".into();
    assert_eq!(set.decide(&request).verdict, ToolVerdict::Deny);
    facts(&mut request).tool.name = "good".into();
    assert_eq!(set.decide(&request).verdict, ToolVerdict::Permit);
}

#[test]
fn a_request_is_read_back_as_it_was_written() {
    let mut request = call(ActionKind::Connect, Resource::Host(to("example.org")), EffectScope::External);
    facts(&mut request).arguments = vec![argument("url", SinkKind::Destination, Provenance::Variable)];
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    let odd = text.replacen("\"action\"", "\"approved\":true,\"action\"", 1);
    assert!(serde_json::from_str::<Request>(&odd).is_err(), "an unknown field is refused");
}
