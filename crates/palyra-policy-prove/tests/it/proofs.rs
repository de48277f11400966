//! Edits that narrow are shown to; edits that widen give a request that shows it.

use std::path::PathBuf;

use palyra_common::{ToStableError as _, ToolVerdict};
use palyra_policy::{
    APPROVED_FILE, ActionKind, Grant, Pattern, PatternGrant, PatternScope, PolicySet, PolicySource, PolicySources,
    ValuePattern, pattern_policy,
};
use palyra_policy_prove::{CounterExample, DEFAULT_LIMIT, Proof, ProveError, SolverProgram, Widening, prove};

/// The solver that `scripts/solver.sh` installs, or the one that is named.
fn solver() -> SolverProgram {
    let named = std::env::var_os("PALYRA_SMT_SOLVER").map(PathBuf::from).unwrap_or_else(|| {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
        cache.join("palyra/z3-5.4.0.0/bin/z3")
    });
    SolverProgram::find(Some(named.as_os_str()), None).expect("`scripts/solver.sh` installs the solver")
}

fn set(text: &str) -> PolicySet {
    PolicySet::load(&PolicySources::shipped().with_text(PolicySource::new("own.cedar", text))).unwrap()
}

fn compared(base: &str, proposed: &str) -> Result<Proof, ProveError> {
    prove(&set(base), &set(proposed), &solver(), DEFAULT_LIMIT)
}

fn narrows(base: &str, proposed: &str) {
    let proof = compared(base, proposed).unwrap();
    assert!(matches!(proof, Proof::Narrows { solved, .. } if solved > 0), "{proposed}: {proof:#?}");
}

/// Narrows without a question to the solver.
fn obviously_narrows(base: &str, proposed: &str) {
    let proof = compared(base, proposed).unwrap();
    assert!(matches!(proof, Proof::Narrows { solved: 0, .. }), "{proposed}: {proof:#?}");
}

fn widens(base: &str, proposed: &str) -> CounterExample {
    let Proof::Widens(example) = compared(base, proposed).unwrap() else { panic!("{proposed} is said to narrow") };
    *example
}

/// The counter-example is a request that both sets really decide differently.
fn confirmed(base: &str, proposed: &str, widening: Widening) -> CounterExample {
    let example = widens(base, proposed);
    assert_eq!(example.widening, widening, "{example:#?}");
    let request = example.request.as_ref().unwrap_or_else(|| panic!("no request: {example:#?}"));
    let (before, after) = (set(base).decide(request), set(proposed).decide(request));
    assert!(after.verdict < before.verdict, "{example:#?}");
    let text = serde_json::to_string(request).unwrap();
    assert_eq!(&serde_json::from_str::<palyra_policy::Request>(&text).unwrap(), request.as_ref());
    example
}

const RUN: &str = "@id(\"run\") permit (principal in User::\"me\", action == Action::\"tool.execute\", resource == Tool::\"builder.run\");";

#[test]
fn the_same_set_narrows_without_a_solver() {
    let reworded = RUN.replace("@id", "@note(\"said differently\") @id");
    let proof = compared(RUN, &reworded).unwrap();
    let Proof::Narrows { kinds, solved } = proof else { panic!("{proof:?}") };
    assert!(kinds >= ActionKind::ALL.len() && solved == 0, "{kinds} {solved}");
}

#[test]
fn more_conditions_narrow() {
    narrows(RUN, &RUN.replace(");", ") when { context.risk_rank <= 1 };"));
    narrows(RUN, &RUN.replace("@id", "@approval(\"required\") @id"));
    let forbid =
        "@id(\"no\") forbid (principal, action == Action::\"tool.write\", resource) when { context.risk_rank >= 3 };";
    narrows(forbid, &forbid.replace(">= 3", ">= 2"));
}

