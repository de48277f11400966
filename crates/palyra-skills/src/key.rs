//! Keys that skills, statements and registries are signed with: Ed25519, the private half as PKCS#8 PEM in a file of mode 0600.
//!
//! A key is named by its id, the first 16 bytes of the digest of its public half. The id is what people compare and what records carry; a signature is
//! always checked with the whole key.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::str::FromStr;

use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, spki::der::pem::LineEnding};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use palyra_common::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::SkillError;
use crate::files::{self, Existing, Readers};

/// A private key is a few lines; more is the wrong file.
const MAX_KEY_FILE: u64 = 16 << 10;

/// The name of a key: `key:` and 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 16]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key:{}", hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyId {
    type Err = SkillError;
    fn from_str(text: &str) -> Result<Self, SkillError> {
        let mut bytes = [0; 16];
        let digits = text.strip_prefix("key:").unwrap_or(text);
        hex::decode_to_slice(digits, &mut bytes)
            .map_err(|_| SkillError::name("a key's id", text, "expected `key:` and 32 hexadecimal digits"))?;
        Ok(Self(bytes))
    }
}

/// A public key: `ed25519:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key's id.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let Digest(digest) = Digest::of_parts(&[b"palyra-skill-key-v1", &self.0]);
        let mut id = [0; 16];
        id.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        KeyId(id)
    }

    /// Whether the signature is this key's over the message. Weak keys and malleable signatures are refused.
    pub(crate) fn signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
    }

    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ed25519:{}", hex::encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = SkillError;
    fn from_str(text: &str) -> Result<Self, SkillError> {
        // The text is not repeated: people hand over the wrong half of a pair.
        let invalid = |reason: &str| SkillError::KeyInvalid { reason: reason.to_owned() };
        if text.contains("PRIVATE KEY") {
            return Err(invalid(
                "it is a private key, which must be kept secret; use the public key in the `.pub` file",
            ));
        }
        let digits =
            text.trim().strip_prefix("ed25519:").ok_or_else(|| invalid("it does not start with `ed25519:`"))?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| invalid("it does not have 64 hexadecimal digits"))?;
        match VerifyingKey::from_bytes(&bytes) {
            Ok(key) if !key.is_weak() => Ok(Self(bytes)),
            _ => Err(invalid("it is not a valid Ed25519 public key")),
        }
    }
}

macro_rules! serde_as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

serde_as_text!(KeyId);
serde_as_text!(PublicKey);

/// A key pair. The private half is overwritten on drop and never shown.
pub struct PublisherKey(SigningKey);

impl PublisherKey {
    /// A new key.
    pub fn generate() -> Result<Self, SkillError> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut_slice()).map_err(|error| SkillError::Randomness(error.to_string()))?;
        Ok(Self::from_seed(&seed))
    }

    /// The key of a seed; for tests and for keys that are kept elsewhere.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads a private key from PEM text.
    pub fn from_pem(pem: &str) -> Result<Self, SkillError> {
        SigningKey::from_pkcs8_pem(pem).map(Self).map_err(|error| SkillError::KeyInvalid {
            reason: format!("it is not an Ed25519 key in PKCS#8 PEM: {error}"),
        })
    }

    /// The private key as PEM text.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, SkillError> {
        self.0
            .to_pkcs8_pem(LineEnding::LF)
            .map_err(|error| SkillError::KeyInvalid { reason: format!("it cannot be written: {error}") })
    }

    /// Reads a private key from a file that nobody else can read.
    pub fn load(path: &Path) -> Result<Self, SkillError> {
        let failed = |source| SkillError::file("read", path, source);
        let file = fs::File::open(path).map_err(failed)?;
        // The mode of the open file: what was checked is what is read.
        let mode = file.metadata().map_err(failed)?.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(SkillError::KeyExposed { path: path.to_owned(), mode });
        }
        let mut text = Zeroizing::new(String::new());
        file.take(MAX_KEY_FILE).read_to_string(&mut text).map_err(failed)?;
        Self::from_pem(&text)
    }

    /// Writes the private key to a new file of mode 0600; an existing file is left alone.
    pub fn save(&self, path: &Path) -> Result<(), SkillError> {
        files::write(path, self.to_pem()?.as_bytes(), Existing::Refuse, Readers::User)
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for PublisherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherKey").field("public", &self.public()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_survives_its_file_and_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("acme.key");
        let key = PublisherKey::generate().unwrap();
        key.save(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(PublisherKey::load(&path).unwrap().public(), key.public());
        assert!(fs::read_to_string(&path).unwrap().starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert_eq!(PublisherKey::generate().unwrap().save(&path).unwrap_err().code(), "skill_file_unusable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(PublisherKey::load(&path).unwrap_err().code(), "skill_key_exposed");
    }

    #[test]
    fn texts_of_keys_round_trip_and_weak_points_are_refused() {
        let public = PublisherKey::from_seed(&[7; 32]).public();
        assert_eq!(public.to_string().parse::<PublicKey>().unwrap(), public);
        assert_eq!(public.id().to_string().parse::<KeyId>().unwrap(), public.id());
        assert!(format!("ed25519:{}", "0".repeat(64)).parse::<PublicKey>().is_err());
        assert!("ed25519:00".parse::<PublicKey>().is_err());
        let private = PublisherKey::from_seed(&[7; 32]).to_pem().unwrap();
        let refused = private.parse::<PublicKey>().unwrap_err().to_string();
        assert!(refused.contains("private key"), "{refused}");
        assert!(private.lines().all(|line| !refused.contains(line)), "the wrong half is not repeated: {refused}");
        assert!(!format!("{:?}", PublisherKey::from_seed(&[7; 32])).contains("0707"));
    }
}
