//! Signed statements: changes of keys, revocations, the files of a registry.
//!
//! The form is DSSE: the payload is carried as the very bytes that were signed, with its type signed along, so nothing has to be brought into a canonical form
//! and a statement of one kind never passes for another. Several keys may sign; a key counts once, however often it signs.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::shown;
use crate::{KeyId, PublicKey, PublisherKey, SkillError};

/// Most signatures of one statement; checking one costs time.
const MAX_SIGNATURES: usize = 64;

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvelopeSignature {
    keyid: KeyId,
    sig: String,
}

/// A signed statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Envelope {
    payload_type: String,
    payload: String,
    signatures: Vec<EnvelopeSignature>,
}

/// What a statement is about; its name is signed along.
pub(crate) trait Statement: Serialize + DeserializeOwned {
    /// The media type.
    const TYPE: &'static str;
    /// What people call it, such as `a change of keys`.
    const KIND: &'static str;
}

impl Envelope {
    /// Makes a statement and signs it.
    pub(crate) fn sign<T: Statement>(statement: &T, keys: &[&PublisherKey]) -> Result<Self, SkillError> {
        let payload = serde_json::to_vec(statement)
            .map_err(|error| SkillError::StatementInvalid { kind: T::KIND, reason: error.to_string() })?;
        let mut envelope =
            Self { payload_type: T::TYPE.to_owned(), payload: STANDARD.encode(payload), signatures: Vec::new() };
        for key in keys {
            envelope.countersign(key)?;
        }
        Ok(envelope)
    }

    /// Adds the signature of one more key, for statements whose keys are kept in different hands.
    pub fn countersign(&mut self, key: &PublisherKey) -> Result<(), SkillError> {
        let message = self.message("a signed statement")?;
        let keyid = key.public().id();
        self.signatures.retain(|signature| signature.keyid != keyid);
        self.signatures.push(EnvelopeSignature { keyid, sig: STANDARD.encode(key.sign(&message)) });
        Ok(())
    }

    /// Reads a statement from JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, SkillError> {
        let invalid = |reason| SkillError::StatementInvalid { kind: "a signed statement", reason };
        let envelope: Self = serde_json::from_slice(bytes).map_err(|error| invalid(shown(&error.to_string())))?;
        if envelope.signatures.len() > MAX_SIGNATURES {
            return Err(invalid("it has more than 64 signatures".to_owned()));
        }
        Ok(envelope)
    }

    /// The statement as JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SkillError> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| SkillError::StatementInvalid { kind: "a signed statement", reason: error.to_string() })?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Whether it claims to be a statement of this kind.
    pub(crate) fn is<T: Statement>(&self) -> bool {
        self.payload_type == T::TYPE
    }

    /// What it says, without asking who says so. For looking up which keys to ask for; never to be acted upon.
    pub(crate) fn unverified<T: Statement>(&self) -> Result<T, SkillError> {
        let invalid = |reason: String| SkillError::StatementInvalid { kind: T::KIND, reason };
        if self.payload_type != T::TYPE {
            return Err(invalid(format!("its type is `{}`", shown(&self.payload_type))));
        }
        let payload = self.payload_bytes(T::KIND)?;
        serde_json::from_slice(&payload).map_err(|error| invalid(shown(&error.to_string())))
    }

    /// How many of these keys have signed it, each counted once.
    pub(crate) fn signers<'a>(&self, keys: impl IntoIterator<Item = &'a PublicKey>) -> Result<usize, SkillError> {
        let message = self.message("a signed statement")?;
        let mut counted = BTreeSet::new();
        for key in keys {
            let id = key.id();
            let signed = self.signatures.iter().filter(|signature| signature.keyid == id).any(|signature| {
                let bytes: Option<[u8; 64]> =
                    STANDARD.decode(&signature.sig).ok().and_then(|bytes| bytes.try_into().ok());
                bytes.is_some_and(|bytes| key.signed(&message, &bytes))
            });
            if signed {
                counted.insert(id);
            }
        }
        Ok(counted.len())
    }

    fn payload_bytes(&self, kind: &'static str) -> Result<Vec<u8>, SkillError> {
        STANDARD
            .decode(&self.payload)
            .map_err(|_| SkillError::StatementInvalid { kind, reason: "its payload is not base64".to_owned() })
    }

    /// The bytes that are signed: type and payload, each with its length.
    fn message(&self, kind: &'static str) -> Result<Vec<u8>, SkillError> {
        let payload = self.payload_bytes(kind)?;
        let mut message =
            format!("DSSEv1 {} {} {} ", self.payload_type.len(), self.payload_type, payload.len()).into_bytes();
        message.extend_from_slice(&payload);
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct One(u8);
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Other(u8);

    impl Statement for One {
        const TYPE: &'static str = "one";
        const KIND: &'static str = "one";
    }
    impl Statement for Other {
        const TYPE: &'static str = "other";
        const KIND: &'static str = "another";
    }

    #[test]
    fn a_statement_is_of_one_kind_and_a_key_counts_once() {
        let keys = [PublisherKey::from_seed(&[1; 32]), PublisherKey::from_seed(&[2; 32])];
        let mut envelope = Envelope::sign(&One(7), &[&keys[0]]).unwrap();
        assert_eq!(envelope.unverified::<One>().unwrap(), One(7));
        assert_eq!(envelope.unverified::<Other>().unwrap_err().code(), "skill_statement_invalid");
        let publics = [keys[0].public(), keys[0].public(), keys[1].public()];
        assert_eq!(envelope.signers(&publics).unwrap(), 1);
        envelope.countersign(&keys[1]).unwrap();
        envelope.countersign(&keys[1]).unwrap();
        assert_eq!(envelope.signers(&publics).unwrap(), 2);
        // The type is signed along.
        envelope.payload_type = Other::TYPE.to_owned();
        assert_eq!(envelope.unverified::<Other>().unwrap(), Other(7));
        assert_eq!(envelope.signers(&publics).unwrap(), 0);
    }
}
