//! The serial number of a certificate, by which it is taken back.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{IdentityError, random};

/// Longest serial number that a certificate may carry.
const MAX_BYTES: usize = 20;
const OWN_BYTES: usize = 16;

/// A serial number, as hexadecimal digits in one spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Serial(String);

impl Serial {
    pub(crate) fn generate() -> Result<Self, IdentityError> {
        let mut bytes: [u8; OWN_BYTES] = random::bytes()?;
        // Positive and without leading zeros, so that it is written as it is. 123 random bits remain.
        if let Some(first) = bytes.first_mut() {
            *first = *first & 0x3f | 0x40;
        }
        Ok(Self(hex::encode(bytes)))
    }

    /// The number that stands in a certificate; zeros before it are spelling.
    pub(crate) fn from_certificate(bytes: &[u8]) -> Self {
        let digits: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
        Self(hex::encode(digits))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        hex::decode(&self.0).unwrap_or_default()
    }

    /// The hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Serial {
    type Err = IdentityError;
    /// Reads hexadecimal digits in either case, with or without colons between the bytes.
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let invalid = || IdentityError::SerialInvalid { given: text.to_owned() };
        let digits: String = text.chars().filter(|letter| *letter != ':').collect();
        let bytes = hex::decode(&digits).map_err(|_| invalid())?;
        let serial = Self::from_certificate(&bytes);
        if serial.0.is_empty() || serial.0.len() > 2 * MAX_BYTES { Err(invalid()) } else { Ok(serial) }
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for Serial {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_has_one_spelling() {
        let serial = Serial::generate().unwrap();
        assert_eq!(serial.as_str().len(), 32);
        assert_eq!(serial.to_string().parse::<Serial>().unwrap(), serial);
        assert_eq!(Serial::from_certificate(&serial.to_bytes()), serial);
        for text in ["0a1b", "0A:1B", "00:0a:1b"] {
            assert_eq!(text.parse::<Serial>().unwrap().as_str(), "0a1b");
        }
        for bad in ["", "0", "00", "xyz", &"aa".repeat(21)] {
            assert!(bad.parse::<Serial>().is_err(), "{bad}");
        }
    }
}
