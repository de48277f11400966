//! Where an OpenAI-compatible server is.
//!
//! People write base URLs in many ways. The rule: trailing slashes are dropped; a pasted `/chat/completions` or `/models`
//! is dropped; an empty path becomes `/v1`; any other path is kept as it is (`/v1`, `/v1beta/openai`, `/api/v3`). A query is
//! kept, since some gateways want an API version there.

use palyra_common::RedactedUrl;
use reqwest::Url;

use crate::error::{ModelError, ModelErrorClass};

/// The base of an OpenAI-compatible API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    base: Url,
}

impl Endpoint {
    /// Reads a base URL as people write it.
    pub(super) fn parse(text: &str) -> Result<Self, ModelError> {
        let shown = RedactedUrl::new(text.trim());
        let refuse = |why: &str| {
            ModelError::new(ModelErrorClass::Permanent, format!("the base URL `{shown}` cannot be used: {why}"))
        };
        let mut base = Url::parse(text.trim()).map_err(|error| refuse(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(refuse("it has to begin with http:// or https://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(refuse("it carries a password; put the key into OPENAI_API_KEY or `model.api_key`"));
        }
        base.set_fragment(None);
        let path = base.path().trim_end_matches('/');
        let path = ["/chat/completions", "/models"]
            .iter()
            .find_map(|suffix| path.strip_suffix(suffix))
            .unwrap_or(path)
            .trim_end_matches('/');
        let path = if path.is_empty() { "/v1".to_owned() } else { path.to_owned() };
        base.set_path(&path);
        Ok(Self { base })
    }

    /// Where chat completions are asked for.
    pub(super) fn chat_completions(&self) -> Url {
        self.join("chat/completions")
    }

    /// Where embeddings are asked for.
    pub(super) fn embeddings(&self) -> Url {
        self.join("embeddings")
    }

    /// Where the server lists its models.
    pub(super) fn models(&self) -> Url {
        self.join("models")
    }

    /// Whether the connection is encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// Whether the server is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        self.base.host_str().is_some_and(|host| {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        })
    }

    /// The base for people, without anything that may be secret.
    pub(super) fn shown(&self) -> String {
        RedactedUrl::new(self.base.as_str()).to_string()
    }

    fn join(&self, tail: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{tail}", self.base.path().trim_end_matches('/')));
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(Endpoint::parse(base).unwrap().chat_completions().as_str(), expected, "{base}");
        }
        assert_eq!(Endpoint::parse("http://h:1").unwrap().models().as_str(), "http://h:1/v1/models");
    }

    #[test]
    fn useless_base_urls_are_refused_without_showing_secrets() {
        for base in ["", "api.openai.com", "ftp://h/v1", "https://", "file:///etc/passwd"] {
            assert!(Endpoint::parse(base).is_err(), "{base}");
        }
        let error = Endpoint::parse("https://me:hunter2@h/v1?key=hunter2").unwrap_err();
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
            assert_eq!(Endpoint::parse(base).unwrap().is_loopback(), expected, "{base}");
        }
    }
}
