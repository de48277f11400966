//! Everything that can be wrong with policies: each is one clear error with a stable code, and nothing is loaded.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use palyra_common::ToStableError as _;
use palyra_policy::{Grant, MAX_FILE_BYTES, PolicyError, PolicySet, PolicySource, PolicySources, PolicyStore};

use crate::support::{only, with};

fn code(error: &PolicyError) -> String {
    let envelope = error.to_stable();
    assert!(!envelope.message.contains('\n'), "one line: {}", envelope.message);
    assert!(envelope.recovery_hint.is_some(), "a hint: {}", envelope.message);
    envelope.code
}

fn refused(text: &str, expected: &str, place: &str) {
    let error = with(text).unwrap_err();
    assert_eq!(code(&error), expected, "{error}");
    assert!(error.to_string().starts_with(place), "{error}");
    let store = PolicyStore::open(PolicySources::shipped().with_text(PolicySource::new("own.cedar", text)));
    assert!(store.is_err(), "a store does not open on it");
}

#[test]
fn malformed_text() {
    refused("// fine so far\n\npermit (principal action);", "policy_malformed", "own.cedar:3: ");
    refused("@id(\"a\") permit (principal, action, resource)", "policy_malformed", "own.cedar:1: ");
    refused("@id(\"a\") permit (principal, action, resource) when { nonsense };", "policy_malformed", "own.cedar:1: ");
}

/// Deep expressions overflow the stack of whoever parses, validates, evaluates or frees them.
#[test]
fn expressions_without_end() {
    let repeated = |before: &str, middle: &str, after: &str, times: usize| {
        let condition = format!("{}{middle}{}", before.repeat(times), after.repeat(times));
        format!("@id(\"a\") permit (principal, action, resource) when {{ {condition} }};")
    };
    let shapes = [
        ("(", "true", ")"),
        ("[", "1", "]"),
        ("{a:", "1", "}"),
        ("!(", "true", ")"),
        ("", "true", " && true"),
        ("true || ", "true", ""),
        ("", "1", " + 1"),
        ("1 - ", "1", ""),
        ("if true then ", "true", " else false"),
        ("if true then true else ", "true", ""),
        ("", "context", ".a"),
        ("", "context", "[\"a\"]"),
        ("", "principal", ".getTag(\"a\")"),
        ("1 == ", "1", ""),
    ];
    for (before, middle, after) in shapes {
        let error = only(&repeated(before, middle, after, 20_000)).unwrap_err();
        assert_eq!(code(&error), "policy_malformed", "{before}{middle}{after}");
        assert!(error.to_string().starts_with("own.cedar:1: too complex"), "{error}");
        // Whatever is just below the bounds must not end the process either, whether it is accepted or not.
        for times in [8, 40, 740] {
            if let Ok(set) = only(&repeated(before, middle, after, times)) {
                let _: palyra_policy::Decision = set.decide(&crate::support::execute());
            }
        }
    }
}

#[test]
fn unknown_names() {
    let policy =
        |condition: &str| format!("\n@id(\"a\")\npermit (principal, action, resource)\nwhen {{ {condition} }};");
    refused(&policy("principal in Robot::\"r2\""), "policy_unknown_entity", "own.cedar:");
    refused(
        "@id(\"a\") permit (principal, action == Action::\"tool.fly\", resource);",
        "policy_unknown_entity",
        "own.cedar:1: ",
    );
    let misspelt = "@id(\"a\") permit (principal, action == Action::\"tool.read\", resource)\nwhen { context.scope == Scope::\"workspace_raed\" };";
    refused(misspelt, "policy_unknown_entity", "own.cedar:2: ");
    let attribute = "@id(\"a\") permit (principal, action == Action::\"tool.read\", resource) when { context.skope == Scope::\"pure\" };";
    refused(attribute, "policy_invalid", "own.cedar:1: ");
    let optional = "@id(\"a\") permit (principal, action == Action::\"tool.read\", resource)\nwhen { context.sinks.destination.integrity_rank < 2 };";
    refused(optional, "policy_invalid", "own.cedar:2: ");
    let kind =
        "@id(\"a\") permit (principal, action == Action::\"tool.read\", resource) when { context.now == \"noon\" };";
    refused(kind, "policy_invalid", "own.cedar:1: ");
}

