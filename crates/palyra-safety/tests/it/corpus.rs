//! Generated secrets in many surroundings and encodings, and real sources as negatives.
//!
//! Everything is made from a fixed seed, so a miss can be looked at again.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use palyra_safety::{checksum, redact, views};

const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE64_URL: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const BASE64: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/";
const HEX: &[u8] = b"0123456789abcdef";
const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const DIGITS: &[u8] = b"0123456789";

/// A small generator of repeatable numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    pub(crate) fn text(&mut self, alphabet: &[u8], len: usize) -> String {
        (0..len).map(|_| char::from(alphabet[self.roll(alphabet.len())])).collect()
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.roll(256) as u8).collect()
    }
}

/// One generated secret of each kind.
pub(crate) fn tokens(dice: &mut Dice) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for prefix in ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] {
        let body = dice.text(BASE62, 30);
        all.push(("github", format!("{prefix}{body}{}", checksum(body.as_bytes()))));
    }
    let body = dice.text(BASE62, 30);
    all.push(("npm", format!("npm_{body}{}", checksum(body.as_bytes()))));
    all.push(("github_pat", format!("github_pat_{}_{}", dice.text(BASE62, 22), dice.text(BASE62, 59))));
    all.push(("aws_id", format!("AKIA{}", dice.text(BASE32, 16))));
    all.push(("aws_session", format!("ASIA{}", dice.text(BASE32, 16))));
    all.push(("google", format!("AIza{}", dice.text(BASE64_URL, 35))));
    all.push(("google_oauth", format!("GOCSPX-{}", dice.text(BASE64_URL, 28))));
    let key = STANDARD.encode(dice.bytes(64));
    all.push(("azure", format!("AccountName=store;AccountKey={key}")));
    all.push(("azure_client", format!("{}8Q~{}", dice.text(BASE62, 3), dice.text(BASE62, 34))));
    all.push((
        "slack_bot",
        format!("xoxb-{}-{}-{}", dice.text(DIGITS, 12), dice.text(DIGITS, 12), dice.text(BASE62, 24)),
    ));
    all.push(("slack_user", format!("xoxp-{}-{}", dice.text(DIGITS, 12), dice.text(HEX, 32))));
    all.push(("stripe", format!("sk_live_{}", dice.text(BASE62, 24))));
    all.push(("stripe_restricted", format!("rk_live_{}", dice.text(BASE62, 24))));
    all.push(("openai", format!("sk-{}T3BlbkFJ{}", dice.text(BASE62, 20), dice.text(BASE62, 20))));
    all.push(("openai_project", format!("sk-proj-{}T3BlbkFJ{}", dice.text(BASE64_URL, 58), dice.text(BASE64_URL, 58))));
    all.push(("anthropic", format!("sk-ant-api03-{}AA", dice.text(BASE64_URL, 93))));
    let mut macaroon = b"\x02\x01\x08pypi.org\x02\x24".to_vec();
    macaroon.extend(dice.bytes(90));
    all.push(("pypi", format!("pypi-{}", URL_SAFE_NO_PAD.encode(macaroon))));
    all.push(("gitlab", format!("glpat-{}", dice.text(BASE64_URL, 20))));
    all.push(("huggingface", format!("hf_{}", dice.text(BASE62, 34))));
    all.push(("sendgrid", format!("SG.{}.{}", dice.text(BASE64_URL, 22), dice.text(BASE64_URL, 43))));
    all.push(("telegram", format!("{}:AA{}", 100_000_000 + dice.roll(899_999_999), dice.text(BASE64_URL, 33))));
    all.push(("digitalocean", format!("dop_v1_{}", dice.text(HEX, 64))));
    let header = URL_SAFE_NO_PAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
    let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"sub":"{}","admin":true}}"#, dice.text(DIGITS, 10)));
    all.push(("jwt", format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode(dice.bytes(32)))));
    all.push(("pem", pem(dice, "PRIVATE KEY", 140)));
    all.push(("pem_rsa", pem(dice, "RSA PRIVATE KEY", 1190)));
    all.push(("pem_openssh", pem(dice, "OPENSSH PRIVATE KEY", 260)));
    all.push(("connection", format!("postgres://app:{}@db.internal:5432/main", dice.text(BASE62, 16))));
    all.push(("aws_secret", format!("aws_secret_access_key = {}a9Z", dice.text(BASE64, 37))));
    all
}

fn pem(dice: &mut Dice, label: &str, bytes: usize) -> String {
    let body = STANDARD.encode(dice.bytes(bytes));
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        text.push_str(std::str::from_utf8(line).unwrap());
        text.push('\n');
    }
    let _ = write!(text, "-----END {label}-----");
    text
}

/// Surroundings a secret may stand in; `@` marks the place.
pub(crate) const SURROUNDINGS: &[&str] = &[
    "@",
    "the key is @ and should not be here",
    "{\"value\": \"@\", \"other\": 1}",
    "export THING=@\n",
    "thing: '@' # rotate\n",
    "<a title=\"@\">x</a>",
    "(@)",
    "line one\n@\nline three\n",
    "curl -H 'X-Key: @' https://api.example/v1",
    "let key = \"@\";",
    "| name | @ |",
    "Ключ: @ – конец",
    "密钥：@。",
    "a,b,@,c\r\n",
    "https://api.example/v1?x=1&k=@&y=2",
];

