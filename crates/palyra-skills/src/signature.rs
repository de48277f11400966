//! The signature of an archive.
//!
//! What is signed is a message built from the archive itself, never from what `signature.json` says about it: skill, version, publisher, key, time, the
//! digest of the manifest, of the provenance, and path, length and digest of every other file, each with its length in front. So a signature fits exactly
//! one set of files under one manifest by one publisher; packing the same files anew does not break it, adding one does.
//!
//! The list of files in `signature.json` is there to say *which* file differs. It is compared first and believed never.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::archive::{self, ArchiveLimits, SkillArchive, path};
use crate::{KeyId, PublicKey, PublisherKey, PublisherName, SkillError};

/// Largest `signature.json`.
const MAX_SIGNATURE: usize = 256 << 10;
const FORMAT: u32 = 1;
const ALGORITHM: &str = "ed25519";

/// A file as it was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedFile {
    /// Its path.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub sha256: Digest,
}

/// `signature.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureFile {
    format: u32,
    algorithm: String,
    /// Who signed, as they call themselves.
    pub publisher: PublisherName,
    /// The key's id.
    pub key_id: KeyId,
    /// The key.
    pub public_key: PublicKey,
    /// When, as the signer's clock said.
    pub signed_at: Timestamp,
    /// What was signed.
    pub files: Vec<SignedFile>,
    signature: String,
}

impl SignatureFile {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, SkillError> {
        let invalid = |reason: String| SkillError::SignatureInvalid { reason };
        if bytes.len() > MAX_SIGNATURE {
            return Err(invalid("`signature.json` is larger than 256 KiB".to_owned()));
        }
        let file: Self = serde_json::from_slice(bytes).map_err(|error| {
            invalid(format!("`signature.json` cannot be read: {}", crate::error::shown(&error.to_string())))
        })?;
        if file.format != FORMAT || file.algorithm != ALGORITHM {
            return Err(invalid("`signature.json` has an unsupported format or algorithm".to_owned()));
        }
        Ok(file)
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, SkillError> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| SkillError::SignatureInvalid { reason: format!("it cannot be written: {error}") })?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Who an archive really is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// The publisher, the same in manifest and signature.
    pub publisher: PublisherName,
    /// The key's id.
    pub key_id: KeyId,
    /// The key.
    pub public_key: PublicKey,
    /// When it was signed, as the signer's clock said.
    pub signed_at: Timestamp,
}

/// Signs an archive and returns it with the signature inside.
pub fn sign(archive: &SkillArchive, key: &PublisherKey, at: Timestamp) -> Result<Vec<u8>, SkillError> {
    sign_with(archive, key, at, &ArchiveLimits::default())
}

/// Signs an archive under other limits.
pub fn sign_with(
    archive: &SkillArchive,
    key: &PublisherKey,
    at: Timestamp,
    limits: &ArchiveLimits,
) -> Result<Vec<u8>, SkillError> {
    let publisher = archive.manifest().publisher.clone();
    let public_key = key.public();
    let message = message(archive, &publisher, &public_key, at);
    let signature = SignatureFile {
        format: FORMAT,
        algorithm: ALGORITHM.to_owned(),
        publisher,
        key_id: public_key.id(),
        public_key,
        signed_at: at,
        files: files_of(archive),
        signature: STANDARD.encode(key.sign(&message)),
    };
    archive::repack_signed(archive, &signature, limits)
}

/// Says who signed an archive, or why nobody did. Whether that somebody is trusted is another question.
pub fn verify(archive: &SkillArchive) -> Result<Verified, SkillError> {
    let manifest = archive.manifest();
    let file = archive.signature().ok_or_else(|| SkillError::Unsigned { skill: manifest.skill_id.clone() })?;
    let invalid = |reason: &str| SkillError::SignatureInvalid { reason: reason.to_owned() };
    if file.publisher != manifest.publisher {
        return Err(invalid("manifest and signature name different publishers"));
    }
    if file.public_key.id() != file.key_id {
        return Err(invalid("the key does not match its id"));
    }
    compare(&files_of(archive), &file.files)?;
    let signature: [u8; 64] = STANDARD
        .decode(&file.signature)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| invalid("it is not 64 bytes in base64"))?;
    let message = message(archive, &file.publisher, &file.public_key, file.signed_at);
    if !file.public_key.signed(&message, &signature) {
        return Err(invalid("it does not match this key, the files, the manifest and the time"));
    }
    Ok(Verified {
        publisher: file.publisher.clone(),
        key_id: file.key_id,
        public_key: file.public_key,
        signed_at: file.signed_at,
    })
}

/// Every file but the signature, in order.
fn files_of(archive: &SkillArchive) -> Vec<SignedFile> {
    archive
        .files()
        .iter()
        .filter(|(path, _)| path.as_str() != path::SIGNATURE)
        .map(|(path, bytes)| SignedFile { path: path.clone(), bytes: bytes.len() as u64, sha256: Digest::of(bytes) })
        .collect()
}

fn compare(here: &[SignedFile], signed: &[SignedFile]) -> Result<(), SkillError> {
    let differs = |path: &str, reason| Err(SkillError::SignatureMismatch { path: crate::error::shown(path), reason });
    for file in here {
        match signed.iter().find(|other| other.path == file.path) {
            None => return differs(&file.path, "it was added after signing"),
            Some(other) if other != file => return differs(&file.path, "its contents were modified after signing"),
            Some(_) => {}
        }
    }
    match signed.iter().find(|file| !here.iter().any(|other| other.path == file.path)) {
        Some(file) => differs(&file.path, "it was removed after signing"),
        None if here.len() != signed.len() => differs(path::SIGNATURE, "it lists a file twice"),
        None => Ok(()),
    }
}

/// The bytes that are signed.
fn message(archive: &SkillArchive, publisher: &PublisherName, key: &PublicKey, at: Timestamp) -> Vec<u8> {
    let mut message = b"palyra-skill-signature-v1\n".to_vec();
    let mut put = |part: &[u8]| {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    };
    let digest_of = |path: &str| archive.files().get(path).map_or([0; 32], |bytes| Digest::of(bytes).0);
    let manifest = archive.manifest();
    put(manifest.skill_id.as_str().as_bytes());
    put(manifest.version.to_string().as_bytes());
    put(publisher.as_str().as_bytes());
    put(key.id().to_string().as_bytes());
    put(key.bytes());
    put(&at.0.to_be_bytes());
    put(&digest_of(archive.manifest_path()));
    put(&digest_of(path::PROVENANCE));
    let files = files_of(archive);
    put(&(files.len() as u64).to_be_bytes());
    for file in &files {
        put(file.path.as_bytes());
        put(&file.bytes.to_be_bytes());
        put(&file.sha256.0);
    }
    message
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