#[test]
fn a_policy_that_looks_too_far() {
    let far = "@id(\"a\") permit (principal, action == Action::\"approval.decide\", resource) when { resource.owner in Role::\"admin\" };";
    refused(far, "policy_invalid", "own.cedar");
}

#[test]
fn includes() {
    refused("include \"other.cedar\";", "policy_include", "own.cedar:1: ");
    refused("// head\ninclude own.cedar", "policy_include", "own.cedar:2: ");
    refused(
        "@include(\"own.cedar\")\n@id(\"a\") permit (principal, action, resource);",
        "policy_include",
        "own.cedar:1: ",
    );
}

#[test]
fn ids() {
    refused("permit (principal, action, resource);", "policy_id_invalid", "own.cedar:1: ");
    refused("@id(\"Not Plain\") permit (principal, action, resource);", "policy_id_invalid", "own.cedar:1: ");
    let twice = "@id(\"a\") permit (principal, action, resource);\n@id(\"a\") forbid (principal, action, resource);";
    refused(twice, "policy_duplicate_id", "own.cedar:2: ");
    let again = PolicySources::shipped().with_text(PolicySource::new(
        "/etc/palyra/policies/workspace.cedar",
        "@id(\"read\") permit (principal, action, resource);",
    ));
    let error = PolicySet::load(&again).unwrap_err();
    assert_eq!(code(&error), "policy_duplicate_id");
    assert!(error.to_string().contains("/etc/palyra/policies/workspace.cedar:1"), "{error}");
    let odd = PolicySources::default().with_text(PolicySource::new("My Rules.cedar", ""));
    assert_eq!(code(&PolicySet::load(&odd).unwrap_err()), "policy_id_invalid");
}

#[test]
fn annotations() {
    let annotated =
        |annotation: &str, effect: &str| format!("\n{annotation} @id(\"a\") {effect} (principal, action, resource);");
    refused(&annotated("@aproval(\"required\")", "permit"), "policy_annotation_invalid", "own.cedar:2: ");
    refused(&annotated("@approval(\"maybe\")", "permit"), "policy_annotation_invalid", "own.cedar:2: ");
    refused(&annotated("@guard(\"approval\")", "permit"), "policy_annotation_invalid", "own.cedar:2: ");
    refused(&annotated("@guard(\"always\")", "forbid"), "policy_annotation_invalid", "own.cedar:2: ");
    refused(
        &annotated("@guard(\"approval\") @approval(\"required\")", "forbid"),
        "policy_annotation_invalid",
        "own.cedar:2: ",
    );
    let error = with(&annotated("@aproval(\"required\")", "permit")).unwrap_err();
    assert!(error.to_string().contains("did you mean `@approval`?"), "{error}");
}

fn grant(template: &str, principal: Option<&str>, resource: Option<&str>) -> PolicyError {
    let given = |text: Option<&str>| text.map(str::to_owned);
    let grant =
        Grant { id: "g".into(), template: template.into(), principal: given(principal), resource: given(resource) };
    PolicySet::load(&PolicySources::shipped().with_grants([grant])).unwrap_err()
}

#[test]
fn grants() {
    let (me, tool) = (Some("User::\"me\""), Some("Tool::\"t\""));
    assert_eq!(code(&grant("workspace.read", me, tool)), "policy_template_without_slot");
    assert_eq!(code(&grant("grants.fly", me, tool)), "policy_template_unknown");
    assert_eq!(code(&grant("grants.use_tool", me, None)), "policy_grant_invalid");
    assert_eq!(code(&grant("grants.use_tool", Some("me"), tool)), "policy_grant_invalid");
    assert_eq!(code(&grant("grants.use_tool", Some("Robot::\"r2\""), tool)), "policy_grant_invalid");
    let one = Grant {
        id: "g".into(),
        template: "grants.connect".into(),
        principal: me.map(str::to_owned),
        resource: Some("Host::\"a\"".into()),
    };
    let twice = PolicySet::load(&PolicySources::shipped().with_grants([one.clone(), one])).unwrap_err();
    assert_eq!(code(&twice), "policy_grant_invalid");
    let error = Grant::read_list("grants.toml", "[[grant]]\nid = \"a\"\ntemplate = \"b\"\nuntil = 3\n").unwrap_err();
    assert_eq!((code(&error).as_str(), error.place().unwrap().line), ("policy_grant_invalid", 4));
}

