//! Passwords inside addresses, and `Authorization` values.

use super::entropy::{is_placeholder, looks_random};
use super::site::{Hit, Site, base64_padded, dotted};
use crate::findings::Confidence;
use crate::normalise::decode_base64;

/// Longest user information followed.
const MAX_USER_INFO: usize = 300;

/// Passwords that protect nothing, as they stand in every manual.
const USELESS: &[&str] = &[
    "admin",
    "guest",
    "hunter2",
    "minioadmin",
    "mysecretpassword",
    "pass",
    "passw0rd",
    "passwd",
    "password",
    "password1",
    "password123",
    "postgres",
    "pw",
    "pwd",
    "root",
    "secret",
    "secret123",
    "test",
    "test123",
    "testpass",
    "testpassword",
    "token",
    "user",
    "username",
];

fn in_user_info(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(byte, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>' | b',' | b'(' | b')' | b'\\' | b'|')
}

/// `scheme://user:password@host`; the finding covers the password alone, so that the rest stays of use.
pub(crate) fn password_in_address(site: &Site<'_>) -> Option<Hit> {
    if !site.before(1).first().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let end = site.run(site.after, MAX_USER_INFO, in_user_info);
    let authority = site.slice(site.after, end);
    let at_sign = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority.iter().take(at_sign).position(|byte| *byte == b':')?;
    let password = authority.get(colon + 1..at_sign)?;
    let host = authority.get(at_sign + 1..)?;
    if !host.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'[') || !is_password(password) {
        return None;
    }
    let start = site.after + colon + 1;
    Hit::new(start, start + password.len(), Confidence::High)
}

fn is_password(password: &[u8]) -> bool {
    let lower = password.to_ascii_lowercase();
    let varied = password.iter().any(|byte| !byte.is_ascii_lowercase());
    let templated = password.iter().any(|byte| matches!(byte, b'{' | b'}' | b'[' | b']'));
    password.len() >= 6
        && (varied || password.len() >= 12)
        && !templated
        && !password.starts_with(b"$")
        && !is_placeholder(password)
        && !USELESS.iter().any(|word| word.as_bytes() == lower)
}

/// `Bearer` and a random token.
pub(crate) fn bearer(site: &Site<'_>) -> Option<Hit> {
    let end = site.run(site.after, 512, |byte| dotted(byte) || base64_padded(byte));
    let value = site.slice(site.after, end);
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let plausible = value.len() >= 20 && digits >= 2 && looks_random(value) && !is_placeholder(value);
    if site.starts_word() && plausible { Hit::new(site.after, end, Confidence::Medium) } else { None }
}

/// `Basic` and base64 of `user:password`.
pub(crate) fn basic(site: &Site<'_>) -> Option<Hit> {
    let end = site.run(site.after, 512, base64_padded);
    let value = site.slice(site.after, end);
    let encoded = value.split(|byte| *byte == b'=').next().unwrap_or_default();
    let decoded = decode_base64(encoded);
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let readable = decoded.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    if site.starts_word() && readable && value.len() >= 12 && is_password(decoded.get(colon + 1..)?) {
        return Hit::new(site.after, end, Confidence::High);
    }
    None
}
