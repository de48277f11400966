//! Tokens with a checksum or an inner structure that can be checked: GitHub, npm, PyPI, JWT, model keys, SendGrid, Telegram.

use super::checksum::checksum_holds;
use super::entropy::looks_random;
use super::site::{Hit, Site, base62, base64url, hex};
use crate::findings::Confidence;
use crate::normalise::decode_base64;

/// Characters after the prefix of GitHub and npm tokens, checksum included.
const CHECKSUMMED: usize = 36;

/// Longest segments of a web token: header, claims, signature.
const MAX_HEADER: usize = 1024;
const MAX_CLAIMS: usize = 8 * 1024;
const MAX_SIGNATURE: usize = 1024;

/// `ghp_…` and `npm_…`: thirty random characters and their checksum, whatever stands around them.
pub(crate) fn checksummed(site: &Site<'_>) -> Option<Hit> {
    let end = site.run(site.after, 255, base62);
    let exact = site.after + CHECKSUMMED;
    if end >= exact && checksum_holds(site.slice(site.after, exact)) {
        return Hit::new(site.at, exact, Confidence::High);
    }
    // A wrong checksum may also be a format we do not know yet, so a random body of fitting length still counts.
    let body = site.slice(site.after, end);
    let plausible = site.starts_word() && body.len() >= CHECKSUMMED && looks_random(body);
    if plausible { Hit::new(site.at, end, Confidence::Medium) } else { None }
}

/// `pypi-…`: a macaroon, whose first bytes are a version and the location.
pub(crate) fn pypi(site: &Site<'_>) -> Option<Hit> {
    let end = site.run(site.after, 1024, base64url);
    let body = site.slice(site.after, end);
    let decoded = decode_base64(body);
    let macaroon = matches!(decoded.as_slice(), [2, 1, length, rest @ ..] if rest.len() > usize::from(*length));
    if macaroon && body.len() >= 50 { Hit::new(site.at, end, Confidence::High) } else { None }
}

/// `eyJ….eyJ….…`: header and claims must be JSON objects, the header must name an algorithm.
pub(crate) fn jwt(site: &Site<'_>) -> Option<Hit> {
    if site.before(1).first().is_some_and(|byte| base64url(*byte)) {
        return None;
    }
    let header_end = site.run(site.at, MAX_HEADER, base64url);
    if header_end < site.at + 12 || site.byte(header_end) != Some(b'.') {
        return None;
    }
    let claims_start = header_end + 1;
    let claims_end = site.run(claims_start, MAX_CLAIMS, base64url);
    if site.byte(claims_end) != Some(b'.') {
        return None;
    }
    let header = json_object(site.slice(site.at, header_end))?;
    if !header.contains_key("alg") {
        return None;
    }
    let mut end = site.run(claims_end + 1, MAX_SIGNATURE.max(MAX_CLAIMS), base64url);
    if header.contains_key("enc") {
        // An encrypted token: key, nonce, text and tag follow the header.
        for _ in 0..2 {
            if site.byte(end) != Some(b'.') {
                return None;
            }
            end = site.run(end + 1, MAX_CLAIMS, base64url);
        }
        return Hit::new(site.at, end, Confidence::High);
    }
    json_object(site.slice(claims_start, claims_end))?;
    let signature = site.slice(claims_end + 1, end);
    if signature.len() >= 16 && looks_random(signature) { Hit::new(site.at, end, Confidence::High) } else { None }
}

fn json_object(encoded: &[u8]) -> Option<serde_json::Map<String, serde_json::Value>> {
    serde_json::from_slice(&decode_base64(encoded)).ok()
}

/// `sk-…` without a provider's name: OpenAI's older keys carry a fixed mark in the middle, others are merely random.
pub(crate) fn model_key(site: &Site<'_>) -> Option<Hit> {
    if !site.starts_word() {
        return None;
    }
    let end = site.run(site.after, 255, base64url);
    let body = site.slice(site.after, end);
    let marked = memchr::memmem::find(body, b"T3BlbkFJ").is_some();
    let longest_part = body.split(|byte| matches!(byte, b'-' | b'_')).map(<[u8]>::len).max().unwrap_or(0);
    let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
    if body.len() >= 20 && looks_random(body) && (marked || (body.len() >= 32 && longest_part >= 20 && digits >= 2)) {
        let confidence = if marked { Confidence::High } else { Confidence::Medium };
        return Hit::new(site.at, end, confidence);
    }
    None
}