#[test]
fn too_much() {
    let filler = "x".repeat(10 << 20);
    let error = only(&format!("// {filler}\n")).unwrap_err();
    assert_eq!(code(&error), "policy_file_too_large");
    let piece = format!("// {}\n", "x".repeat(MAX_FILE_BYTES as usize - 10));
    let many = (0..9).fold(PolicySources::default(), |sources, n| {
        sources.with_text(PolicySource::new(format!("f{n}.cedar"), piece.clone()))
    });
    assert_eq!(code(&PolicySet::load(&many).unwrap_err()), "policy_set_too_large");
    let policies: String = (0..10_001)
        .map(|n| format!("@id(\"p{n}\") forbid (principal == User::\"{n}\", action, resource);\n"))
        .collect();
    assert_eq!(code(&only(&policies).unwrap_err()), "policy_set_too_large");
}

fn directory(fill: impl FnOnce(&Path)) -> Result<PolicySet, PolicyError> {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    PolicySet::load(&PolicySources::shipped().with_directory(directory.path()))
}

#[test]
fn a_directory_is_loaded_whole() {
    let set = directory(|path| {
        fs::write(path.join("site.cedar"), "@id(\"no\") forbid (principal, action, resource);").unwrap();
        fs::write(path.join("README.md"), "about").unwrap();
        fs::write(path.join(".hidden"), "x").unwrap();
        let grant = "[[grant]]\nid = \"w\"\ntemplate = \"grants.connect\"\nprincipal = 'User::\"me\"'\nresource = 'Host::\"a\"'\n";
        fs::write(path.join("grants.toml"), grant).unwrap();
    })
    .unwrap();
    let ids: Vec<&str> = set.entries().map(|entry| entry.id.as_str()).collect();
    assert!(ids.contains(&"site.no") && ids.contains(&"grant.w") && ids.contains(&"workspace.read"), "{ids:?}");
}

#[test]
fn directories_that_cannot_be_read() {
    let missing = PolicySet::load(&PolicySources::shipped().with_directory("/nonexistent/policies")).unwrap_err();
    assert_eq!(code(&missing), "policy_not_found");
    assert_eq!(missing.to_string(), "`/nonexistent/policies` does not exist");
    let file = directory(|path| {
        fs::write(path.join("bin.cedar"), b"// one\n// two\n\xff\xfe").unwrap();
    });
    let error = file.unwrap_err();
    assert_eq!(code(&error), "policy_not_utf8");
    assert!(error.to_string().contains("bin.cedar:3"), "{error}");
    let large = directory(|path| fs::write(path.join("large.cedar"), vec![b' '; 10 << 20]).unwrap());
    assert_eq!(code(&large.unwrap_err()), "policy_file_too_large");
    let misspelt = directory(|path| fs::write(path.join("site.ceder"), "").unwrap());
    assert_eq!(code(&misspelt.unwrap_err()), "policy_file_unknown");
    let nested = directory(|path| fs::create_dir(path.join("more")).unwrap());
    assert_eq!(code(&nested.unwrap_err()), "policy_file_unknown");
    let endless = directory(|path| symlink("/dev/zero", path.join("zero.cedar")).unwrap());
    assert_eq!(code(&endless.unwrap_err()), "policy_file_unknown");
    let dangling = directory(|path| symlink("nowhere", path.join("gone.cedar")).unwrap());
    assert_eq!(code(&dangling.unwrap_err()), "policy_unreadable");
}

/// Root reads everything, so the permission itself can only be tested as somebody else.
#[test]
fn a_directory_without_permission() {
    let directory = tempfile::tempdir().unwrap();
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let loaded = PolicySet::load(&PolicySources::shipped().with_directory(&closed));
    let readable_anyway = fs::read_dir(&closed).is_ok();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    match loaded {
        Err(error) => assert_eq!(code(&error), "policy_unreadable"),
        Ok(_) => assert!(readable_anyway, "only a reader that no permission stops may load it"),
    }
}
