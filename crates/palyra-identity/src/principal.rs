//! Principals: who a caller turned out to be, and how that was established.
//!
//! INVARIANT: the scopes of a principal are among those of its role. Principals are made by the constructors here, which cut off
//! whatever exceeds the role.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use palyra_common::{DeviceId, Digest, PrincipalRole, TokenScope};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{ConsoleSessionId, IdentityError, Serial, TokenId};

/// Longest name after the kind: enough for an address or a digest, too little for a payload.
const MAX_NAME_BYTES: usize = 128;

/// Who somebody is: a kind and a name, such as `uid:1000`, `user:alice` or `device:01JC0Q6F7Z8G9H0J1K2M3N4P5Q`.
///
/// Names are letters, digits and `._@+-`, so an id stands in addresses, certificates and policies as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PrincipalId(String);

impl PrincipalId {
    /// A user of this machine.
    #[must_use]
    pub fn uid(uid: u32) -> Self {
        Self(format!("uid:{uid}"))
    }

    /// A device that acts for nobody but itself.
    #[must_use]
    pub fn device(id: DeviceId) -> Self {
        Self(format!("device:{id}"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PrincipalId {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let valid = text.split_once(':').is_some_and(|(kind, name)| match kind {
            // One spelling per user: `uid:01000` must not be somebody else than `uid:1000`.
            "uid" => name.parse::<u32>().is_ok_and(|uid| uid.to_string() == name),
            "user" => is_name(name),
            "device" => name.parse::<DeviceId>().is_ok_and(|id| id.to_string() == name),
            _ => false,
        });
        if valid { Ok(Self(text.to_owned())) } else { Err(IdentityError::PrincipalInvalid { given: text.to_owned() }) }
    }
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte);
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(plain)
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for PrincipalId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for PrincipalId {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("PrincipalId")
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^(uid|user|device):[A-Za-z0-9._@+-]{1,128}$" })
    }
}

/// How it was established who calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Via {
    /// The kernel said who is at the other end of the Unix socket.
    UnixSocket {
        /// Its user.
        uid: u32,
    },
    /// The caller can read a file of the local owner.
    LocalToken,
    /// An API token.
    ApiToken {
        /// Which one.
        id: TokenId,
        /// Digest of the secret that was shown. A token that got another secret since is not this credential any more.
        secret: Digest,
    },
    /// A cookie of the console.
    Console {
        /// The session it belongs to.
        session: ConsoleSessionId,
    },
    /// A link to a canvas.
    CanvasLink {
        /// Digest of its token, which names it and opens nothing.
        link: Digest,
        /// What was shown by whoever made it; the link is good for as long as that is.
        made_with: Box<Via>,
    },
    /// A certificate that this installation issued.
    Device {
        /// The device.
        id: DeviceId,
        /// The certificate.
        serial: Serial,
    },
}

impl Via {
    /// The word that policies and the journal use.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::UnixSocket { .. } => "unix_socket",
            Self::LocalToken => "local_token",
            Self::ApiToken { .. } => "api_token",
            Self::Console { .. } => "console",
            Self::CanvasLink { .. } => "canvas_link",
            Self::Device { .. } => "device",
        }
    }
}

/// Somebody whose credential was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// Who acts, or for whom the credential acts.
    pub id: PrincipalId,
    /// What it is to this installation.
    pub role: PrincipalRole,
    /// What this credential is good for; never beyond the role.
    pub scopes: BTreeSet<TokenScope>,
    /// How that was established.
    pub via: Via,
    /// What a person knows it by.
    pub display: String,
    /// How often a minute this credential may be used, if it says so itself.
    pub rate_per_minute: Option<NonZeroU32>,
}

impl Principal {
    /// A principal with all that its role reaches.
    #[must_use]
    pub fn new(id: PrincipalId, role: PrincipalRole, via: Via) -> Self {
        let display = id.to_string();
        Self { id, role, scopes: role.scopes().iter().copied().collect(), via, display, rate_per_minute: None }
    }

    /// The peer of the Unix socket.
    #[must_use]
    pub fn unix_socket(uid: u32, role: PrincipalRole) -> Self {
        Self::new(PrincipalId::uid(uid), role, Via::UnixSocket { uid })
    }

    /// The same with no more than these scopes.
    #[must_use]
    pub fn narrowed(mut self, scopes: &BTreeSet<TokenScope>) -> Self {
        self.scopes.retain(|scope| scopes.contains(scope));
        self
    }

    /// The same under a name that a person gave.
    #[must_use]
    pub fn called(mut self, display: impl Into<String>) -> Self {
        self.display = display.into();
        self
    }

    /// Whether this credential is good for a scope.
    #[must_use]
    pub fn has(&self, scope: TokenScope) -> bool {
        self.scopes.contains(&scope)
    }

    /// The device it acts through, if it is one.
    #[must_use]
    pub fn device(&self) -> Option<DeviceId> {
        match self.via {
            Via::Device { id, .. } => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        for good in ["uid:0", "uid:4294967295", "user:alice", "user:a@b.example", "device:01JC0Q6F7Z8G9H0J1K2M3N4P5Q"] {
            let id: PrincipalId = good.parse().unwrap();
            assert_eq!(id.to_string(), good);
            assert_eq!(serde_json::from_value::<PrincipalId>(serde_json::to_value(&id).unwrap()).unwrap(), id);
        }
        let long = format!("user:{}", "a".repeat(MAX_NAME_BYTES + 1));
        for bad in [
            "",
            "alice",
            ":",
            "user:",
            "uid:",
            "uid:01",
            "uid:+1",
            "uid:-1",
            "uid:4294967296",
            "User:alice",
            "root:x",
            "user:a b",
            "user:a/b",
            "user:é",
            "user:a\n",
            "user:a\"b",
            "device:x",
            "device:01jc0q6f7z8g9h0j1k2m3n4p5q",
            &long,
        ] {
            assert!(bad.parse::<PrincipalId>().is_err(), "{bad:?}");
            assert!(serde_json::from_value::<PrincipalId>(bad.into()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn narrowing_never_adds() {
        let viewer = Principal::unix_socket(7, PrincipalRole::Viewer);
        let wanted = BTreeSet::from([TokenScope::RunsRead, TokenScope::DaemonControl]);
        let narrowed = viewer.narrowed(&wanted);
        assert_eq!(narrowed.scopes, BTreeSet::from([TokenScope::RunsRead]));
        assert!(narrowed.has(TokenScope::RunsRead) && !narrowed.has(TokenScope::DaemonControl));
    }
}
