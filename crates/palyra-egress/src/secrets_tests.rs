use super::*;

struct Fixed(&'static str);

#[async_trait]
impl SecretSource for Fixed {
    async fn resolve(&self, _: &SecretRef) -> Result<SecretString, String> {
        Ok(SecretString::from(self.0.to_owned()))
    }
}

const PLACEHOLDER: &str = "palyra-placeholder";

fn grant(place: CredentialPlace, template: &str) -> EgressGrant {
    let mut grant = EgressGrant::new("t").rule("https://api.example").unwrap().rule("http://api.example").unwrap();
    let mut binding = CredentialBinding::header("api.example", "x", "env:TOKEN".parse().unwrap(), PLACEHOLDER).unwrap();
    binding.place = place;
    binding.template = template.to_owned();
    grant.credentials.push(binding);
    grant.validate().unwrap();
    grant
}

async fn run(
    grant: &EgressGrant,
    url: &str,
    header: Option<(&'static str, &str)>,
    secret: &'static str,
) -> Result<(Injected, Target, HeaderMap), EgressError> {
    let mut target = Target::parse(url).unwrap();
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = header {
        headers.insert(name, value.parse().unwrap());
    }
    let injected = inject(&Fixed(secret), grant, &mut target, &mut headers).await?;
    Ok((injected, target, headers))
}

#[tokio::test]
async fn the_named_header_of_the_named_host_is_filled() {
    let grant = grant(CredentialPlace::Header("Authorization".into()), "Bearer {}");
    let basic = format!("Basic {}", STANDARD.encode(format!("git:{PLACEHOLDER}")));
    let basic_filled = format!("Basic {}", STANDARD.encode("git:s3cret-value"));
    for (url, header, expected, count) in [
        ("https://api.example/", None, Some("Bearer s3cret-value"), 1),
        ("https://api.example/", Some(("authorization", "token palyra-placeholder")), Some("token s3cret-value"), 1),
        ("https://api.example/", Some(("authorization", basic.as_str())), Some(basic_filled.as_str()), 1),
        ("https://api.example/", Some(("authorization", "the guest's own")), Some("the guest's own"), 0),
        ("http://api.example/", None, None, 0),
        ("http://api.example/", Some(("authorization", PLACEHOLDER)), Some(PLACEHOLDER), 0),
        ("https://other.example/", None, None, 0),
        ("https://other.example/", Some(("authorization", PLACEHOLDER)), Some(PLACEHOLDER), 0),
    ] {
        let (injected, _, headers) = run(&grant, url, header, "s3cret-value").await.unwrap();
        assert_eq!(headers.get("authorization").map(|value| value.to_str().unwrap()), expected, "{url} {header:?}");
        assert_eq!(injected.count, count);
        assert_eq!(injected.secrets.len(), usize::from(url.contains("api.example")));
        assert!(count == 0 || headers["authorization"].is_sensitive());
        assert!(!format!("{injected:?}").contains("s3cret"));
    }
    let (_, _, headers) =
        run(&grant, "https://api.example/", Some(("x-other", PLACEHOLDER)), "s3cret-value").await.unwrap();
    assert_eq!(headers["x-other"], PLACEHOLDER, "another header keeps the placeholder");
}

#[tokio::test]
async fn the_named_field_of_the_query_is_filled() {
    let grant = grant(CredentialPlace::Query("key".into()), "{}");
    for (url, expected) in [
        ("https://api.example/p?a=1", "https://api.example/p?a=1&key=s3cret%26value"),
        ("https://api.example/p?key=palyra-placeholder&b=2", "https://api.example/p?key=s3cret%26value&b=2"),
        ("https://api.example/p?key=own", "https://api.example/p?key=own"),
        ("https://api.example/p", "https://api.example/p?key=s3cret%26value"),
        ("http://api.example/p?key=palyra-placeholder", "http://api.example/p?key=palyra-placeholder"),
    ] {
        let (_, target, _) = run(&grant, url, None, "s3cret&value").await.unwrap();
        assert_eq!(target.url(), expected);
        assert!(!target.to_string().contains("s3cret"), "{target}");
    }
}

#[tokio::test]
async fn a_secret_that_cannot_be_protected_is_not_sent() {
    let grant = grant(CredentialPlace::Header("Authorization".into()), "{}");
    for secret in ["short", "with\nline break"] {
        let error = run(&grant, "https://api.example/", None, secret).await.unwrap_err();
        assert_eq!(error.code(), "egress_secret_unavailable");
        assert!(!error.to_string().contains(secret));
    }
    let mut target = Target::parse("https://api.example/").unwrap();
    assert!(inject(&NoSecrets, &grant, &mut target, &mut HeaderMap::new()).await.is_err());
}
