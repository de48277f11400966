//! The faults that must be shown one by one: a clear error that names the place, a store that does not open on it, and a store that keeps
//! what it had when the fault appears later, so that nothing is permitted because of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use palyra_common::{ToStableError as _, ToolVerdict};
use palyra_policy::{PolicyError, PolicySources, PolicyStore};

use crate::support::{execute, read};

/// Puts a fault into a directory: at the start, and while a sound set is in force that forbids everything.
fn refused(code: &str, message: &str, fault: impl Fn(&Path)) {
    let check = |error: &PolicyError| {
        let envelope = error.to_stable();
        assert_eq!(envelope.code, code, "{error}");
        assert!(envelope.message.contains(message), "{error}");
        assert!(!envelope.message.contains('\n') && envelope.recovery_hint.is_some(), "{envelope:?}");
    };
    let fresh = tempfile::tempdir().unwrap();
    fault(fresh.path());
    check(&PolicyStore::open(PolicySources::shipped().with_directory(fresh.path())).unwrap_err());

    let used = tempfile::tempdir().unwrap();
    let permits = "@id(\"yes\") permit (principal, action, resource);";
    fs::write(used.path().join("stop.cedar"), "@id(\"stop\") forbid (principal, action, resource);").unwrap();
    let store = PolicyStore::open(PolicySources::shipped().with_directory(used.path())).unwrap();
    fs::write(used.path().join("stop.cedar"), permits).unwrap();
    fault(used.path());
    check(&store.reload().unwrap_err());
    check(&store.last_error().unwrap());
    for request in [read(), execute()] {
        assert_eq!(store.decide(&request).verdict, ToolVerdict::Deny, "the old set stays, whole");
    }
}

#[test]
fn a_malformed_policy() {
    refused("policy_malformed", "own.cedar:2", |path| {
        fs::write(path.join("own.cedar"), "// first\npermit (principal action resource);").unwrap();
    });
}

#[test]
fn an_unknown_entity() {
    refused("policy_unknown_entity", "Robot", |path| {
        let text = "@id(\"a\") permit (principal in Robot::\"r2\", action, resource);";
        fs::write(path.join("own.cedar"), text).unwrap();
    });
    refused("policy_unknown_entity", "tool.fly", |path| {
        let text = "@id(\"a\") permit (principal, action == Action::\"tool.fly\", resource);";
        fs::write(path.join("own.cedar"), text).unwrap();
    });
}

/// There are no includes, so there is no cycle to follow: the first of them is refused. A cycle of links is refused as well.
#[test]
fn a_cyclic_include() {
    refused("policy_include", "one.cedar:1", |path| {
        fs::write(path.join("one.cedar"), "include \"two.cedar\";").unwrap();
        fs::write(path.join("two.cedar"), "include \"one.cedar\";").unwrap();
    });
    refused("policy_unreadable", "one.cedar", |path| {
        symlink("two.cedar", path.join("one.cedar")).unwrap();
        symlink("one.cedar", path.join("two.cedar")).unwrap();
    });
    refused("policy_file_unknown", "again", |path| symlink(path, path.join("again")).unwrap());
}

#[test]
fn a_template_without_slot() {
    refused("policy_template_without_slot", "workspace.read", |path| {
        let grant = "[[grant]]\nid = \"g\"\ntemplate = \"workspace.read\"\nprincipal = 'User::\"me\"'\n";
        fs::write(path.join("grants.toml"), grant).unwrap();
    });
    // A template that makes templates: a grant fills slots, it cannot name another grant.
    refused("policy_template_unknown", "grant.other", |path| {
        let one = "[[grant]]\nid = \"one\"\ntemplate = \"grant.other\"\nprincipal = 'User::\"me\"'\nresource = 'Host::\"a\"'\n";
        let other = one.replace("\"one\"", "\"other\"").replace("grant.other", "grant.one");
        fs::write(path.join("grants.toml"), format!("{one}{other}")).unwrap();
    });
}

#[test]
fn a_policy_file_of_10_mb() {
    refused("policy_file_too_large", "large.cedar", |path| {
        let policy = "@id(\"a\") permit (principal, action, resource);\n";
        fs::write(path.join("large.cedar"), policy.repeat((10 << 20) / policy.len() + 1)).unwrap();
    });
}
