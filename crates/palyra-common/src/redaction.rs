//! Values that mask themselves: secrets, and addresses that may carry one.
//!
//! A secret shows `[redacted]` in every format that could reach a log, a screen or a file; the only way to its value
//! is the word [`expose`](Secret::expose), which a reviewer can search for. Memory is overwritten on drop.

use std::fmt;

use serde::{Serialize, Serializer};
use zeroize::Zeroize;

/// What is shown instead of a secret.
const MASK: &str = "[redacted]";

/// A value that must not be shown.
#[derive(Clone)]
pub struct Secret<T: Zeroize>(T);

/// A secret text, such as an API key.
pub type SecretString = Secret<String>;

impl<T: Zeroize> Secret<T> {
    /// Wraps a value.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself, for the one place that needs it.
    #[must_use]
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl From<String> for SecretString {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<T: Zeroize> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<T: Zeroize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// An address that shows neither its user information nor the values of its query.
///
/// It works on the text alone and so masks malformed addresses too. Every query value is masked, not only those under
/// suspicious names: a name we do not know is no evidence that its value is harmless.
#[derive(Clone, PartialEq, Eq)]
pub struct RedactedUrl(String);

impl RedactedUrl {
    /// Wraps an address.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The address itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RedactedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before_fragment, has_fragment) = match self.0.split_once('#') {
            Some((before, _)) => (before, true),
            None => (self.0.as_str(), false),
        };
        let (place, query) = match before_fragment.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (before_fragment, None),
        };
        let (scheme, rest) = match place.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, place),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
        if let Some(scheme) = scheme {
            write!(f, "{scheme}://")?;
        }
        match authority.rsplit_once('@') {
            Some((_, host)) => write!(f, "{MASK}@{host}")?,
            None => f.write_str(authority)?,
        }
        f.write_str(path)?;
        for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
            f.write_str(if index == 0 { "?" } else { "&" })?;
            match pair.split_once('=') {
                Some((name, _)) => write!(f, "{name}={MASK}")?,
                // A bare word in a query may itself be a token.
                None if pair.is_empty() => {}
                None => f.write_str(MASK)?,
            }
        }
        if has_fragment {
            write!(f, "#{MASK}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for RedactedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RedactedUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows() {
        let secret = SecretString::from("hunter2".to_owned());
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[redacted] [redacted] Some([redacted])");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"[redacted]\"");
    }

    #[test]
    fn an_address_shows_where_but_not_with_what() {
        for (given, shown) in [
            ("https://api.example/v1", "https://api.example/v1"),
            ("https://user:pass@api.example/v1", "https://[redacted]@api.example/v1"),
            ("https://a@b@c.example", "https://[redacted]@c.example"),
            ("https://x.example/p?key=1&b=2", "https://x.example/p?key=[redacted]&b=[redacted]"),
            ("https://x.example?tok", "https://x.example?[redacted]"),
            ("https://x.example/#access_token=1", "https://x.example/#[redacted]"),
            ("user:pass@host/path", "[redacted]@host/path"),
            ("https://h.example/a@b", "https://h.example/a@b"),
            ("", ""),
        ] {
            assert_eq!(RedactedUrl::new(given).to_string(), shown, "{given}");
            assert_eq!(serde_json::to_value(RedactedUrl::new(given)).unwrap(), shown);
        }
    }
}
