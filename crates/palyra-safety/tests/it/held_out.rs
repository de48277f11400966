//! A second corpus, held out: tokens made from what providers publish about their formats, in files as people have them.
//!
//! It shares nothing with the detectors and nothing with the first corpus: its own dice, its own alphabets and checksum, formats written down
//! from the providers' documentation rather than from the table. So it says what the first corpus cannot: whether the table says what providers
//! say. Formats without any mark of their own (a bare 32 digit hexadecimal number) are not here; no scanner can tell them from a checksum.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use palyra_safety::{Scanner, StreamScanner, redact, views};

/// Xorshift: repeatable, and nobody else's.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as usize % bound
    }

    fn of(&mut self, letters: &str, length: usize) -> String {
        let letters: Vec<char> = letters.chars().collect();
        (0..length).map(|_| letters[self.below(letters.len())]).collect()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }

    fn digits(&mut self, length: usize) -> String {
        // A number does not begin with a nought.
        let first = self.of("123456789", 1);
        first + &self.of("0123456789", length - 1)
    }

    fn hex(&mut self, length: usize) -> String {
        self.of("0123456789abcdef", length)
    }

    fn alnum(&mut self, length: usize) -> String {
        self.of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", length)
    }

    fn lower(&mut self, length: usize) -> String {
        self.of("abcdefghijklmnopqrstuvwxyz0123456789", length)
    }

    fn upper(&mut self, length: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", length)
    }

    fn url(&mut self, length: usize) -> String {
        self.of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", length)
    }

    fn base64(&mut self, bytes: usize) -> String {
        let bytes = self.bytes(bytes);
        STANDARD.encode(bytes)
    }
}

/// Cyclic redundancy check with the polynomial of Ethernet, by table, as a checksum of tokens is described by those who issue them.
fn crc(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|n| (0..8).fold(n, |value, _| if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 }))
        .collect();
    !bytes
        .iter()
        .fold(0xFFFF_FFFF, |value: u32, byte| table[((value ^ u32::from(*byte)) & 0xFF) as usize] ^ (value >> 8))
}

fn with_checksum(prefix: &str, body: &str) -> String {
    let digits: Vec<char> = ('0'..='9').chain('A'..='Z').chain('a'..='z').collect();
    let mut value = crc(body.as_bytes()) as usize;
    let mut sum = Vec::new();
    for _ in 0..6 {
        sum.push(digits[value % 62]);
        value /= 62;
    }
    format!("{prefix}{body}{}", sum.iter().rev().collect::<String>())
}

/// A secret as it is handed out: the text that carries it, and the part that must not be readable afterwards.
pub(crate) struct Sample {
    pub(crate) kind: &'static str,
    text: String,
    secret: String,
}

fn plain(kind: &'static str, token: String) -> Sample {
    Sample { kind, secret: token.clone(), text: token }
}

fn inside(kind: &'static str, before: &str, secret: String, after: &str) -> Sample {
    Sample { kind, text: format!("{before}{secret}{after}"), secret }
}

fn pem(chance: &mut Chance, label: &str, bytes: usize) -> String {
    let body = chance.base64(bytes);
    let lines: Vec<&str> = body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----", lines.join("\n"))
}

/// One token of each format.
pub(crate) fn samples(seed: u64) -> Vec<Sample> {
    let mut chance = Chance::new(seed);
    let c = &mut chance;
    let mut all = forges(c);
    all.extend(clouds(c));
    all.extend(models(c));
    all.extend(registries(c));
    all.extend(services(c));
    all.extend(keys_and_addresses(c));
    all
}

