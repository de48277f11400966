//! Cloud credentials that need context: the secret half of an AWS key pair, Azure keys and signatures.

use super::entropy::looks_random;
use super::site::{Hit, Site, base32, base64, base64_padded, dotted};
use crate::findings::Confidence;

/// Length of an AWS secret access key.
const AWS_SECRET: usize = 40;

/// How far after its name or its key id the secret is looked for.
const AWS_REACH: usize = 100;

/// The secret named by `aws_secret_access_key` and the like.
pub(crate) fn aws_secret_by_name(site: &Site<'_>) -> Option<Hit> {
    aws_secret_within(site, site.after)
}

/// The secret that stands shortly after its access key id.
pub(crate) fn aws_secret_by_pair(site: &Site<'_>) -> Option<Hit> {
    let end = site.run(site.after, 17, base32);
    if !site.starts_word() || end != site.after + 16 {
        return None;
    }
    aws_secret_within(site, end)
}

fn aws_secret_within(site: &Site<'_>, from: usize) -> Option<Hit> {
    let mut at = from;
    while at < from + AWS_REACH && site.byte(at).is_some() {
        let end = site.run(at, AWS_SECRET + 1, base64);
        let value = site.slice(at, end);
        let mixed = value.iter().any(u8::is_ascii_uppercase)
            && value.iter().any(u8::is_ascii_lowercase)
            && value.iter().any(u8::is_ascii_digit);
        if value.len() == AWS_SECRET && mixed && looks_random(value) {
            return Hit::new(at, end, Confidence::High);
        }
        at = end + 1;
    }
    None
}

/// `AccountKey=` and 64 bytes of base64, or `SharedAccessKey=` and 32.
pub(crate) fn azure_key(site: &Site<'_>) -> Option<Hit> {
    let end = site.run(site.after, 89, base64_padded);
    let value = site.slice(site.after, end);
    if matches!(value.len(), 44 | 88) && value.ends_with(b"=") && looks_random(value) {
        return Hit::new(site.after, end, Confidence::High);
    }
    None
}

/// The signature of a shared access URL.
pub(crate) fn azure_signature(site: &Site<'_>) -> Option<Hit> {
    if !matches!(site.before(1), [b'&' | b'?' | b';']) {
        return None;
    }
    let end = site.run(site.after, 120, |byte| base64_padded(byte) || byte == b'%');
    let value = site.slice(site.after, end);
    let lower = value.to_ascii_lowercase();
    if (lower.ends_with(b"%3d") || value.ends_with(b"=")) && (44..=100).contains(&value.len()) && looks_random(value) {
        return Hit::new(site.after, end, Confidence::High);
    }
    None
}

/// A client secret of Entra ID: three characters, `8Q~`, thirty-four characters.
pub(crate) fn azure_client_secret(site: &Site<'_>) -> Option<Hit> {
    let end = site.run(site.after, 35, dotted);
    let before = site.before(3);
    if before.len() == 3 && before.iter().all(|byte| dotted(*byte)) && end >= site.after + 31 {
        let hit = Hit::new(site.at - 3, end.min(site.after + 34), Confidence::High);
        return if looks_random(site.slice(site.after, end)) { hit } else { None };
    }
    None
}

/// A personal token of Azure DevOps: eighty-four characters with two marks.
pub(crate) fn azure_devops(site: &Site<'_>) -> Option<Hit> {
    let before = site.before(52);
    if before.len() < 52 || !before.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    let end = site.run(site.after, 26, |byte| byte.is_ascii_alphanumeric());
    let marked = site.slice(site.after + 18, site.after + 22) == b"AZDO";
    if end == site.after + 26 && marked { Hit::new(site.at - 52, end, Confidence::High) } else { None }
}
