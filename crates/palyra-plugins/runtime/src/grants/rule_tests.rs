use super::*;

fn rule(text: &str) -> Rule {
    Rule::parse(text).unwrap()
}

#[test]
fn a_rule_covers_what_it_names_and_nothing_that_looks_like_it() {
    let cases = [
        ("https://api.example", "GET", "https://api.example/x?y=1", true),
        ("https://api.example", "GET", "https://API.Example:443", true),
        ("GET,HEAD https://api.example", "POST", "https://api.example/", false),
        ("https://api.example", "GET", "http://api.example/", false),
        ("https://api.example", "GET", "https://api.example:8443/", false),
        ("https://api.example:8443", "GET", "https://api.example:8443/", true),
        ("https://api.example", "GET", "https://secret.api.example/", false),
        ("https://api.example", "GET", "https://api.example.evil.test/", false),
        ("https://api.example", "GET", "https://evilapi.example/", false),
        ("https://*.example.com", "GET", "https://a.example.com/", true),
        ("https://*.example.com", "GET", "https://a.b.example.com/", true),
        ("https://*.example.com", "GET", "https://example.com/", false),
        ("https://*.example.com", "GET", "https://evilexample.com/", false),
        ("https://api.example/v1", "GET", "https://api.example/v1/users", true),
        ("https://api.example/v1/", "GET", "https://api.example/v1", true),
        ("https://api.example/v1", "GET", "https://api.example/v10", false),
        ("https://[::1]:8443", "GET", "https://[0:0::1]:8443/", true),
    ];
    for (text, method, url, covered) in cases {
        let target = Target::parse(url).unwrap();
        assert_eq!(rule(text).covers(method, &target), covered, "{text} {method} {url}");
    }
}

#[test]
fn an_address_with_two_meanings_is_refused() {
    for url in [
        "https://user@api.example/",
        "https://api.example@evil.test/",
        "https://api.example\\@evil.test/",
        "https://api.example%2eevil.test/",
        "https://api.example./",
        "https://api..example/",
        "https://ａpi.example/",
        "https:///path",
        "https://api.example:0443/",
        "https://api.example:/",
        "https://api.example:99999/",
        "ftp://api.example/",
        "file:///etc/passwd",
        "//api.example/",
        "https://api.example/v1/../admin",
        "https://api.example/v1/%2E%2e/admin",
        "https://api.example/v1/..;x/admin",
        "https://api.example/a b",
        "https://api.example/\r\nX: y",
        "https://[::1%25eth0]/",
        "https://[api.example]/",
    ] {
        assert!(Target::parse(url).is_err(), "{url}");
    }
}

#[test]
fn rules_that_nobody_means_are_refused() {
    for text in [
        "",
        "https://*",
        "https://*.com",
        "get https://a.example",
        "GET, https://a.example",
        "tcp://a.example:22",
        "GET https://a.example x",
        "https://u@a.example",
        "https://a.example?x",
        "https://a.example/../b",
    ] {
        assert!(Rule::parse(text).is_err(), "{text}");
    }
}

#[test]
fn two_rules_meet_in_what_both_allow() {
    let cases = [
        ("https://a.example", "https://a.example", Some("https://a.example")),
        ("https://*.example.com", "GET https://a.example.com", Some("GET https://a.example.com")),
        ("GET,POST https://*.example.com", "GET,PUT https://a.example.com/v1", Some("GET https://a.example.com/v1")),
        ("https://*.example.com", "https://*.b.example.com", Some("https://*.b.example.com")),
        ("GET https://a.example", "POST https://a.example", None),
        ("https://a.example/v1", "https://a.example/v2", None),
        ("https://a.example", "http://a.example", None),
        ("https://a.example:444", "https://a.example", None),
        ("https://*.example.com", "https://example.com", None),
        ("https://*.one.example", "https://*.two.example", None),
    ];
    for (one, two, expected) in cases {
        for (one, two) in [(one, two), (two, one)] {
            assert_eq!(rule(one).meet(&rule(two)).map(|rule| rule.to_string()).as_deref(), expected, "{one} and {two}");
        }
    }
}

#[test]
fn a_rule_is_written_as_it_is_read() {
    for text in ["GET,HEAD https://api.example/v1", "https://*.example.com", "http://api.example:8080"] {
        assert_eq!(rule(text).to_string(), text);
    }
}