/// Places where code is kept.
fn forges(c: &mut Chance) -> Vec<Sample> {
    let mut all = Vec::new();
    for prefix in ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] {
        let body = c.alnum(30);
        all.push(plain("github", with_checksum(prefix, &body)));
    }
    all.push(plain("github_fine_grained", format!("github_pat_{}_{}", c.alnum(22), c.alnum(59))));
    for prefix in ["glpat-", "gldt-", "glrt-", "glft-", "glsoat-"] {
        all.push(plain("gitlab", format!("{prefix}{}", c.url(20))));
    }
    all.push(plain("gitlab", format!("glpat-{}.{}.{}", c.url(27), c.of("0123456789abcdef", 2), c.lower(9))));
    all.push(plain("gitlab_trigger", format!("glptt-{}", c.hex(40))));
    all.push(plain("gitlab_agent", format!("glagent-{}", c.url(50))));
    all.push(plain("gitlab_oauth", format!("gloas-{}", c.hex(64))));
    all.push(plain("gitlab_mail", format!("glimt-{}", c.lower(25))));
    all.push(plain("gitlab_job", format!("glcbt-{}_{}", c.hex(2), c.url(20))));
    all.push(plain("gitlab_runner", format!("GR1348941{}", c.url(20))));
    all.push(plain("bitbucket", format!("ATBB{}", c.alnum(32))));
    all.push(plain("atlassian", format!("ATATT3xFfGF0{}={}", c.url(171), c.of("0123456789ABCDEF", 8))));
    all.push(plain("sourcegraph", format!("sgp_{}_{}", c.hex(16), c.hex(40))));
    all.push(plain("buildkite", format!("bkua_{}", c.hex(40))));
    all
}

/// Clouds and hosts.
fn clouds(c: &mut Chance) -> Vec<Sample> {
    let base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut all = vec![
        plain("aws_key_id", format!("AKIA{}", c.of(base32, 16))),
        plain("aws_key_id", format!("ASIA{}", c.of(base32, 16))),
    ];
    let before = format!("[default]\naws_access_key_id = AKIA{}\naws_secret_access_key = ", c.of(base32, 16));
    all.push(inside("aws_secret", &before, c.base64(30), "\nregion = eu-west-1"));
    all.push(inside("aws_secret", "AWS_SECRET_ACCESS_KEY=", c.base64(30), ""));
    all.push(inside("aws_secret", "\"SecretAccessKey\": \"", c.base64(30), "\""));
    let bedrock = format!("BedrockAPIKey-{}-at-{}:{}", c.lower(4), c.digits(12), c.base64(40));
    all.push(plain("aws_bedrock", format!("ABSK{}", STANDARD.encode(bedrock))));
    all.push(plain("google_api", format!("AIza{}", c.url(35))));
    all.push(plain("google_client_secret", format!("GOCSPX-{}", c.url(28))));
    all.push(plain("google_access", format!("ya29.a0{}", c.url(180))));
    let key = pem(c, "PRIVATE KEY", 1218).replace('\n', "\\n");
    let account = format!(
        "{{\"type\":\"service_account\",\"project_id\":\"p\",\"private_key_id\":\"{}\",\"private_key\":\"",
        c.hex(40)
    );
    all.push(inside(
        "google_service_account",
        &account,
        key,
        "\\n\",\"client_email\":\"a@p.iam.gserviceaccount.com\"}",
    ));
    let before = "DefaultEndpointsProtocol=https;AccountName=store;AccountKey=";
    all.push(inside("azure_storage", before, c.base64(64), ";EndpointSuffix=core.windows.net"));
    let before = "Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=";
    all.push(inside("azure_bus", before, c.base64(32), ""));
    let signature = c.base64(32).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let before = "https://store.blob.core.windows.net/c?sv=2024-11-04&sr=c&sp=rl&se=2027-01-01&sig=";
    all.push(inside("azure_signature", before, signature, ""));
    for digit in ["7", "8", "6", "9"] {
        let dotted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
        all.push(plain("azure_client", format!("{}{digit}Q~{}", c.alnum(3), c.of(dotted, 34))));
    }
    all.push(plain("azure_devops", format!("{}JQQJ99{}AZDO{}", c.alnum(52), c.alnum(18), c.alnum(4))));
    for prefix in ["dop_v1_", "doo_v1_", "dor_v1_"] {
        all.push(plain("digitalocean", format!("{prefix}{}", c.hex(64))));
    }
    all.push(plain("heroku", format!("HRKU-AA{}", c.url(58))));
    all.push(plain("fly", format!("fm2_{}", c.base64(120))));
    all.push(plain("fly", format!("fo1_{}", c.url(43))));
    all.push(plain("netlify", format!("nfp_{}", c.alnum(36))));
    all.push(plain("terraform", format!("{}.atlasv1.{}", c.alnum(14), c.alnum(67))));
    all.push(plain("pulumi", format!("pul-{}", c.hex(40))));
    all.push(plain("vault", format!("hvs.{}", c.url(95))));
    all.push(plain("vault", format!("hvb.{}", c.url(160))));
    all.push(plain("databricks", format!("dapi{}", c.hex(32))));
    all.push(plain("databricks", format!("dapi{}-2", c.hex(32))));
    all.push(plain("planetscale", format!("pscale_tkn_{}", c.url(43))));
    all.push(plain("planetscale", format!("pscale_pw_{}", c.url(43))));
    all.push(plain("supabase", format!("sbp_{}", c.hex(40))));
    all.push(plain("supabase", format!("sb_secret_{}_{}", c.url(22), c.url(8))));
    all.push(plain("tailscale", format!("tskey-auth-k{}CNTRL-{}", c.alnum(11), c.alnum(32))));
    all.push(plain("tailscale", format!("tskey-api-k{}CNTRL-{}", c.alnum(11), c.alnum(32))));
    all.push(plain("cloudflare_origin", format!("v1.0-{}-{}", c.hex(24), c.hex(146))));
    all.push(plain("openshift", format!("sha256~{}", c.url(43))));
    all.push(plain("deno", format!("ddp_{}", c.alnum(36))));
    all
}