/// The facts about signals are those that hold for real requests: weights end at `high`, and a kind that was noticed weighs something.
#[test]
fn signals_are_understood() {
    let guard = |condition: &str| {
        format!(
            "@id(\"signs\") @guard(\"approval\") forbid (principal, action == Action::\"tool.write\", resource) when {{ {condition} }};"
        )
    };
    let (any, high) = (guard("context.signals.confidence_rank >= 1"), guard("context.signals.confidence_rank >= 3"));
    narrows(&high, &any);
    narrows(&guard("context.signals.kinds.contains(Signal::\"exfiltration\")"), &any);
    narrows(&guard("context.signals.confidence_rank > 3"), &guard("context.signals.at_source"));
    confirmed(&any, &high, Widening::StopsAsking);
    confirmed(&any, &guard("context.signals.kinds.contains(Signal::\"exfiltration\")"), Widening::StopsAsking);
}

#[test]
fn taking_away_narrows_obviously() {
    obviously_narrows(RUN, "");
    obviously_narrows("", "@id(\"no\") forbid (principal, action == Action::\"tool.write\", resource);");
    obviously_narrows("", "@id(\"ask\") @guard(\"approval\") forbid (principal, action, resource);");
}

/// The same thing said with a rank and with a word is the same thing, because a rank belongs to its word.
#[test]
fn words_and_ranks_are_one() {
    let rank = "@id(\"g\") @guard(\"approval\") forbid (principal, action == Action::\"tool.write\", resource) when { context.labels.integrity_rank >= 4 };";
    let word =
        rank.replace("context.labels.integrity_rank >= 4", "context.labels.integrity == Integrity::\"untrusted\"");
    narrows(rank, &word);
    narrows(&word, rank);
}

#[test]
fn a_new_permit_widens() {
    let example = confirmed("", RUN, Widening::Permits);
    assert_eq!(example.action, ActionKind::Execute);
    assert_eq!(example.base.unwrap().verdict, ToolVerdict::Deny);
}

#[test]
fn dropping_a_condition_widens() {
    let guarded =
        RUN.replace(");", ") when { context.sinks has command && context.sinks.command.values.contains(\"ls\") };");
    confirmed(&guarded, RUN, Widening::Permits);
    let forbid = "@id(\"no\") forbid (principal, action == Action::\"tool.write\", resource) when { resource is Path && resource in Path::\"private\" };";
    confirmed(forbid, "", Widening::Permits);
}

#[test]
fn asking_less_widens() {
    let asks = RUN.replace("@id", "@approval(\"required\") @id");
    confirmed(&asks, RUN, Widening::StopsAsking);
    let waives = RUN.replace("@id", "@approval(\"waived\") @id");
    confirmed(RUN, &waives, Widening::StopsAsking);
    let guard = "@id(\"g\") @guard(\"approval\") forbid (principal, action == Action::\"tool.write\", resource) when { context.risk_rank >= 2 };";
    confirmed(guard, &guard.replace(">= 2", ">= 3"), Widening::StopsAsking);
}

/// What people agreed to answers questions: adding it widens, and it permits nothing by itself.
#[test]
fn agreeing_widens_by_not_asking() {
    let mut grant = PatternGrant {
        id: "p".into(),
        scope: PatternScope::User("me".into()),
        pattern: Pattern {
            tool: "palyra.fs.write".into(),
            arguments: [("path".to_owned(), ValuePattern::Exact("notes.txt".into()))].into(),
            empty: [].into(),
            content: ["content".to_owned()].into(),
            content_up_to: palyra_common::Confidentiality::Private,
            workspace: None,
            method: None,
            destination: None,
            cleared: [].into(),
            answers: ["asking.ask_before".to_owned()].into(),
        },
        expires_at: None,
        approval: "01JCQ0000000000000000000AA".parse().unwrap(),
    };
    let base = PolicySet::shipped().unwrap();
    let agreed = PolicySource::new(APPROVED_FILE, pattern_policy(&grant).unwrap());
    let proposed = base.extended(&[agreed], Vec::new()).unwrap();
    let Proof::Widens(example) = prove(&base, &proposed, &solver(), DEFAULT_LIMIT).unwrap() else { panic!("narrows") };
    assert_eq!(example.widening, Widening::StopsAsking);
    let Proof::Narrows { .. } = prove(&proposed, &base, &solver(), DEFAULT_LIMIT).unwrap() else {
        panic!("revoking narrows")
    };
    // What answers no question that is asked changes nothing.
    grant.pattern.answers = ["no.such".to_owned()].into();
    let other = PolicySource::new(APPROVED_FILE, pattern_policy(&grant).unwrap());
    let idle = base.extended(&[other], Vec::new()).unwrap();
    assert!(matches!(prove(&base, &idle, &solver(), DEFAULT_LIMIT).unwrap(), Proof::Narrows { .. }));
}

