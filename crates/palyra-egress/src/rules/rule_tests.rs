use super::*;

#[test]
fn rules_are_written_as_they_are_read() {
    for (given, written) in [
        ("https://api.example", "https://api.example"),
        ("https://api.example/", "https://api.example"),
        ("* https://api.example", "https://api.example"),
        ("GET,HEAD https://API.example:443/v1", "GET,HEAD https://api.example/v1"),
        ("POST,GET http://a.example:8080/x/", "GET,POST http://a.example:8080/x/"),
        ("https://*.example.com", "https://*.example.com"),
        ("tcp://git.example:22", "tcp://git.example:22"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://[::1]", "http://[::1]"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
        ("  GET   https://a.example  ", "GET https://a.example"),
    ] {
        let rule = Rule::parse(given).unwrap();
        assert_eq!(rule.to_string(), written);
        assert_eq!(Rule::parse(written).unwrap(), rule);
    }
}

#[test]
fn a_wrong_rule_says_what_is_wrong() {
    for (given, said) in [
        ("", "empty"),
        ("api.example", "scheme://"),
        ("ftp://api.example", "not a scheme"),
        ("https://*", "every host"),
        ("https://*.com", "top-level"),
        ("https://*.*.example.com", "contains `*`"),
        ("https://a*.example.com", "contains `*`"),
        ("https://*.10.0.0.1", "no subdomains"),
        ("https://user@api.example", "user information"),
        ("https://api.example.", "ends with a dot"),
        ("https://0x7f.1", "unusual spelling"),
        ("https://api.example:0", "not a port"),
        ("https://api.example:", "not a port"),
        ("https://api.example:99999", "not a port"),
        ("tcp://git.example", "needs a port"),
        ("GET tcp://git.example:22", "cannot have methods"),
        ("get https://api.example", "not an upper-case method"),
        ("GET, HEAD https://api.example", "more than two words"),
        ("CONNECT https://api.example", "tunnels"),
        ("https://api.example/?q=1", "no query"),
        ("https://api.example/#f", "no query and no fragment"),
        ("https://api.example/a/../b", "dot segment"),
        ("https://api.example/%2e%2e/b", "dot segment"),
        ("https://bücher.example", "non-ASCII"),
        ("https://a.example\n", "control or non-ASCII character"),
    ] {
        let error = Rule::parse(given).unwrap_err().to_string();
        assert!(error.contains(said), "{given}: {error}");
    }
    assert!(Rule::parse(&format!("https://a.example/{}", "x".repeat(3000))).is_err());
}

#[test]
fn a_suffix_names_what_is_below_it_only() {
    let rule = Rule::parse("https://*.example.com").unwrap();
    for (host, named) in [
        ("a.example.com", true),
        ("a.b.example.com", true),
        ("example.com", false),
        ("badexample.com", false),
        ("example.com.evil.org", false),
        ("a.example.co", false),
    ] {
        assert_eq!(rule.host.matches(&Host::parse(host).unwrap()), named, "{host}");
    }
}

proptest::proptest! {
    #[test]
    fn reading_never_panics(text in "\\PC{0,80}|[A-Z,*]{0,9} ?(https?|tcp)://[a-z0-9.*:\\[\\]-]{0,20}(/[a-z%.]{0,9})?") {
        if let Ok(rule) = Rule::parse(&text) {
            proptest::prop_assert_eq!(Rule::parse(&rule.to_string()).unwrap(), rule);
        }
    }
}