/// Providers of models.
fn models(c: &mut Chance) -> Vec<Sample> {
    vec![
        plain("openai", format!("sk-{}T3BlbkFJ{}", c.alnum(20), c.alnum(20))),
        plain("openai", format!("sk-proj-{}T3BlbkFJ{}", c.url(74), c.url(74))),
        plain("openai", format!("sk-svcacct-{}T3BlbkFJ{}", c.url(74), c.url(74))),
        plain("openai", format!("sk-admin-{}T3BlbkFJ{}", c.url(58), c.url(58))),
        plain("anthropic", format!("sk-ant-api03-{}AA", c.url(93))),
        plain("anthropic", format!("sk-ant-admin01-{}AA", c.url(93))),
        plain("anthropic", format!("sk-ant-oat01-{}AA", c.url(93))),
        plain("deepseek", format!("sk-{}", c.hex(32))),
        plain("openrouter", format!("sk-or-v1-{}", c.hex(64))),
        plain("groq", format!("gsk_{}", c.alnum(52))),
        plain("xai", format!("xai-{}", c.alnum(80))),
        plain("perplexity", format!("pplx-{}", c.alnum(48))),
        plain("replicate", format!("r8_{}", c.alnum(37))),
        plain("huggingface", format!("hf_{}", c.of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 34))),
        plain("nvidia", format!("nvapi-{}", c.url(64))),
        plain("langsmith", format!("lsv2_pt_{}_{}", c.hex(32), c.hex(10))),
        plain("tavily", format!("tvly-dev-{}", c.alnum(32))),
    ]
}

/// Where packages are published.
fn registries(c: &mut Chance) -> Vec<Sample> {
    let body = c.alnum(30);
    let mut macaroon = b"\x02\x01\x08pypi.org\x02\x24".to_vec();
    macaroon.extend(c.bytes(96));
    vec![
        plain("npm", with_checksum("npm_", &body)),
        plain("pypi", format!("pypi-{}", URL_SAFE_NO_PAD.encode(macaroon))),
        plain("rubygems", format!("rubygems_{}", c.hex(48))),
        plain("crates_io", format!("cio{}", c.alnum(32))),
        plain("docker", format!("dckr_pat_{}", c.url(27))),
        plain("docker", format!("dckr_oat_{}", c.url(32))),
        plain("nuget", format!("oy2{}", c.lower(43))),
        plain("clojars", format!("CLOJARS_{}", c.hex(60))),
        plain("artifactory", format!("AKCp{}", c.alnum(69))),
    ]
}