/// Encodings a secret may be wrapped in.
pub(crate) const ENCODINGS: &[&str] = &[
    "raw",
    "base64",
    "base64_shift1",
    "base64_shift2",
    "base64url",
    "base64_wrapped",
    "hex",
    "hex_upper",
    "percent",
    "html_decimal",
    "html_hex",
    "json_u",
    "full_width",
    "zero_width",
    "base64_twice",
    "percent_of_base64",
];

/// Wraps a secret.
pub(crate) fn encode(secret: &str, encoding: &str) -> String {
    let each = |write: fn(&mut String, char)| {
        let mut out = String::new();
        secret.chars().for_each(|c| write(&mut out, c));
        out
    };
    match encoding {
        "base64" => STANDARD.encode(secret),
        "base64_shift1" => STANDARD.encode(format!("k:{secret} !")),
        "base64_shift2" => STANDARD.encode(format!(": {secret}\n")),
        "base64url" => URL_SAFE_NO_PAD.encode(format!("~ {secret} ~")),
        "base64_wrapped" => {
            let text = STANDARD.encode(format!("some words before it, and then {secret} and some after it as well"));
            text.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect::<Vec<_>>().join("\n")
        }
        "hex" => each(|out, c| write!(out, "{:02x}", u32::from(c)).unwrap()),
        "hex_upper" => each(|out, c| write!(out, "{:02X}", u32::from(c)).unwrap()),
        "percent" => each(|out, c| write!(out, "%{:02X}", u32::from(c)).unwrap()),
        "html_decimal" => each(|out, c| write!(out, "&#{};", u32::from(c)).unwrap()),
        "html_hex" => each(|out, c| write!(out, "&#x{:x};", u32::from(c)).unwrap()),
        "json_u" => each(|out, c| write!(out, "\\u{:04x}", u32::from(c)).unwrap()),
        "full_width" => secret
            .chars()
            .map(|c| if c.is_ascii_graphic() { char::from_u32(u32::from(c) + 0xFEE0).unwrap() } else { c })
            .collect(),
        "zero_width" => each(|out, c| {
            out.push(c);
            out.push('\u{200B}');
        }),
        "base64_twice" => STANDARD.encode(STANDARD.encode(secret)),
        "percent_of_base64" => STANDARD.encode(secret).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"),
        _ => secret.to_owned(),
    }
}

/// Text files of the dependencies' sources, or of this crate where there are none; up to `limit` bytes.
pub(crate) fn negatives(limit: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let mut roots: Vec<PathBuf> = home.iter().flat_map(|home| children(&home.join("registry/src"))).collect();
    roots = roots.iter().flat_map(|root| children(root)).collect();
    if roots.is_empty() {
        roots.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    }
    // A bounded sample takes something of every crate rather than all of the first few.
    let share = (limit / roots.len()).max(16 * 1024);
    let mut found = Vec::new();
    let mut total = 0;
    for root in roots {
        let mut taken = 0;
        let mut open = vec![root];
        while let Some(path) = open.pop() {
            if taken >= share || total >= limit {
                break;
            }
            if path.is_dir() {
                open.extend(children(&path).into_iter().rev());
                continue;
            }
            let text =
                matches!(path.extension().and_then(|e| e.to_str()), Some("rs" | "md" | "toml" | "txt" | "c" | "h"));
            let Some(bytes) = text.then(|| std::fs::read(&path).ok()).flatten() else { continue };
            taken += bytes.len();
            total += bytes.len();
            found.push((path, bytes));
        }
    }
    found
}

fn children(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// How many of the generated secrets are found, and which are not: `(found, tried, misses)`.
pub(crate) fn recall(scanner: &palyra_safety::Scanner, rounds: u64) -> (usize, usize, Vec<String>) {
    let (mut found, mut tried, mut misses) = (0, 0, Vec::new());
    for round in 0..rounds {
        let mut dice = Dice(round * 7919 + 1);
        for (name, token) in tokens(&mut dice) {
            for encoding in ENCODINGS {
                let surrounding = SURROUNDINGS[dice.roll(SURROUNDINGS.len())];
                let (before, after) = surrounding.split_once('@').unwrap();
                let secret = encode(&token, encoding);
                let text = format!("{before}{secret}{after}");
                tried += 1;
                let scan = scanner.scan(text.as_bytes());
                if !scan.findings.is_empty() && !survives(&redact(text.as_bytes(), &scan.findings), &token) {
                    found += 1;
                } else {
                    misses.push(format!("{name} as {encoding} in `{surrounding}`: {token}"));
                }
            }
        }
    }
    (found, tried, misses)
}

/// Whether the middle or the end of what is secret in a token can still be read in some view of a text.
fn survives(text: &[u8], token: &str) -> bool {
    let secret = match token.rsplit_once('@') {
        Some((before, _)) => before,
        None => token.strip_suffix("-----").and_then(|token| token.rsplit_once('\n')).map_or(token, |(body, _)| body),
    };
    let parts = [&secret[secret.len() - 10..], &secret[secret.len() - 20..secret.len() - 10]];
    // Of a short password the part before the last ten characters may be its public surroundings.
    let parts = if token.contains("://") { &parts[..1] } else { &parts[..] };
    views(text)
        .0
        .iter()
        .any(|view| parts.iter().any(|part| view.bytes.windows(part.len()).any(|window| window == part.as_bytes())))
}
