use super::*;

#[test]
fn addresses_are_read_and_written_back() {
    for (given, written) in [
        ("http://example.com", "http://example.com/"),
        ("HTTPS://Example.COM/A?b=c#d", "https://example.com/A?b=c"),
        ("https://example.com:443/", "https://example.com/"),
        ("http://example.com:8080?q", "http://example.com:8080/?q"),
        ("http://[2606:2800::1]:81/x", "http://[2606:2800::1]:81/x"),
        ("https://example.com/Zürich?ö=ü", "https://example.com/Z%C3%BCrich?%C3%B6=%C3%BC"),
        ("https://example.com/a{b}", "https://example.com/a%7Bb%7D"),
    ] {
        assert_eq!(Target::parse(given).unwrap().url(), written, "{given}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for url in [
        "",
        "example.com",
        "//example.com/",
        "http:/example.com",
        "http:example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "gopher://example.com/",
        "data:text/plain,x",
        "http://",
        "http:///x",
        "http://a b/",
        "http://a\t.com/",
        "http://exa\nmple.com/",
        "http://user:password@example.com/",
        "http://example.com@evil.example/",
        "http://example.com:@evil.example/",
        "http://example.com:0/",
        "http://example.com:00080/",
        "http://example.com:65536/",
        "http://example.com:+80/",
        "http://example.com:80:80/",
        "http://example.com:8o/",
        "http://example.com:/",
        "http://example.com\\@evil.example/",
        "http://example.com/a\\..\\b",
        "http://[::1",
        "http://[::1]x/",
        "http://::1/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://example.com./",
        "http://ex%61mple.com/",
        "http://example.com%00/",
        "http://example.com/\u{0}",
        "http://[::1%25lo]/",
        "http://①.example/",
        "http://.example/",
        "http://a..example/",
    ] {
        let error = Target::parse(url).unwrap_err();
        assert!(!error.to_string().contains("password"), "{error}");
    }
    assert!(Target::parse(&format!("http://example.com/{}", "a".repeat(20_000))).is_err());
}

#[test]
fn references_are_joined_by_the_book() {
    let base = Target::parse("http://a.example/b/c/d?q").unwrap();
    for (reference, joined) in [
        ("g", "http://a.example/b/c/g"),
        ("./g", "http://a.example/b/c/g"),
        ("g/", "http://a.example/b/c/g/"),
        ("/g", "http://a.example/g"),
        ("//g.example", "http://g.example/"),
        ("?y", "http://a.example/b/c/d?y"),
        ("g?y", "http://a.example/b/c/g?y"),
        ("#s", "http://a.example/b/c/d?q"),
        ("", "http://a.example/b/c/d?q"),
        (".", "http://a.example/b/c/"),
        ("..", "http://a.example/b/"),
        ("../g", "http://a.example/b/g"),
        ("../../../g", "http://a.example/g"),
        ("https://z.example:8443/x", "https://z.example:8443/x"),
        ("g?u=http://x/", "http://a.example/b/c/g?u=http://x/"),
    ] {
        assert_eq!(base.join(reference).unwrap().url(), joined, "{reference}");
    }
    for reference in [
        "\\\\evil.example",
        "/\\evil.example",
        "javascript:x",
        "mailto:a@b",
        "http:evil.example",
        "//user@evil.example/",
    ] {
        assert!(base.join(reference).is_err(), "{reference}");
    }
}

proptest::proptest! {
    #[test]
    fn reading_never_panics_and_is_stable(text in "(https?://)?\\PC{0,60}", reference in "\\PC{0,40}") {
        if let Ok(target) = Target::parse(&text) {
            proptest::prop_assert_eq!(&Target::parse(&target.url()).unwrap(), &target);
            if let Ok(joined) = target.join(&reference) {
                proptest::prop_assert_eq!(&Target::parse(&joined.url()).unwrap(), &joined);
            }
        }
    }
}
