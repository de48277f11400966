//! Commands: who may have the daemon do what, what an operator can add, and that nothing remembered outlives its policies.

use std::collections::BTreeSet;
use std::fs;

use palyra_common::{PrincipalRole, Timestamp, TokenScope, ToolVerdict};
use palyra_policy::{CommandEffect, CommandRequest, PolicySet, PolicySources, PolicyStore, Request};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::with;

fn all_scopes() -> BTreeSet<TokenScope> {
    TokenScope::ALL.iter().copied().collect()
}

/// Alice, an operator, reads a session of her own.
fn reading(scopes: &BTreeSet<TokenScope>) -> CommandRequest<'_> {
    CommandRequest {
        principal_id: "user:alice",
        device: None,
        role: PrincipalRole::Operator,
        scopes,
        via: "api_token",
        command: "session.load",
        scope: TokenScope::SessionsRead,
        effect: CommandEffect::Read,
        owner: Some("user:alice"),
        workspace: None,
        now: Timestamp(1_763_190_000_000),
    }
}

fn verdict(set: &PolicySet, request: &CommandRequest<'_>) -> ToolVerdict {
    // Twice: what is remembered must be what was decided.
    let first = set.decide_command(request);
    assert_eq!(set.decide_command(request), first);
    assert_eq!(first.person.is_empty(), first.model.is_empty());
    assert!(!first.person.is_empty(), "a decision says why: {first:?}");
    first.verdict
}

#[test]
fn roles_effects_and_owners_are_decided_by_this_table() {
    use CommandEffect::{Administer, Change, Read};
    use PrincipalRole::{Operator, Owner, Viewer};
    use ToolVerdict::{Deny, Permit};
    let set = PolicySet::shipped().unwrap();
    let scopes = all_scopes();
    let (own, others, nobodys) = (Some("user:alice"), Some("user:bob"), None);
    for (role, effect, scope, verdicts) in [
        (Owner, Read, TokenScope::SessionsRead, [Permit, Permit, Permit]),
        (Owner, Change, TokenScope::RunsWrite, [Permit, Permit, Permit]),
        (Owner, Administer, TokenScope::TokensManage, [Permit, Permit, Permit]),
        (Operator, Read, TokenScope::SessionsRead, [Permit, Deny, Permit]),
        (Operator, Change, TokenScope::RunsWrite, [Permit, Deny, Permit]),
        (Operator, Change, TokenScope::JournalAdmin, [Deny, Deny, Deny]),
        (Operator, Administer, TokenScope::DaemonControl, [Deny, Deny, Deny]),
        (Viewer, Read, TokenScope::SessionsRead, [Permit, Deny, Permit]),
        (Viewer, Change, TokenScope::RunsWrite, [Deny, Deny, Deny]),
        (Viewer, Administer, TokenScope::DaemonControl, [Deny, Deny, Deny]),
    ] {
        for (owner, expected) in [own, others, nobodys].into_iter().zip(verdicts) {
            let request = CommandRequest { role, effect, scope, owner, ..reading(&scopes) };
            assert_eq!(verdict(&set, &request), expected, "{role} {effect} {scope} of {owner:?}");
            let none = BTreeSet::new();
            let request = CommandRequest { scopes: &none, ..request };
            assert_eq!(verdict(&set, &request), Deny, "{role} {effect} without the scope {scope}");
        }
    }
}

#[test]
fn a_device_acts_for_its_owner() {
    let set = PolicySet::shipped().unwrap();
    let scopes = all_scopes();
    let device = CommandRequest { device: Some("phone"), via: "device", ..reading(&scopes) };
    assert_eq!(verdict(&set, &device), ToolVerdict::Permit);
    assert_eq!(verdict(&set, &CommandRequest { principal_id: "user:bob", ..device }), ToolVerdict::Deny);
}

#[test]
fn a_denial_has_a_sentence_for_the_person() {
    let set = PolicySet::shipped().unwrap();
    let scopes = BTreeSet::from([TokenScope::RunsRead]);
    let decision = set.decide_command(&reading(&scopes));
    assert_eq!(decision.person, ["session.load needs the scope sessions:read, which this credential does not have"]);
    let scopes = all_scopes();
    let viewer = CommandRequest { role: PrincipalRole::Viewer, effect: CommandEffect::Change, ..reading(&scopes) };
    let decision = set.decide_command(&viewer);
    assert_eq!(decision.person, ["no policy permits `session.load` to a principal with the role viewer"]);
}

