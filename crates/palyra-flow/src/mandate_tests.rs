//! Tests of what is left of mandates.

use super::*;

fn to(tool: &str, destinations: &[&str]) -> Mandate {
    Mandate { destinations: destinations.iter().map(|&name| name.to_owned()).collect(), ..Mandate::of(tool) }
}

fn use_of(mandate: usize) -> Spent {
    Spent { mandate, members: BTreeSet::new() }
}

#[test]
fn nothing_is_stated_after_the_first_reading() {
    let mut mandates = Mandates::default();
    assert!(!mandates.state(vec![Mandate::of("mail.send")], Planner::Tainted));
    assert!(!mandates.state(vec![Mandate::of("mail.send")], Planner::Blind));
    assert!(mandates.all().is_empty());
    assert!(mandates.state(vec![Mandate::of("mail.send")], Planner::Fresh));
}

#[test]
fn a_mandate_is_used_up() {
    let mut mandates = Mandates::default();
    mandates.state(vec![to("mail.send", &["a@x.org", "b@x.org"]), Mandate::of("chat.post")], Planner::Fresh);
    assert!(mandates.spend(&use_of(0)) && mandates.spend(&use_of(0)) && !mandates.spend(&use_of(0)));
    assert!(mandates.spend(&use_of(1)) && !mandates.spend(&use_of(1)));
    assert!(!mandates.spend(&use_of(7)));
}

#[test]
fn stating_the_same_again_gives_no_further_use() {
    let mut mandates = Mandates::default();
    mandates.state(vec![to("mail.send", &["a@x.org"]), to("mail.send", &["a@x.org"])], Planner::Fresh);
    assert!(mandates.spend(&use_of(0)));
    mandates.state(vec![to("mail.send", &["a@x.org"])], Planner::Fresh);
    assert_eq!(mandates.all().len(), 1);
    assert!(!mandates.spend(&use_of(0)));
    mandates.state(vec![Mandate { times: Some(3), ..to("mail.send", &["a@x.org"]) }], Planner::Fresh);
    assert!(mandates.spend(&use_of(0)) && mandates.spend(&use_of(0)) && !mandates.spend(&use_of(0)));
}

#[test]
fn what_a_person_agreed_to_is_done() {
    let mut mandates = Mandates::default();
    mandates.state(vec![to("bank.pay", &["a@x.org"]), to("bank.pay", &["b@x.org"])], Planner::Fresh);
    mandates.fulfil("mail.send", None);
    mandates.fulfil("bank.pay", Some(&use_of(1)));
    assert!(!mandates.spend(&use_of(1)), "agreed to because of something else in the call");
    mandates.fulfil("bank.pay", None);
    assert!(!mandates.spend(&use_of(0)), "agreed to with another amount");
}

#[test]
fn another_spelling_is_no_other_mandate() {
    let mut mandates = Mandates::default();
    mandates.state(vec![to("mail.send", &["a@x.org"]), to("mail.send", &["A@X.org"])], Planner::Fresh);
    assert_eq!(mandates.all().len(), 1);
}

#[test]
fn each_member_of_a_listing_is_acted_on_once() {
    let mut mandates = Mandates::default();
    let each = Bound::Each(Each { each: "tickets.list".to_owned() });
    let close = Mandate { arguments: [("id".to_owned(), each)].into(), ..Mandate::of("tickets.close") };
    mandates.state(vec![close], Planner::Fresh);
    let member = |id: &str| Spent { mandate: 0, members: [id.to_owned()].into() };
    assert!(mandates.spend(&member("7")) && mandates.spend(&member("8")) && !mandates.spend(&member("7")));
}

#[test]
fn a_person_grants_without_a_limit_and_takes_back() {
    let mut mandates = Mandates::default();
    mandates.grant(vec![Mandate::of("mail.send")]);
    assert!(mandates.spend(&use_of(0)) && mandates.spend(&use_of(0)));
    mandates.revoke("mail.send");
    assert!(!mandates.spend(&use_of(0)));
}

#[test]
fn bound_values_are_read_as_models_write_them() {
    let text = r#"{"tool": "t", "destinations": ["a"], "arguments": {"n": 5, "id": {"each": "l"}}, "times": 2, "from": ["workspace", "mcp.mail"]}"#;
    let mandate: Mandate = serde_json::from_str(text).unwrap();
    assert_eq!(mandate.arguments.get("n"), Some(&Bound::Exactly(serde_json::json!(5))));
    assert_eq!(mandate.arguments.get("id"), Some(&Bound::Each(Each { each: "l".to_owned() })));
    assert_eq!(mandate.from, [DataOrigin::Workspace, DataOrigin::Server("mail".to_owned())].into());
    assert!(serde_json::from_str::<Mandate>(r#"{"tool": "t", "from": ["elsewhere"]}"#).is_err());
    assert!(serde_json::from_str::<Mandate>(r#"{"tool": "t", "to": "x"}"#).is_err());
}
