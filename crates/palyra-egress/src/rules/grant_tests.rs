use super::*;

const TEXT: &str = r#"
id = "build"
rules = ["GET,HEAD https://crates.example/api", "https://*.example.com", "tcp://git.example:22"]
private_hosts = ["db.internal", "loopback:build.test", "169.254.169.254"]
intercept = "when_granted"
[limits]
upload_bytes = 1000
[[credentials]]
host = "crates.example"
place = { header = "Authorization" }
secret = "env:CRATES_TOKEN"
placeholder = "palyra-placeholder-1"
template = "Bearer {}"
"#;

#[test]
fn a_grant_is_plain_text() {
    let grant: EgressGrant = toml::from_str(TEXT).unwrap();
    grant.validate().unwrap();
    assert_eq!(grant.rules.len(), 3);
    assert_eq!(grant.limits.upload_bytes, 1000);
    assert_eq!(grant.limits.concurrent, EgressLimits::default().concurrent);
    let again: EgressGrant = toml::from_str(&toml::to_string(&grant).unwrap()).unwrap();
    assert_eq!(again, grant);
}

#[test]
fn what_is_unknown_or_nothing_is_refused() {
    assert!(toml::from_str::<EgressGrant>("id = \"x\"\nrule = []").is_err(), "unknown field");
    assert!(toml::from_str::<EgressGrant>("id = \"x\"\nrules = [\"nonsense\"]").is_err(), "unreadable rule");
    for line in ["upload_bytes", "download_bytes", "time_ms", "idle_ms", "connect_ms", "concurrent", "header_bytes"] {
        let grant: EgressGrant = toml::from_str(&format!("id = \"x\"\n[limits]\n{line} = 0")).unwrap();
        assert!(grant.validate().unwrap_err().to_string().contains(line));
    }
    let valid: EgressGrant = toml::from_str(TEXT).unwrap();
    let with = |change: fn(&mut CredentialBinding)| {
        let mut grant = valid.clone();
        change(grant.credentials.first_mut().unwrap());
        grant.validate()
    };
    assert!(with(|_| {}).is_ok());
    assert!(
        with(|credential| credential.host = Host::parse("other.example").unwrap()).is_err(),
        "a host without a rule"
    );
    assert!(with(|credential| credential.placeholder = "short".into()).is_err());
    assert!(with(|credential| credential.template = "Bearer".into()).is_err());
    assert!(with(|credential| credential.place = CredentialPlace::Header("Host".into())).is_err());
    assert!(with(|credential| credential.place = CredentialPlace::Header("a b".into())).is_err());
    assert!(with(|credential| credential.place = CredentialPlace::Query(String::new())).is_err());
}

fn allows(line: &PrivateHost, host: &Host, address: IpAddr) -> bool {
    line.allows(host, address, classify(address))
}

#[test]
fn a_private_host_reaches_its_class_and_no_other() {
    for (text, address, allowed) in [
        ("db.internal", "10.0.0.1", true),
        ("db.internal", "100.64.0.1", true),
        ("db.internal", "fd00::1", true),
        ("db.internal", "127.0.0.1", false),
        ("db.internal", "169.254.169.254", false),
        ("db.internal", "fd00:ec2::254", false),
        ("db.internal", "::ffff:10.0.0.1", false),
        ("loopback:db.internal", "127.0.0.1", true),
        ("loopback:db.internal", "10.0.0.1", false),
        ("link_local:db.internal", "169.254.1.1", true),
        ("link_local:db.internal", "169.254.169.254", false),
    ] {
        let line = PrivateHost::parse(text).unwrap();
        assert_eq!(line.to_string(), text);
        assert_eq!(
            allows(&line, &Host::Name("db.internal".into()), address.parse().unwrap()),
            allowed,
            "{text} {address}"
        );
        assert!(!allows(&line, &Host::Name("other.internal".into()), address.parse().unwrap()));
    }
    let literal = PrivateHost::parse("169.254.169.254").unwrap();
    let address: IpAddr = "169.254.169.254".parse().unwrap();
    assert!(allows(&literal, &Host::Address(address), address));
    assert!(
        !allows(&literal, &Host::Name("metadata.internal".into()), address),
        "a name never inherits what an address was granted"
    );
    for text in [
        "metadata:x.example",
        "public:x.example",
        "embedded:x.example",
        "unknown:x.example",
        "loopback:127.0.0.1",
        "",
        "*.internal",
        "a b",
    ] {
        assert!(PrivateHost::parse(text).is_err(), "{text}");
    }
    assert_eq!(PrivateHost::parse("::1").unwrap().to_string(), "::1");
}