/// Everything else that people have accounts at.
fn services(c: &mut Chance) -> Vec<Sample> {
    let mut all = vec![
        plain("slack", format!("xoxb-{}-{}-{}", c.digits(12), c.digits(13), c.alnum(24))),
        plain("slack", format!("xoxp-{}-{}-{}-{}", c.digits(12), c.digits(12), c.digits(13), c.hex(32))),
        plain("slack", format!("xapp-1-A{}-{}-{}", c.upper(10), c.digits(13), c.hex(64))),
        plain("slack", format!("xoxe.xoxp-1-{}", c.alnum(163))),
    ];
    let before = format!("https://hooks.slack.com/services/T{}/B{}/", c.upper(10), c.upper(10));
    all.push(inside("slack_webhook", &before, c.alnum(24), ""));
    let before = format!("https://discord.com/api/webhooks/{}/", c.digits(19));
    all.push(inside("discord_webhook", &before, c.url(68), ""));
    let id = format!("1{}{}", c.of("01234", 1), c.of("0123456789", 17));
    all.push(plain("discord_bot", format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(id), c.url(6), c.url(38))));
    for prefix in ["sk_live_", "rk_live_", "sk_test_"] {
        all.push(plain("stripe", format!("{prefix}{}", c.alnum(24))));
        all.push(plain("stripe", format!("{prefix}51{}", c.alnum(97))));
    }
    all.push(plain("stripe_webhook", format!("whsec_{}", c.alnum(32))));
    for prefix in ["shpat_", "shpca_", "shppa_", "shpss_"] {
        all.push(plain("shopify", format!("{prefix}{}", c.hex(32))));
    }
    all.push(plain("square", format!("sq0atp-{}", c.url(22))));
    all.push(plain("square", format!("sq0csp-{}", c.url(43))));
    all.push(plain("square", format!("EAAA{}", c.url(60))));
    all.push(plain("shippo", format!("shippo_live_{}", c.hex(40))));
    all.push(plain("easypost", format!("EZAK{}", c.alnum(54))));
    all.push(plain("sendgrid", format!("SG.{}.{}", c.url(22), c.url(43))));
    all.push(plain("mailgun", format!("key-{}", c.hex(32))));
    all.push(plain("mailchimp", format!("{}-us{}", c.hex(32), 1 + c.below(21))));
    all.push(plain("brevo", format!("xkeysib-{}-{}", c.hex(64), c.alnum(16))));
    all.push(plain("telegram", format!("{}:AA{}", c.digits(10), c.url(33))));
    all.push(plain("airtable", format!("pat{}.{}", c.alnum(14), c.hex(64))));
    all.push(plain("figma", format!("figd_{}", c.url(40))));
    all.push(plain("notion", format!("ntn_{}{}", c.digits(11), c.alnum(35))));
    all.push(plain("linear", format!("lin_api_{}", c.alnum(40))));
    all.push(plain("postman", format!("PMAK-{}-{}", c.hex(24), c.hex(34))));
    all.push(plain("typeform", format!("tfp_{}_{}", c.alnum(44), c.alnum(14))));
    all.push(plain("contentful", format!("CFPAT-{}", c.url(43))));
    all.push(plain("grafana", format!("glsa_{}_{}", c.alnum(32), c.hex(8))));
    let cloud = format!("{{\"o\":\"{}\",\"n\":\"a\",\"k\":\"{}\",\"m\":{{\"r\":\"eu\"}}}}", c.digits(6), c.alnum(24));
    all.push(plain("grafana_cloud", format!("glc_{}", STANDARD.encode(cloud))));
    all.push(plain("newrelic", format!("NRAK-{}", c.upper(27))));
    all.push(plain("dynatrace", format!("dt0c01.{}.{}", c.upper(24), c.upper(64))));
    let organisation = URL_SAFE_NO_PAD.encode(format!("{{\"iat\":{}.5,\"url\":\"https://sentry.io\"}}", c.digits(10)));
    all.push(plain("sentry", format!("sntrys_{organisation}_{}", c.base64(32).trim_end_matches('='))));
    all.push(plain("sentry", format!("sntryu_{}", c.hex(64))));
    all.push(plain("doppler", format!("dp.pt.{}", c.alnum(43))));
    all.push(plain("doppler", format!("dp.st.prd.{}", c.alnum(43))));
    all.push(plain("readme", format!("rdme_{}", c.lower(70))));
    all.push(plain("prefect", format!("pnu_{}", c.alnum(36))));
    all.push(plain("frameio", format!("fio-u-{}", c.url(64))));
    all.push(plain("duffel", format!("duffel_live_{}", c.url(43))));
    all.push(plain("infracost", format!("ico-{}", c.alnum(32))));
    let account =
        STANDARD.encode(format!("{{\"email\":\"a@1passwordserviceaccounts.com\",\"secret\":\"{}\"}}", c.alnum(160)));
    all.push(plain("onepassword", format!("ops_{account}")));
    let mapbox = URL_SAFE_NO_PAD.encode(format!("{{\"u\":\"someone\",\"a\":\"{}\"}}", c.lower(25)));
    all.push(plain("mapbox", format!("sk.{mapbox}.{}", c.url(22))));
    all
}

