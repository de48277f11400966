//! Tests of the equality of each kind.

use super::*;

fn names(named: &str, value: &str) -> bool {
    let mut entities = Entities::default();
    entities.insert(Entity::parse(named).unwrap_or_else(|| panic!("{named} is no entity")), ());
    Entity::parse(value).is_some_and(|value| entities.get(&value).is_some())
}

#[test]
fn spellings_of_one_entity_are_equal() {
    for (named, value) in [
        ("https://Example.ORG/notes?a=B#c", "HTTPS://example.org/notes?a=B#c"),
        ("https://example.org", "https://example.org/"),
        ("https://example.org:443/x", "https://example.org/x"),
        ("example.org/x", "http://example.org/x"),
        ("https://example.org/x", "//example.org/x"),
        ("www.example.org", "https://www.example.org/"),
        ("Ada@Example.org", "mailto:ada@example.ORG"),
        ("https://b\u{fc}cher.example/x", "https://xn--bcher-kva.example/x"),
        ("GB29 NWBK 6016 1331 9268 19", "gb29nwbk60161331926819"),
        ("+49 30 1234567", "+49301234567"),
    ] {
        assert!(names(named, value), "{named} and {value}");
        assert!(same(named, value), "{named} and {value}");
    }
}

#[test]
fn everything_else_is_another_entity() {
    for (named, value) in [
        ("https://example.org/notes", "https://example.org"),
        ("https://example.org/notes", "https://example.org/Notes"),
        ("https://example.org/notes", "https://example.org/notes/"),
        ("https://example.org/notes", "https://example.org/notes?q=1"),
        ("https://example.org/notes", "https://example.org/notes#1"),
        ("https://example.org/notes", "http://example.org/notes"),
        ("https://example.org/a%2Fb", "https://example.org/a/b"),
        ("https://example.org", "https://example.org:8443"),
        ("https://example.org", "https://example.org@evil.example"),
        ("https://example.org", "https://example.org.evil.example"),
        ("https://paypal.com", "https://p\u{430}ypal.com"),
        ("ada@example.org", "ada+x@example.org"),
        ("ada@example.org", "example.org"),
        ("example.org", "ada@example.org"),
        ("ada@example.org", "https://ada@example.org"),
        ("GB29NWBK60161331926819", "GB29NWBK601613319268"),
        ("+49 30 1234567", "+49 30 12345678"),
    ] {
        assert!(!names(named, value), "{named} and {value}");
        assert!(!same(named, value), "{named} and {value}");
    }
}

#[test]
fn what_only_looks_like_an_address_is_none() {
    for text in
        ["https://", "http://[::1", "https://example.org/a b", "ada@", "@example.org", "hello", "1.2.3", "a/b", ""]
    {
        assert_eq!(Entity::parse(text), None, "{text}");
    }
}
