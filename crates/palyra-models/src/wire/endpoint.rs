//! Where a server is.
//!
//! People write base URLs in many ways. The rule: trailing slashes are dropped; a pasted tail that the provider itself would add is
//! dropped (`/chat/completions`, `/models`); an empty path becomes the provider's usual one (`/v1`); any other path is kept as it is
//! (`/v1beta/openai`, `/api/v3`). A query is kept, since some gateways want an API version there.

use palyra_common::RedactedUrl;
use reqwest::Url;

use crate::error::{ModelError, ModelErrorClass};

/// The base of a provider's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    base: Url,
}

impl BaseUrl {
    /// Reads a base URL as people write it. `usual_path` replaces an empty one, `pasted` are tails to drop; both begin with a slash,
    /// the former may be empty.
    pub(crate) fn parse(text: &str, usual_path: &str, pasted: &[&str]) -> Result<Self, ModelError> {
        let shown = RedactedUrl::new(text.trim());
        let refuse = |why: &str| {
            ModelError::new(ModelErrorClass::Permanent, format!("the base URL `{shown}` cannot be used: {why}"))
        };
        let mut base = Url::parse(text.trim()).map_err(|error| refuse(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(refuse("it has to begin with http:// or https://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(refuse("it carries a password; give the key as the provider's key instead"));
        }
        base.set_fragment(None);
        let path = base.path().trim_end_matches('/');
        let path = pasted.iter().find_map(|tail| path.strip_suffix(tail)).unwrap_or(path).trim_end_matches('/');
        let path = if path.is_empty() { usual_path } else { path }.to_owned();
        base.set_path(&path);
        Ok(Self { base })
    }

    /// A place below the base; `tail` without a slash at its start.
    pub(crate) fn join(&self, tail: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{tail}", self.base.path().trim_end_matches('/')));
        url
    }

    /// A place beside the API itself, where some servers tell about themselves; `tail` without a slash at its start.
    pub(crate) fn beside(&self, tail: &str) -> Url {
        let mut url = self.base.clone();
        let path = self.base.path().trim_end_matches('/');
        url.set_path(&format!("{}/{tail}", path.strip_suffix("/v1").unwrap_or(path)));
        url
    }

    /// The server's name.
    pub(crate) fn host(&self) -> Option<&str> {
        self.base.host_str()
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// Whether the server is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.base.host_str().is_some_and(|host| {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        })
    }

    /// The base for people, without anything that may be secret.
    pub(crate) fn shown(&self) -> String {
        RedactedUrl::new(self.base.as_str()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BaseUrl, ModelError> {
        BaseUrl::parse(text, "/v1", &["/chat/completions", "/models"])
    }

    #[test]
    fn base_urls_are_joined_however_they_are_written() {
        let table = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
            (" http://localhost:8080 ", "http://localhost:8080/v1/chat/completions"),
            ("http://[::1]:9/v1//", "http://[::1]:9/v1/chat/completions"),
            ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
            ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
            ("https://h/v1/models/", "https://h/v1/chat/completions"),
            ("https://h/api?api-version=2", "https://h/api/chat/completions?api-version=2"),
            ("https://h/v1#x", "https://h/v1/chat/completions"),
        ];
        for (base, expected) in table {
            assert_eq!(parse(base).unwrap().join("chat/completions").as_str(), expected, "{base}");
        }
        assert_eq!(parse("http://h:1").unwrap().join("models").as_str(), "http://h:1/v1/models");
        let bare = BaseUrl::parse("http://h:1/", "", &["/api"]).unwrap();
        assert_eq!(bare.join("api/chat").as_str(), "http://h:1/api/chat");
    }

    #[test]
    fn useless_base_urls_are_refused_without_showing_secrets() {
        for base in ["", "api.openai.com", "ftp://h/v1", "https://", "file:///etc/passwd"] {
            assert!(parse(base).is_err(), "{base}");
        }
        let error = parse("https://me:hunter2@h/v1?key=hunter2").unwrap_err();
        assert!(!error.message.contains("hunter2"), "{error}");
    }

    #[test]
    fn loopback_is_recognised() {
        for (base, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://localhost", true),
            ("http://[::1]:2", true),
            ("http://127.0.0.1.example.com", false),
            ("https://api.openai.com", false),
        ] {
            assert_eq!(parse(base).unwrap().is_loopback(), expected, "{base}");
        }
    }
}