/// Keys, tokens with claims, passwords in addresses and headers.
fn keys_and_addresses(c: &mut Chance) -> Vec<Sample> {
    let mut all = Vec::new();
    for (algorithm, signature) in [("RS256", 256), ("ES256", 64), ("HS512", 64)] {
        let header =
            URL_SAFE_NO_PAD.encode(format!("{{\"typ\":\"JWT\",\"alg\":\"{algorithm}\",\"kid\":\"{}\"}}", c.hex(8)));
        let claims = URL_SAFE_NO_PAD.encode(format!("{{\"iss\":\"https://a.example\",\"sub\":\"{}\"}}", c.digits(9)));
        all.push(plain("jwt", format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode(c.bytes(signature)))));
    }
    let labels = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"];
    for (label, bytes) in labels.into_iter().zip([138, 1_192, 121, 270, 310]) {
        all.push(plain("pem", pem(c, label, bytes)));
    }
    let block = pem(c, "PGP PRIVATE KEY BLOCK", 700).replacen("-----\n", "-----\n\n", 1);
    all.push(plain("pgp", block));
    let bech32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";
    all.push(plain("age", format!("AGE-SECRET-KEY-1{}", c.of(bech32, 58))));
    for (before, after) in [
        ("postgresql://app:", "@db.internal:5432/main?sslmode=require"),
        ("mysql://root:", "@10.0.0.7/shop"),
        ("mongodb+srv://svc:", "@cluster0.ab1cd.mongodb.net/?retryWrites=true"),
        ("redis://:", "@cache.internal:6379/0"),
        ("amqps://worker:", "@mq.example.org/vhost"),
        ("https://deploy:", "@git.example.org/team/repo.git"),
    ] {
        all.push(inside("address", before, c.alnum(20), after));
    }
    let before = "Server=tcp:sql.example.org,1433;Database=shop;User ID=app;Password=";
    all.push(inside("ado_connection", before, format!("{}!{}", c.alnum(9), c.alnum(9)), ";Encrypt=true;"));
    let basic = STANDARD.encode(format!("someone:{}", c.alnum(18)));
    all.push(inside("basic_header", "Authorization: Basic ", basic, ""));
    all.push(inside("bearer_header", "Authorization: Bearer ", c.alnum(40), ""));
    all
}