#[test]
fn an_operator_forbids_what_ships_as_permitted() {
    let scopes = all_scopes();
    let owner = CommandRequest { role: PrincipalRole::Owner, ..reading(&scopes) };
    for (policy, forbidden, still) in [
        (
            "@id(\"no_tokens\") forbid (principal, action in Action::\"command\", resource) when { context.via == \"api_token\" };",
            owner,
            CommandRequest { via: "unix_socket", ..owner },
        ),
        (
            "@id(\"no_export\") forbid (principal, action, resource) when { context has command && context.command == \"session.load\" };",
            owner,
            CommandRequest { command: "session.list", ..owner },
        ),
        (
            "@id(\"no_phone\") forbid (principal == Device::\"phone\", action, resource);",
            CommandRequest { device: Some("phone"), ..owner },
            CommandRequest { device: Some("tablet"), ..owner },
        ),
        (
            "@id(\"private\") forbid (principal, action in Action::\"command\", resource is Conversation) unless { principal in resource.owner };",
            CommandRequest { owner: Some("user:bob"), ..owner },
            owner,
        ),
    ] {
        let set = with(policy).unwrap();
        assert_eq!(verdict(&set, &forbidden), ToolVerdict::Deny, "{policy}");
        assert_eq!(verdict(&set, &still), ToolVerdict::Permit, "{policy}");
    }
}

#[test]
fn an_operator_permits_more_but_not_beyond_the_forbids() {
    let policy = "@id(\"all\") permit (principal, action in Action::\"command\", resource);";
    let set = with(policy).unwrap();
    let scopes = all_scopes();
    let viewer = CommandRequest { role: PrincipalRole::Viewer, effect: CommandEffect::Change, ..reading(&scopes) };
    assert_eq!(verdict(&set, &viewer), ToolVerdict::Permit);
    assert_eq!(verdict(&set, &CommandRequest { owner: Some("user:bob"), ..viewer }), ToolVerdict::Deny);
    assert_eq!(verdict(&set, &CommandRequest { effect: CommandEffect::Administer, ..viewer }), ToolVerdict::Deny);
    let none = BTreeSet::new();
    assert_eq!(verdict(&set, &CommandRequest { scopes: &none, ..viewer }), ToolVerdict::Deny);
}

/// There is nobody to ask, so a guard is what plain Cedar takes it for: a forbid.
#[test]
fn what_would_be_asked_about_is_denied() {
    let scopes = all_scopes();
    for policy in [
        "@id(\"ask\") @guard(\"approval\") forbid (principal, action in Action::\"command\", resource);",
        "@id(\"ask\") @approval(\"required\") permit (principal, action in Action::\"command\", resource);",
    ] {
        let decision = with(policy).unwrap().decide_command(&reading(&scopes));
        assert_eq!(decision.verdict, ToolVerdict::Deny);
        assert!(
            decision.person.iter().any(|reason| reason.contains("cannot be approved interactively")),
            "{decision:?}"
        );
    }
}

#[test]
fn what_cannot_be_a_request_is_denied_and_not_remembered() {
    let set = PolicySet::shipped().unwrap();
    let scopes = all_scopes();
    let long = "x".repeat(1 << 20);
    let owner = CommandRequest { role: PrincipalRole::Owner, ..reading(&scopes) };
    for bad in [
        CommandRequest { principal_id: "", ..owner },
        CommandRequest { principal_id: "a\0b", ..owner },
        CommandRequest { principal_id: &long, owner: None, ..owner },
        CommandRequest { owner: Some(""), ..owner },
        CommandRequest { device: Some(""), ..owner },
        CommandRequest { command: "", ..owner },
        CommandRequest { command: &long, ..owner },
        CommandRequest { via: "", ..owner },
    ] {
        let decision = set.decide_command(&bad);
        assert_eq!(decision.verdict, ToolVerdict::Deny);
        assert!(!decision.errors.is_empty());
    }
}

#[test]
fn a_policy_that_fails_denies() {
    let policy = "@id(\"sum\") forbid (principal, action in Action::\"command\", resource) when { context.now + 9223372036854775807 > 0 };";
    let scopes = all_scopes();
    let decision = with(policy).unwrap().decide_command(&reading(&scopes));
    assert_eq!((decision.verdict, decision.errors.len()), (ToolVerdict::Deny, 1));
}

#[test]
fn a_reload_is_never_answered_from_before() {
    let directory = tempfile::tempdir().unwrap();
    let store = PolicyStore::open(PolicySources::shipped().with_directory(directory.path())).unwrap();
    let scopes = all_scopes();
    let request = reading(&scopes);
    assert_eq!(store.decide_command(&request).verdict, ToolVerdict::Permit);
    let forbid = "@id(\"stop\") forbid (principal, action in Action::\"command\", resource);";
    fs::write(directory.path().join("site.cedar"), forbid).unwrap();
    assert_eq!(store.decide_command(&request).verdict, ToolVerdict::Permit, "nothing changes by itself");
    store.reload().unwrap();
    assert_eq!(store.decide_command(&request).verdict, ToolVerdict::Deny);
    fs::remove_file(directory.path().join("site.cedar")).unwrap();
    store.reload().unwrap();
    assert_eq!(store.decide_command(&request).verdict, ToolVerdict::Permit);
}

