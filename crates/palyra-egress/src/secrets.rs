//! Putting secrets into requests on the way out.
//!
//! The guest holds a placeholder. Where the grant binds a secret to the host of a request, the placeholder in the one named header or query
//! field becomes the secret; an empty place is filled from the binding's template. A placeholder anywhere else, or sent to any other host, goes out
//! as it is: it is worth nothing. Finding the secret again in an answer is `scan`'s work.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use palyra_common::{SecretRef, SecretString};
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::EgressError;
use crate::rules::{CredentialBinding, CredentialPlace, CredentialTransport, EgressGrant};
use crate::target::{Scheme, Target};

/// Shorter secrets cannot be told from ordinary text in an answer, so they are not sent.
const SECRET_MINIMUM: usize = 8;

/// Where secrets come from.
#[async_trait]
pub trait SecretSource: Send + Sync + 'static {
    /// The secret behind a reference, or why it is not to be had. The reason must not contain the secret.
    async fn resolve(&self, reference: &SecretRef) -> Result<SecretString, String>;
}

/// A source without secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

#[async_trait]
impl SecretSource for NoSecrets {
    async fn resolve(&self, _: &SecretRef) -> Result<SecretString, String> {
        Err("no secret store is available".to_owned())
    }
}

/// What was put into a request, and what to look for in its answer.
#[derive(Debug, Default)]
pub(crate) struct Injected {
    /// How many places were filled.
    pub(crate) count: usize,
    /// Every secret bound to the host, whether or not this request carried it: an earlier one may have.
    pub(crate) secrets: Vec<SecretString>,
}

/// Fills the bound places of a request.
pub(crate) async fn inject(
    source: &dyn SecretSource,
    grant: &EgressGrant,
    target: &mut Target,
    headers: &mut HeaderMap,
) -> Result<Injected, EgressError> {
    let mut injected = Injected::default();
    let host = target.host.clone();
    for binding in grant.credentials.iter().filter(|binding| binding.host == host) {
        let unusable =
            |reason: String| EgressError::SecretUnavailable { reference: binding.secret.to_string(), reason };
        let secret = source.resolve(&binding.secret).await.map_err(unusable)?;
        if secret.expose().len() < SECRET_MINIMUM {
            return Err(unusable(format!("it has fewer than {SECRET_MINIMUM} bytes")));
        }
        let may_travel = target.scheme == Scheme::Https || binding.transport == CredentialTransport::Plain;
        if may_travel {
            let filled = match &binding.place {
                CredentialPlace::Header(name) => fill_header(binding, name, &secret, headers).map_err(unusable)?,
                CredentialPlace::Query(name) => fill_query(binding, name, &secret, target),
            };
            injected.count += usize::from(filled);
        }
        injected.secrets.push(secret);
    }
    Ok(injected)
}

fn fill_header(
    binding: &CredentialBinding,
    name: &str,
    secret: &SecretString,
    headers: &mut HeaderMap,
) -> Result<bool, String> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
    if !headers.contains_key(&name) {
        let filled = Zeroizing::new(binding.template.replacen("{}", secret.expose(), 1));
        headers.insert(name, sensitive(&filled)?);
        return Ok(true);
    }
    let mut filled = false;
    let values: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
    headers.remove(&name);
    for value in values {
        let replaced = value.to_str().ok().and_then(|text| replace(&name, text, binding, secret));
        match replaced {
            Some(text) => {
                headers.append(&name, sensitive(&text)?);
                filled = true;
            }
            None => {
                headers.append(&name, value);
            }
        }
    }
    Ok(filled)
}

/// The header's text with the secret for the placeholder, also inside the Base64 of basic authentication.
fn replace(
    name: &HeaderName,
    text: &str,
    binding: &CredentialBinding,
    secret: &SecretString,
) -> Option<Zeroizing<String>> {
    if text.contains(&binding.placeholder) {
        return Some(Zeroizing::new(text.replace(&binding.placeholder, secret.expose())));
    }
    if name != AUTHORIZATION {
        return None;
    }
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    if !decoded.contains(&binding.placeholder) {
        return None;
    }
    let plain = Zeroizing::new(decoded.replace(&binding.placeholder, secret.expose()));
    Some(Zeroizing::new(format!("Basic {}", STANDARD.encode(plain.as_bytes()))))
}

/// A header value that libraries do not print. A secret with a line break cannot be one.
fn sensitive(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| "it contains characters that are not allowed in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn fill_query(binding: &CredentialBinding, name: &str, secret: &SecretString, target: &mut Target) -> bool {
    let filled_in = Zeroizing::new(binding.template.replacen("{}", secret.expose(), 1));
    let encoded = Zeroizing::new(percent(filled_in.as_bytes()));
    let given = target.query.take().unwrap_or_default();
    let mut filled = false;
    let mut found = false;
    let mut pairs: Vec<String> = Vec::new();
    for pair in given.split('&').filter(|pair| !pair.is_empty()) {
        let (field, value) = pair.split_once('=').unwrap_or((pair, ""));
        if field != name {
            pairs.push(pair.to_owned());
            continue;
        }
        found = true;
        if value.contains(&binding.placeholder) {
            let secret = Zeroizing::new(percent(secret.expose().as_bytes()));
            pairs.push(format!("{field}={}", value.replace(&binding.placeholder, &secret)));
            filled = true;
        } else {
            pairs.push(pair.to_owned());
        }
    }
    if !found {
        pairs.push(format!("{name}={}", *encoded));
        filled = true;
    }
    target.query = Some(pairs.join("&"));
    pairs.iter_mut().for_each(|pair| pair.zeroize());
    filled
}

fn percent(bytes: &[u8]) -> String {
    let unreserved = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    bytes
        .iter()
        .map(|byte| if unreserved(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
