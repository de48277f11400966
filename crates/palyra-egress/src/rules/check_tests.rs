use super::*;

fn grant(rules: &[&str]) -> EgressGrant {
    rules.iter().fold(EgressGrant::new("test"), |grant, rule| grant.rule(rule).unwrap())
}

fn reason(grant: &EgressGrant, method: &str, url: &str) -> Option<RefusalReason> {
    let target = Target::parse(url).unwrap();
    match check(grant, &Request::visible(&target, method)) {
        Verdict::Allowed(_) => None,
        Verdict::Inspect(rule) => panic!("a visible request needs no inspection: {rule}"),
        Verdict::Refused(refusal) => {
            // The line that is shown would really have allowed the request.
            if let Some(line) = refusal.missing.as_deref() {
                let GrantLine::Rule(rule) = line else { panic!("{line}") };
                let wider = grant.clone().rule(&rule.to_string()).unwrap();
                assert!(
                    matches!(check(&wider, &Request::visible(&target, method)), Verdict::Allowed(_)),
                    "{method} {url}: {line}"
                );
            }
            Some(refusal.reason)
        }
    }
}

#[test]
fn a_request_is_allowed_by_a_rule_or_not_at_all() {
    use RefusalReason as R;
    let grant =
        grant(&["GET,HEAD https://api.example/v1", "https://*.pkg.example", "POST http://hook.example:8080/in"]);
    for (method, url, expected) in [
        ("GET", "https://api.example/v1", None),
        ("GET", "https://api.example/v1/things?x=y", None),
        ("HEAD", "https://API.example/v1/x", None),
        ("DELETE", "https://a.pkg.example/anything", None),
        ("POST", "http://hook.example:8080/in/x", None),
        ("POST", "https://api.example/v1", Some(R::MethodNotGranted)),
        ("get", "https://api.example/v1", Some(R::MethodNotGranted)),
        ("GET", "https://api.example/v2", Some(R::PathNotGranted)),
        ("GET", "https://api.example/v1/%2e%2e/v2", Some(R::PathSpelling)),
        ("GET", "https://api.example/v1/a%2f..%2f..%2fadmin", Some(R::PathSpelling)),
        ("GET", "https://api.example/v1/a%2fb", Some(R::PathSpelling)),
        ("GET", "https://api.example:8443/v1", Some(R::PortNotGranted)),
        ("GET", "http://api.example:443/v1", Some(R::SchemeNotGranted)),
        ("GET", "http://api.example/v1", Some(R::PortNotGranted)),
        ("GET", "https://pkg.example/", Some(R::HostNotGranted)),
        ("GET", "https://evilpkg.example/", Some(R::HostNotGranted)),
        ("GET", "https://other.example/", Some(R::HostNotGranted)),
        ("GET", "https://93.184.216.34/", Some(R::HostNotGranted)),
    ] {
        assert_eq!(reason(&grant, method, url), expected, "{method} {url}");
    }
    assert_eq!(reason(&EgressGrant::new("none"), "GET", "https://api.example/"), Some(R::HostNotGranted));
}

#[test]
fn the_missing_line_is_the_narrowest() {
    let target = Target::parse("https://api.example/v1/x?token=1").unwrap();
    let Verdict::Refused(refusal) = check(&EgressGrant::new("none"), &Request::visible(&target, "GET")) else {
        panic!()
    };
    assert_eq!(refusal.missing_line().unwrap(), "rules = [\"GET https://api.example/v1/x\"]");
    let refusal = check_connect(&EgressGrant::new("none"), &target.host, 8443).unwrap_err();
    assert_eq!(refusal.missing_line().unwrap(), "rules = [\"https://api.example:8443\"]");
}

#[test]
fn a_tunnel_needs_a_rule_that_sees_nothing_or_inspection() {
    let host = Host::parse("api.example").unwrap();
    let tunnel = Request::tunnel(Scheme::Https, &host, 443);
    assert!(matches!(check(&grant(&["https://api.example"]), &tunnel), Verdict::Allowed(_)));
    let mut narrow = grant(&["GET https://api.example"]);
    let Verdict::Refused(refusal) = check(&narrow, &tunnel) else { panic!() };
    assert_eq!(refusal.reason, RefusalReason::InspectionNeeded);
    assert_eq!(refusal.missing_line().unwrap(), "intercept = \"when_granted\"");
    narrow.intercept = Intercept::WhenGranted;
    assert!(matches!(check(&narrow, &tunnel), Verdict::Inspect(_)));
    assert!(matches!(check(&grant(&["http://api.example:443"]), &tunnel), Verdict::Refused(_)));
}

#[test]
fn addresses_are_all_public_or_named() {
    let grant =
        grant(&["http://db.internal:80"]).private_host("db.internal").unwrap().private_host("127.0.0.1").unwrap();
    let name = |text: &str| Host::parse(text).unwrap();
    let addresses = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
    assert!(check_addresses(&grant, &name("x.example"), &addresses(&["93.184.216.34", "2606:2800::1"])).is_ok());
    assert!(check_addresses(&grant, &name("db.internal"), &addresses(&["10.0.0.1", "93.184.216.34"])).is_ok());
    assert!(check_addresses(&grant, &name("127.0.0.1"), &addresses(&["127.0.0.1"])).is_ok());
    for (host, list, line) in [
        ("x.example", &["93.184.216.34", "10.0.0.1"][..], Some("private_hosts = [\"x.example\"]")),
        ("x.example", &["127.0.0.1"], Some("private_hosts = [\"loopback:x.example\"]")),
        ("x.example", &["100.64.0.1"], Some("private_hosts = [\"x.example\"]")),
        ("x.example", &["169.254.169.254"], None),
        ("x.example", &["::ffff:93.184.216.34"], None),
        ("db.internal", &["10.0.0.1", "169.254.169.254"], None),
        ("db.internal", &["127.0.0.1"], Some("private_hosts = [\"loopback:db.internal\"]")),
        ("127.0.0.2", &["127.0.0.2"], Some("private_hosts = [\"127.0.0.2\"]")),
        ("169.254.169.254", &["169.254.169.254"], Some("private_hosts = [\"169.254.169.254\"]")),
    ] {
        let refusal = check_addresses(&grant, &name(host), &addresses(list)).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::AddressNotPublic);
        assert_eq!(refusal.missing_line().as_deref(), line, "{host} {list:?}");
    }
}
