//! The examples of the ADR and of the design, as the reference judges them.

use serde_json::json;

use super::*;

fn mail() -> Reference {
    let declared = |is_consequential, roles: &[(&str, Role)]| Declared {
        destination: Some("mail".to_owned()),
        is_consequential,
        roles: roles.iter().map(|(name, role)| ((*name).to_owned(), *role)).collect(),
        closed: BTreeMap::new(),
    };
    let tools = BTreeMap::from([
        ("mail.send".to_owned(), declared(true, &[("to", Role::Target), ("body", Role::Content)])),
        ("mail.read".to_owned(), declared(false, &[])),
    ]);
    let mut reference = Reference::new(tools);
    reference.user("Send ada@example.org \"all is well\", never eve@evil.example, and pay 40 EUR.");
    reference
}

fn mandate(to: &str) -> Mandate {
    Mandate {
        tool: "mail.send".to_owned(),
        targets: BTreeMap::from([("to".to_owned(), vec![to.to_owned()])]),
        dictated: BTreeMap::new(),
        caps: BTreeMap::new(),
        count: 1,
        open: BTreeSet::new(),
    }
}

fn says(reference: &Reference, arguments: &Value) -> Says {
    reference.propose("mail.send", arguments, arguments, &BTreeMap::new())
}

#[test]
fn what_is_mentioned_is_not_authorised() {
    let reference = mail();
    assert_eq!(says(&reference, &json!({"to": "ada@example.org", "body": "hi"})), Says::Ask("no mandate"));
}

#[test]
fn a_mandate_covers_its_target_once() {
    let mut reference = mail();
    assert!(reference.state(mandate("ada@example.org")));
    let right = json!({"to": "ADA@example.org", "body": "hi"});
    assert_eq!(says(&reference, &right), Says::Permit);
    assert_eq!(says(&reference, &json!({"to": "bob@example.org", "body": "hi"})), Says::Ask("a target is not bound"));
    assert_eq!(
        says(&reference, &json!({"to": "ada@example.org", "body": "see evil.example/x"})),
        Says::Ask("content holds an address")
    );
    assert_eq!(
        says(&reference, &json!({"to": {"ada@example.org": true, "eve@x.yz": true}, "body": "hi"})),
        Says::Ask("a target is not bound")
    );
    reference.spend("mail.send", &right, &right, &BTreeMap::new());
    assert_eq!(says(&reference, &right), Says::Ask("no mandate"));
}

#[test]
fn nothing_is_admitted_that_the_user_did_not_write_or_after_untrusted_text() {
    let mut reference = mail();
    assert!(!reference.state(mandate("bob@example.org")));
    let untrusted = Label { integrity: Integrity::Untrusted, is_private: true, origins: ["mail".to_owned()].into() };
    reference.read("mail.read", untrusted, &json!({}), Shown::Text);
    assert!(!reference.state(mandate("ada@example.org")));
}

#[test]
fn what_was_seen_goes_out_only_where_the_mandate_names_it() {
    let mut reference = mail();
    assert!(reference.state(Mandate { open: ["calendar".to_owned()].into(), ..mandate("ada@example.org") }));
    let seen =
        |origin: &str| Label { integrity: Integrity::Trusted, is_private: true, origins: [origin.to_owned()].into() };
    let call = json!({"to": "ada@example.org", "body": "the code is 7"});
    reference.read("calendar.read", seen("calendar"), &json!({}), Shown::Text);
    assert_eq!(says(&reference, &call), Says::Permit);
    reference.read("bank.read", seen("bank"), &json!({}), Shown::Text);
    assert_eq!(says(&reference, &call), Says::Ask("a part is not cleared"));
}

#[test]
fn entities_are_equal_by_their_type_alone() {
    assert!(same("https://Example.org", "HTTPS://example.ORG/"));
    assert!(!same("https://example.org/A", "https://example.org/a"));
    assert!(!same("https://example.org", "http://example.org"));
    assert!(same("GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"));
    assert!(!same("GB29NWBK60161331926819", "GB29NWBK6016133192681"));
    assert!(!same("general", "General"));
}
