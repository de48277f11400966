use super::*;

#[test]
fn one_spelling_is_accepted() {
    for (text, shown) in [
        ("example.com", "example.com"),
        ("EXAMPLE.com", "example.com"),
        ("a_b.example", "a_b.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("localhost", "localhost"),
        ("1.example", "1.example"),
    ] {
        assert_eq!(Host::parse(text).unwrap().to_string(), shown, "{text}");
        assert_eq!(Host::parse(shown).unwrap().to_string(), shown, "canonical spellings stay as they are");
    }
    assert_eq!(Host::parse_bare("::1").unwrap(), Host::parse("[::1]").unwrap());
}

#[test]
fn odd_spellings_are_named() {
    use HostProblem as P;
    for (text, problem) in [
        ("", P::Empty),
        ("0177.0.0.1", P::OddAddress),
        ("0x7f.0.0.1", P::OddAddress),
        ("0x7f000001", P::OddAddress),
        ("2130706433", P::OddAddress),
        ("127.1", P::OddAddress),
        ("127.0.1", P::OddAddress),
        ("1.2.3.4.5", P::OddAddress),
        ("256.1.1.1", P::OddAddress),
        ("127.0.0.01", P::OddAddress),
        ("127.0.0.0x1", P::OddAddress),
        ("example.0x", P::OddAddress),
        ("example.com.", P::TrailingDot),
        ("127.0.0.1.", P::TrailingDot),
        ("a..b", P::EmptyLabel),
        (".example", P::EmptyLabel),
        ("user@example.com", P::UserInformation),
        ("ex%61mple.com", P::PercentEncoded),
        ("[fe80::1%25eth0]", P::ZoneId),
        ("[fe80::1%eth0]", P::ZoneId),
        ("::1", P::Brackets),
        ("[::1", P::Brackets),
        ("[127.0.0.1]", P::Brackets),
        ("[v1.x]", P::Brackets),
        ("exa mple.com", P::ControlCharacter),
        ("example.com\0", P::ControlCharacter),
        ("example.com\r\nx", P::ControlCharacter),
        ("exa\tmple.com", P::ControlCharacter),
        ("-a.example", P::Hyphen),
        ("a-.example", P::Hyphen),
        ("a\\b.example", P::Character('\\')),
        ("a/b", P::Character('/')),
        ("a*.example", P::Character('*')),
        ("a;b", P::Character(';')),
        ("xn--\u{61}.example", P::Punycode),
        ("xn--example-.com", P::Hyphen),
    ] {
        assert_eq!(Host::parse(text).unwrap_err(), problem, "{text:?}");
    }
    let long = format!("{}.example", "a".repeat(64));
    assert_eq!(Host::parse(&long).unwrap_err(), P::TooLong);
    let many = format!("{}example", "abcdefgh.".repeat(40));
    assert_eq!(Host::parse(&many).unwrap_err(), P::TooLong);
}

#[test]
fn a_name_in_other_letters_is_refused_with_what_it_may_mean() {
    let problem = Host::parse("bücher.example").unwrap_err();
    assert_eq!(problem, HostProblem::NotAscii { ascii: Some("xn--bcher-kva.example".into()) });
    // Full-width digits and the circled ones fold into an address in some programs.
    for text in ["１２７.0.0.1", "①②⑦.0.0.1", "loc\u{3002}alhost", "ex\u{ad}ample.com", "\u{202e}moc.elpmaxe"]
    {
        assert!(matches!(Host::parse(text), Err(HostProblem::NotAscii { .. })), "{text}");
    }
}

proptest::proptest! {
    /// Whatever is accepted is canonical: reading it again gives the same host in the same spelling.
    #[test]
    fn accepted_hosts_are_canonical(text in "\\PC{0,40}|[a-z0-9.x-]{0,20}|\\[[0-9a-f:.%]{0,30}\\]") {
        if let Ok(host) = Host::parse(&text) {
            let shown = host.to_string();
            proptest::prop_assert_eq!(&Host::parse(&shown).unwrap(), &host);
            proptest::prop_assert_eq!(shown.to_ascii_lowercase(), shown);
        }
    }
}
