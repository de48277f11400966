//! The journal's Ed25519 key: the private half in `keys/journal.key` (0600, hex), the public halves in `keys/journal.pub`.
//!
//! `journal.pub` has one key per line, the current one first. Older ones stay, so that checkpoints from before a restore can
//! still be checked. Trust in that file is trust in the state root; who wants more keeps a copy of a checkpoint elsewhere and
//! hands it to verification.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use palyra_common::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::JournalError;
use crate::layout::{Layout, write_atomically};
use crate::seal::SealKey;
use crate::table_digests::TableKey;

/// A public key that checkpoints are checked with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(pub(crate) [u8; 32]);

impl PublicKey {
    /// The name of a key: the digest of its bytes.
    #[must_use]
    pub fn id(&self) -> Digest {
        Digest::of(&self.0)
    }

    /// Whether the signature is this key's over the message. Weak keys and malleable signatures are refused.
    pub(crate) fn signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
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
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut bytes = [0; 32];
        let digits = text.strip_prefix("ed25519:").unwrap_or(text);
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| format!("`{text}` is not an Ed25519 key"))?;
        Ok(Self(bytes))
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The key pair of a writer.
pub(crate) struct JournalKey {
    signing: SigningKey,
    public: PublicKey,
    seals: SealKey,
    tables: TableKey,
}

impl JournalKey {
    fn from_seed(seed: &[u8; 32]) -> Self {
        let signing = SigningKey::from_bytes(seed);
        let public = PublicKey(signing.verifying_key().to_bytes());
        Self { signing, public, seals: SealKey::derive(seed), tables: TableKey::derive(seed) }
    }

    pub(crate) fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn seals(&self) -> &SealKey {
        &self.seals
    }

    pub(crate) fn tables(&self) -> &TableKey {
        &self.tables
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.signing.sign(message).to_bytes()
    }

    /// Reads the key for writing.
    pub(crate) fn load(layout: &Layout) -> Result<Self, JournalError> {
        let key = Self::read(layout)?;
        key.publish(layout)?;
        Ok(key)
    }

    /// Reads the key, and refuses one that other users can read.
    pub(crate) fn read(layout: &Layout) -> Result<Self, JournalError> {
        let path = layout.private_key();
        let unusable = |reason: String| JournalError::Key { path: path.clone(), reason };
        let mode = match fs::metadata(&path) {
            Ok(metadata) => metadata.permissions().mode(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(unusable("it does not exist".to_owned()));
            }
            Err(error) => return Err(JournalError::file("read", path, error)),
        };
        if mode & 0o077 != 0 {
            return Err(unusable(format!("its mode is {:o}, other users can read it", mode & 0o7777)));
        }
        let text = fs::read_to_string(&path).map_err(|e| JournalError::file("read", &path, e))?;
        let mut seed = [0; 32];
        hex::decode_to_slice(text.trim(), &mut seed).map_err(|_| unusable("it is not 64 hex digits".to_owned()))?;
        Ok(Self::from_seed(&seed))
    }

    /// Makes a new key.
    pub(crate) fn create(layout: &Layout) -> Result<Self, JournalError> {
        let path = layout.private_key();
        let mut seed = [0; 32];
        getrandom::fill(&mut seed)
            .map_err(|e| JournalError::Key { path: path.clone(), reason: format!("no randomness: {e}") })?;
        write_atomically(&path, 0o600, format!("{}\n", hex::encode(seed)).as_bytes())
            .map_err(|e| JournalError::file("write", &path, e))?;
        let key = Self::from_seed(&seed);
        key.publish(layout)?;
        Ok(key)
    }

    /// Puts the public half first in `journal.pub` and keeps the others.
    pub(crate) fn publish(&self, layout: &Layout) -> Result<(), JournalError> {
        let mut keys = public_keys(layout)?;
        if keys.first() == Some(&self.public) {
            return Ok(());
        }
        keys.retain(|key| key != &self.public);
        keys.insert(0, self.public);
        write_public_keys(layout, &keys)
    }
}

impl fmt::Debug for JournalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// The keys that checkpoints of this state may be signed with, the current one first.
pub(crate) fn public_keys(layout: &Layout) -> Result<Vec<PublicKey>, JournalError> {
    let path = layout.public_keys();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(JournalError::file("read", path, error)),
    };
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.parse().map_err(|reason| JournalError::Key { path: path.clone(), reason }))
        .collect()
}

/// Replaces the list of public keys.
pub(crate) fn write_public_keys(layout: &Layout, keys: &[PublicKey]) -> Result<(), JournalError> {
    let path = layout.public_keys();
    let text: String = keys.iter().map(|key| format!("{key}\n")).collect();
    write_atomically(&path, 0o644, text.as_bytes()).map_err(|e| JournalError::file("write", path, e))
}