/// A set that is extended starts with an empty memory, and the one it came from keeps its own.
#[test]
fn an_extended_set_remembers_nothing_of_the_first() {
    let base = PolicySet::shipped().unwrap();
    let scopes = all_scopes();
    assert_eq!(verdict(&base, &reading(&scopes)), ToolVerdict::Permit);
    let forbid = palyra_policy::PolicySource::new(
        "own.cedar",
        "@id(\"stop\") forbid (principal, action in Action::\"command\", resource);",
    );
    let extended = base.extended(&[forbid], Vec::new()).unwrap();
    assert_eq!(verdict(&extended, &reading(&scopes)), ToolVerdict::Deny);
    assert_eq!(verdict(&base, &reading(&scopes)), ToolVerdict::Permit);
}

#[test]
fn policies_that_look_at_the_time_are_asked_each_time() {
    let scopes = all_scopes();
    let (before, after) = (Timestamp(1_000), Timestamp(3_000));
    for condition in [
        "context.now >= 2000",
        "context has now && context.now >= 2000",
        "(if context.own then context else context).now >= 2000",
        "context.own && [context.now >= 2000].contains(true)",
    ] {
        let policy = format!(
            "@id(\"closed\") forbid (principal, action in Action::\"command\", resource) when {{ {condition} }};"
        );
        let set = with(&policy).unwrap();
        for (now, expected) in
            [(before, ToolVerdict::Permit), (after, ToolVerdict::Deny), (before, ToolVerdict::Permit)]
        {
            let request = CommandRequest { now, ..reading(&scopes) };
            assert_eq!(set.decide_command(&request).verdict, expected, "{condition} at {}", now.0);
        }
    }
}

prop_compose! {
    fn a_command()(
        principal_id in select(vec!["user:alice", "user:bob", "uid:0"]),
        device in proptest::option::of(select(vec!["phone", "tablet"])),
        role in select(PrincipalRole::ALL),
        scopes in proptest::collection::btree_set(select(TokenScope::ALL), 0..8),
        via in select(vec!["unix_socket", "api_token"]),
        command in select(vec!["session.load", "daemon.stop"]),
        scope in select(TokenScope::ALL),
        effect in select(CommandEffect::ALL),
        owner in proptest::option::of(select(vec!["user:alice", "user:bob"])),
        workspace in proptest::option::of(select(vec!["/srv", "/home/ada"])),
        now in 0..2_000_i64,
    ) -> (CommandRequest<'static>, BTreeSet<TokenScope>) {
        static NONE: BTreeSet<TokenScope> = BTreeSet::new();
        let command = CommandRequest {
            principal_id, device, role, scopes: &NONE, via, command, scope, effect, owner, workspace, now: Timestamp(now),
        };
        (command, scopes)
    }
}

const MIXED: &str = "@id(\"a\") forbid (principal == Device::\"phone\", action == Action::\"command.change\", resource);
@id(\"b\") permit (principal in User::\"uid:0\", action in Action::\"command\", resource) when { context.via == \"unix_socket\" };
@id(\"c\") forbid (principal, action in Action::\"command\", resource) when { context.command == \"daemon.stop\" && context.scopes.contains(\"runs:read\") };";

proptest! {
    /// What is remembered is what would be decided, in whatever order commands come; the roles keep their bounds.
    #[test]
    fn remembering_changes_no_decision(commands in proptest::collection::vec(a_command(), 1..24), timely in any::<bool>()) {
        let clock = "@id(\"t\") forbid (principal, action in Action::\"command\", resource) when { context.now >= 1000 };";
        let set = with(&if timely { format!("{MIXED}\n{clock}") } else { MIXED.to_owned() }).unwrap();
        for (command, scopes) in commands.iter().chain(&commands) {
            let command = CommandRequest { scopes, ..*command };
            let decision = set.decide_command(&command);
            prop_assert_eq!(&decision, &set.decide(&Request::from(&command)), "nothing here asks");
            if decision.verdict == ToolVerdict::Permit {
                prop_assert!(scopes.contains(&command.scope));
                let own = command.owner.is_none_or(|owner| owner == command.principal_id);
                prop_assert!(own || command.role == PrincipalRole::Owner);
                prop_assert!(command.effect != CommandEffect::Administer || command.role == PrincipalRole::Owner);
            }
        }
    }
}
