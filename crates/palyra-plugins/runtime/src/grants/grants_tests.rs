use super::*;

fn http(rules: &[&str]) -> CapabilityGrantSet {
    CapabilityGrantSet {
        http: rules.iter().map(|rule| HttpGrant { rule: (*rule).to_owned() }).collect(),
        ..CapabilityGrantSet::default()
    }
}

fn rules(set: &CapabilityGrantSet) -> Vec<&str> {
    set.http.iter().map(|grant| grant.rule.as_str()).collect()
}

#[test]
fn a_rule_survives_where_all_three_agree() {
    let requested = http(&["https://api.example", "https://other.example"]);
    let manifest = http(&["https://api.example", "https://*.example.com"]);
    let operator = http(&["GET https://api.example"]);
    assert_eq!(rules(&CapabilityGrantSet::narrowed(&requested, &manifest, &operator)), ["GET https://api.example"]);
    let nothing = CapabilityGrantSet::default();
    for set in [
        CapabilityGrantSet::narrowed(&nothing, &manifest, &operator),
        CapabilityGrantSet::narrowed(&requested, &nothing, &operator),
        CapabilityGrantSet::narrowed(&requested, &manifest, &nothing),
    ] {
        assert_eq!(set, nothing);
    }
}

#[test]
fn what_cannot_be_read_grants_nothing() {
    let odd = http(&["https://*", "anything", ""]);
    assert_eq!(CapabilityGrantSet::narrowed(&odd, &odd, &odd), CapabilityGrantSet::default());
}

#[test]
fn the_same_permission_is_not_said_twice() {
    let one = http(&["https://*.example.com", "https://a.example.com", "https://a.example.com"]);
    assert_eq!(rules(&CapabilityGrantSet::narrowed(&one, &one, &one)), ["https://*.example.com"]);
}

#[test]
fn revealing_needs_all_three() {
    let secret = |usage, hosts: &[&str]| CapabilityGrantSet {
        secrets: vec![SecretGrant {
            name: "token".to_owned(),
            usage,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        }],
        ..CapabilityGrantSet::default()
    };
    let reveal = secret(SecretUse::Reveal, &[]);
    let bind = secret(SecretUse::Bind, &[]);
    assert_eq!(CapabilityGrantSet::narrowed(&reveal, &reveal, &reveal).secrets[0].usage, SecretUse::Reveal);
    for (one, two, three) in [(&bind, &reveal, &reveal), (&reveal, &bind, &reveal), (&reveal, &reveal, &bind)] {
        assert_eq!(CapabilityGrantSet::narrowed(one, two, three).secrets[0].usage, SecretUse::Bind);
    }
    let (here, there) = (secret(SecretUse::Bind, &["a.example"]), secret(SecretUse::Bind, &["b.example"]));
    assert!(CapabilityGrantSet::narrowed(&here, &there, &bind).secrets.is_empty());
    let both = CapabilityGrantSet::narrowed(&here, &secret(SecretUse::Bind, &["a.example", "b.example"]), &bind);
    assert_eq!(both.secrets[0].hosts, ["a.example"]);
    assert!(both.secrets[0].may_go_to("a.example") && !both.secrets[0].may_go_to("b.example"));
}

#[test]
fn quotas_take_the_smaller_number() {
    let space = |name: &str, max_bytes, max_keys| StorageGrant { name: name.to_owned(), max_bytes, max_keys };
    let set = |storage| CapabilityGrantSet { storage, ..CapabilityGrantSet::default() };
    let narrowed = CapabilityGrantSet::narrowed(
        &set(vec![space("notes", 100, 10), space("other", 1, 1)]),
        &set(vec![space("notes", 50, 100)]),
        &set(vec![space("notes", 70, 5)]),
    );
    assert_eq!(narrowed.storage, [space("notes", 50, 5)]);
}
