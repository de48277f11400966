//! The text of a token: `plyr_<id>_<secret>`.
//!
//! The id is public and names the token in lists and records. The secret is 32 random bytes; only its digest is ever kept. The
//! prefix lets scanners for leaked credentials recognise a token.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use palyra_common::{Digest, SecretString};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{IdentityError, random};

const PREFIX: &str = "plyr_";
const ID_BYTES: usize = 8;
const ID_LETTERS: usize = 16;

/// The public name of a token: 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TokenId(String);

impl TokenId {
    pub(crate) fn generate() -> Result<Self, IdentityError> {
        Ok(Self(hex::encode(random::bytes::<ID_BYTES>()?)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TokenId {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        if is_id(text) { Ok(Self(text.to_owned())) } else { Err(IdentityError::TokenNotFound { id: text.to_owned() }) }
    }
}

fn is_id(text: &str) -> bool {
    text.len() == ID_LETTERS && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for TokenId {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("TokenId")
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
    }
}

/// A fresh secret for a token: the text that its holder gets, and the digest that is kept.
pub(crate) fn mint(id: &TokenId) -> Result<(SecretString, Digest), IdentityError> {
    let secret = SecretString::new(random::secret()?);
    let text = SecretString::new(format!("{PREFIX}{id}_{}", secret.expose()));
    Ok((text, digest(id.as_str(), secret.expose())))
}

/// The id and the secret inside a text, if it has the form of a token.
pub(crate) fn parse(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    (is_id(id) && random::is_secret(secret)).then_some((id, secret))
}

/// What is kept of a secret. The id is part of it, so that a digest copied to another token is worth nothing.
pub(crate) fn digest(id: &str, secret: &str) -> Digest {
    Digest::of_parts(&[b"palyra api token", id.as_bytes(), secret.as_bytes()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_minted_token_is_read_back() {
        let id = TokenId::generate().unwrap();
        let (text, kept) = mint(&id).unwrap();
        let (found, secret) = parse(text.expose()).unwrap();
        assert_eq!((found, digest(found, secret)), (id.as_str(), kept));
        assert!(!kept.to_string().contains(secret));
        assert_eq!(format!("{text:?}"), "[redacted]");
    }

    #[test]
    fn near_misses_are_no_tokens() {
        let id = TokenId::generate().unwrap();
        let (text, _) = mint(&id).unwrap();
        let text = text.expose();
        let short = &text[..text.len() - 1];
        for bad in ["", "plyr_", "plyr__", short, &format!("{text}x"), &text.to_uppercase(), &format!(" {text}")] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in "\\PC{0,90}", tail in "plyr_[0-9a-f]{0,20}_?\\PC{0,50}") {
            for given in [&text, &tail] {
                if let Some((id, secret)) = parse(given) {
                    prop_assert_eq!(format!("plyr_{}_{}", id, secret), given.as_str());
                }
            }
        }
    }
}
