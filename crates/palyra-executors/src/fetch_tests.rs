//! No address can change what is judged, or that it is one request to one host.

use palyra_egress::{HostPattern, Methods};
use proptest::prelude::{Just, Strategy, prop, prop_assert, prop_assert_eq, proptest};
use proptest::{prop_oneof, sample};

use super::*;

/// Addresses, most of them with what other readers would take for a second host, a wildcard, a file or the end of a list.
fn urls() -> impl Strategy<Value = String> {
    let scheme =
        sample::select(vec!["http://", "https://", "HTTPS://", "https:/", "//", "file://", "url:GET:https:443:", ""]);
    let host = sample::select(vec![
        "a.example",
        "*.example",
        "a.example,b.example",
        "u@a.example",
        "a.example:8443",
        "[::1]",
        "127.1",
        "a.example.",
        "a..b",
        "xn--80ak6aa92e.com",
        "A.Example",
        "a.example:80:443",
        "a.example\\b.example",
        "a%2eexample",
        "",
    ]);
    let tricky = prop_oneof![
        sample::select("/,:?#*|\\@%&=;.\"'[]{} \n".chars().collect::<Vec<char>>()),
        proptest::char::range('a', 'e'),
        proptest::char::any(),
    ];
    let rest = prop::collection::vec(tricky, 0..24).prop_map(String::from_iter);
    prop_oneof![
        3 => (scheme, host, rest.clone()).prop_map(|(scheme, host, rest)| format!("{scheme}{host}/{rest}")),
        1 => (Just("https://"), rest.clone()).prop_map(|(scheme, rest)| format!("{scheme}{rest}")),
        1 => rest,
    ]
}

proptest! {
    #[test]
    fn an_address_is_one_request_to_the_host_that_is_asked_or_nothing(
        url in urls(), method in prop::option::of(sample::select(FetchMethod::ALL.to_vec())),
    ) {
        let arguments = json!({ "url": url, "method": method.map(|method| method.as_str()) });
        // What cannot be read is no resource of a weaker kind: the call is refused.
        let Ok((_, method, target)) = parsed(&arguments) else { return Ok(()) };
        let CallResource::Request(judged) = resource(&target, method) else { panic!("{url:?} is judged as no request") };
        let RequestTarget { method: judged_method, scheme, host, port } = judged;
        prop_assert_eq!((judged_method.as_str(), port), (method.as_str(), target.port));
        let authority = format!("{scheme}://{host}:{port}/");
        let again = Target::parse(&authority).unwrap();
        prop_assert_eq!((again.scheme, &again.host, again.port), (target.scheme, &target.host, target.port));
        // And the grant that the request is sent under names nothing else.
        let rule = rule(&target, method).unwrap();
        prop_assert!(matches!(&rule.host, HostPattern::Exact(named) if *named == target.host), "{:?}", rule);
        prop_assert!(matches!(&rule.methods, Methods::Only(named) if named.iter().eq([method.as_str()])), "{:?}", rule);
        prop_assert_eq!((rule.scheme, rule.port), (target.scheme, target.port));
    }
}

#[test]
fn what_reads_as_another_host_elsewhere_is_refused() {
    for url in [
        "https://*.example/",
        "https://a.example,b.example/",
        "https://u@a.example/",
        "https://a.example\\@b.example/",
        "https://127.1/",
        "url:GET:https:443:a.example",
        "file:///etc/passwd",
        "//a.example/",
        "https:///a",
        "",
    ] {
        assert!(parsed(&json!({ "url": url })).is_err(), "{url}");
    }
    assert!(parsed(&json!({ "url": "https://a.example/a,https://b.example/" })).is_ok());
}