/// Files in which such things turn up. Each quotes by its own rules.
fn placed(chance: &mut Chance, text: &str, place: usize) -> String {
    let json = serde_json::to_string(text).unwrap();
    let indented = text.replace('\n', "\n    ");
    match place {
        0 => format!("# settings\nDEBUG=1\nSERVICE_VALUE={text}\nPORT=8080\n"),
        1 => format!("export SERVICE_VALUE='{text}'\n"),
        2 => format!("service:\n  name: web\n  value: \"{}\"\n  replicas: 3\n", text.replace('\n', "\\n")),
        3 => format!("service:\n  value: |\n    {indented}\n  after: true\n"),
        4 => format!("{{\n  \"id\": {},\n  \"value\": {json},\n  \"ok\": true\n}}\n", chance.digits(4)),
        5 => format!("{{\"message\":{}}}\n", serde_json::to_string(&format!("{{\"value\":{json}}}")).unwrap()),
        6 => format!("fn main() {{\n    let value = {json};\n    connect(value);\n}}\n"),
        7 => format!("client = Client('''{text}''')  # noqa\n"),
        8 => format!("2026-11-15T12:00:{:02}Z ERROR http request failed value={text} status=401\n", chance.below(60)),
        9 => format!("Nov 15 12:00:01 host app[{}]: sending {text}, retrying\n", chance.digits(4)),
        10 => format!("diff --git a/.env b/.env\n-OLD=1\n+VALUE={}\n", text.replace('\n', "\n+")),
        11 => format!("<configuration><add key=\"Value\" value=\"{text}\"/></configuration>\n"),
        12 => format!("[section]\nvalue = {json}\n"),
        13 => format!("Please use {text} until tomorrow. Thanks!\n"),
        14 => format!("apiVersion: v1\nkind: Secret\ndata:\n  value: {}\n", STANDARD.encode(text)),
        15 => {
            let whole = STANDARD.encode(format!("{{\"auths\":{{\"registry.example\":{{\"value\":{json}}}}}}}"));
            let lines: Vec<&str> = whole.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
            lines.join("\n")
        }
        _ => format!("curl -sS -H \"X-Value: {text}\" https://api.example.org/v1/things\n"),
    }
}

const PLACES: usize = 17;

/// How a text reaches the scanner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Whole,
    InPieces,
}

/// What came of one kind.
#[derive(Default)]
pub(crate) struct Score {
    pub(crate) found: usize,
    pub(crate) tried: usize,
    pub(crate) misses: Vec<String>,
}

impl Score {
    pub(crate) fn recall(&self) -> f64 {
        self.found as f64 / self.tried as f64
    }
}

/// The score of each kind over so many rounds: every sample in every place, whole and in pieces.
pub(crate) fn scores(scanner: &Arc<Scanner>, rounds: u64) -> BTreeMap<&'static str, Score> {
    let mut scores: BTreeMap<&'static str, Score> = BTreeMap::new();
    for round in 0..rounds {
        let mut chance = Chance::new(round + 77_003);
        for sample in samples(round + 1) {
            for place in 0..PLACES {
                let text = placed(&mut chance, &sample.text, place);
                for arrival in [Arrival::Whole, Arrival::InPieces] {
                    let left = match arrival {
                        Arrival::Whole => redact(text.as_bytes(), &scanner.scan(text.as_bytes()).findings),
                        Arrival::InPieces => in_pieces(&mut chance, scanner, text.as_bytes()),
                    };
                    let score = scores.entry(sample.kind).or_default();
                    score.tried += 1;
                    if is_readable(&left, &sample.secret) {
                        let how = if arrival == Arrival::Whole { "" } else { " in pieces" };
                        let mut miss = String::new();
                        let _ = write!(miss, "{} in place {place}{how}: {}", sample.kind, text.trim());
                        score.misses.push(miss);
                    } else {
                        score.found += 1;
                    }
                }
            }
        }
    }
    scores
}

fn in_pieces(chance: &mut Chance, scanner: &Arc<Scanner>, text: &[u8]) -> Vec<u8> {
    let mut stream = StreamScanner::new(Arc::clone(scanner));
    let (mut left, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, later) = rest.split_at((1 + chance.below(23)).min(rest.len()));
        left.extend(stream.push(piece).bytes);
        rest = later;
    }
    left.extend(stream.finish().0.bytes);
    left
}

/// Whether a stretch out of the middle of the secret, or its end, can still be read in any view of a text.
fn is_readable(text: &[u8], secret: &str) -> bool {
    let body =
        secret.strip_suffix("-----").and_then(|rest| rest.rsplit_once("-----END")).map_or(secret, |(body, _)| body);
    let body = body.trim_end_matches(['\n', '\\', 'n', '=']);
    let length = 10.min(body.len() / 2);
    let parts = [&body[body.len() - length..], &body[body.len() / 2..body.len() / 2 + length]];
    let views = views(text).0;
    views.iter().any(|view| parts.iter().any(|part| memchr::memmem::find(&view.bytes, part.as_bytes()).is_some()))
}