#[test]
fn grants_are_compared_too() {
    let grant = |host: &str| Grant {
        id: "web".into(),
        template: "grants.connect".into(),
        principal: Some("User::\"me\"".into()),
        resource: Some(format!("Host::\"{host}\"")),
    };
    let with = |host: &str| PolicySet::load(&PolicySources::shipped().with_grants([grant(host)])).unwrap();
    let (base, other) = (with("example.org"), with("example.com"));
    let Proof::Widens(example) = prove(&base, &other, &solver(), DEFAULT_LIMIT).unwrap() else { panic!("narrows") };
    assert_eq!(example.action, ActionKind::Connect);
    let none = PolicySet::shipped().unwrap();
    assert!(matches!(prove(&base, &none, &solver(), DEFAULT_LIMIT).unwrap(), Proof::Narrows { .. }));
}

/// Where a policy of the base fails, the base denies. That is not compared, so nothing is claimed.
#[test]
fn a_base_that_can_fail_is_refused() {
    let computes = RUN.replace(");", ") when { context.now * 2 > 5 };");
    let error = compared(&computes, RUN).unwrap_err();
    assert_eq!(error.to_stable().code, "policy_can_fail", "{error}");
    narrows(RUN, &computes);
    let error = compared(&computes, "").unwrap_err();
    assert_eq!(error.to_stable().code, "policy_can_fail", "where it fails it denies, and the others might not");
}

/// Answering approvals has principals and a context of its own.
#[test]
fn people_are_compared_too() {
    let admin = "@id(\"admin\") permit (principal is User, action == Action::\"approval.decide\", resource) when { principal == User::\"root\" };";
    let example = confirmed("", admin, Widening::Permits);
    assert_eq!(example.action, ActionKind::DecideApproval);
    obviously_narrows(admin, "");
}

/// Commands have words and owners that the schema cannot tie together; the facts do.
#[test]
fn commands_are_compared_too() {
    let auditor = "@id(\"auditor\") permit (principal == User::\"user:audit\", action == Action::\"command.change\", resource) when { context.role == \"viewer\" };";
    let example = confirmed("", auditor, Widening::Permits);
    assert_eq!(example.action, ActionKind::CommandChange);
    obviously_narrows(auditor, "");
    narrows(auditor, &auditor.replace("context.role", "context.own && context.role"));

    let others =
        "@id(\"o\") forbid (principal, action in Action::\"command\", resource is Conversation) when { !context.own };";
    let by_owner = others.replace("!context.own", "!(principal in resource.owner)");
    narrows(others, &by_owner);
    narrows(&by_owner, others);
    let of_daemon =
        "@id(\"o\") forbid (principal, action in Action::\"command\", resource is Daemon) when { !context.own };";
    narrows(of_daemon, &of_daemon.replace("!context.own", "context.role == \"nobody\""));

    // What ships already keeps everybody to their scopes and administration to owners, so these permit nothing new.
    narrows(
        "",
        "@id(\"n\") permit (principal, action == Action::\"command.administer\", resource) when { context.role == \"viewer\" };",
    );
    narrows(
        "",
        "@id(\"n\") permit (principal, action in Action::\"command\", resource) when { !context.scopes.contains(context.scope) };",
    );
}