/// `SG.` and two random parts.
pub(crate) fn sendgrid(site: &Site<'_>) -> Option<Hit> {
    let first = site.run(site.after, 23, base64url);
    if !site.starts_word() || first != site.after + 22 || site.byte(first) != Some(b'.') {
        return None;
    }
    let end = site.run(first + 1, 44, base64url);
    if end == first + 44 && looks_random(site.slice(first + 1, end)) {
        return Hit::new(site.at, end, Confidence::High);
    }
    None
}

/// A Telegram bot: eight to ten digits, `:AA` and thirty-three characters.
pub(crate) fn telegram(site: &Site<'_>) -> Option<Hit> {
    let digits = site.before(11).iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let end = site.run(site.after, 34, base64url);
    if (8..=10).contains(&digits) && end == site.after + 33 && looks_random(site.slice(site.after, end)) {
        return Hit::new(site.at - digits, end, Confidence::High);
    }
    None
}

/// A Slack incoming webhook: whoever has the address can post.
pub(crate) fn slack_webhook(site: &Site<'_>) -> Option<Hit> {
    let end = site.run(site.after, 120, |byte| base62(byte) || byte == b'/');
    let parts: Vec<&[u8]> = site.slice(site.after, end).split(|byte| *byte == b'/').collect();
    match parts.as_slice() {
        [team, hook, secret] if team.len() >= 8 && hook.len() >= 8 && secret.len() >= 20 && looks_random(secret) => {
            Hit::new(end - secret.len(), end, Confidence::High)
        }
        _ => None,
    }
}

/// A Discord webhook: whoever has the address can post.
pub(crate) fn discord_webhook(site: &Site<'_>) -> Option<Hit> {
    let id = site.run(site.after, 21, |byte| byte.is_ascii_digit());
    if id < site.after + 17 || site.byte(id) != Some(b'/') {
        return None;
    }
    let end = site.run(id + 1, 100, base64url);
    let secret = site.slice(id + 1, end);
    if secret.len() >= 60 && looks_random(secret) { Hit::new(id + 1, end, Confidence::High) } else { None }
}

/// A Discord bot: its account number in base64, six characters of time, and a signature.
pub(crate) fn discord_bot(site: &Site<'_>) -> Option<Hit> {
    if !site.starts_word() {
        return None;
    }
    let account = site.run(site.at, 29, base64url);
    if account < site.at + 24 || site.byte(account) != Some(b'.') {
        return None;
    }
    let time = site.run(account + 1, 8, base64url);
    if !(6..=7).contains(&(time - account - 1)) || site.byte(time) != Some(b'.') {
        return None;
    }
    let end = site.run(time + 1, 64, base64url);
    let number = decode_base64(site.slice(site.at, account));
    let is_number = number.len() >= 17 && number.iter().all(u8::is_ascii_digit);
    let signature = site.slice(time + 1, end);
    if is_number && signature.len() >= 27 && looks_random(signature) {
        return Hit::new(site.at, end, Confidence::High);
    }
    None
}

/// Airtable: `pat`, fourteen characters, a dot and sixty-four hexadecimal digits.
pub(crate) fn airtable(site: &Site<'_>) -> Option<Hit> {
    // The dot first: `pat` begins many words.
    if site.byte(site.after + 14) != Some(b'.') || !site.starts_word() {
        return None;
    }
    let first = site.run(site.after, 15, base62);
    let end = site.run(first + 1, 65, hex);
    let fits = first == site.after + 14 && end == first + 65 && looks_random(site.slice(first + 1, end));
    if fits { Hit::new(site.at, end, Confidence::High) } else { None }
}

/// Mailchimp: thirty-two hexadecimal digits, `-us` and the number of a data centre.
pub(crate) fn mailchimp(site: &Site<'_>) -> Option<Hit> {
    let before = site.before(33);
    let digits = before.iter().rev().take_while(|byte| hex(**byte)).count();
    if digits != 32 || before.first().is_some_and(|byte| before.len() == 33 && byte.is_ascii_alphanumeric()) {
        return None;
    }
    let end = site.run(site.after, 3, |byte| byte.is_ascii_digit());
    let fits = (1..=2).contains(&(end - site.after)) && looks_random(site.slice(site.at - 32, site.at));
    if fits { Hit::new(site.at - 32, end, Confidence::High) } else { None }
}
