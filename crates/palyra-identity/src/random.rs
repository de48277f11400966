//! Random bytes from the operating system, and their text.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::IdentityError;

/// Bytes of every secret made here: beyond guessing, whatever the number of tries.
pub(crate) const SECRET_BYTES: usize = 32;
/// Letters that many bytes take.
pub(crate) const SECRET_LETTERS: usize = 43;

pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], IdentityError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| IdentityError::NoRandomness { reason: error.to_string() })?;
    Ok(bytes)
}

/// A fresh secret as text without padding, safe in headers, cookies and addresses.
pub(crate) fn secret() -> Result<String, IdentityError> {
    Ok(encode(&bytes::<SECRET_BYTES>()?))
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Whether a text has the form of a secret made here.
pub(crate) fn is_secret(text: &str) -> bool {
    text.len() == SECRET_LETTERS && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_have_their_form_and_differ() {
        let (one, two) = (secret().unwrap(), secret().unwrap());
        assert!(is_secret(&one) && is_secret(&two), "{one} {two}");
        assert_ne!(one, two);
        assert!(!is_secret(&one[1..]) && !is_secret(&format!("{one}A")) && !is_secret(&one.replace(&one[..1], "é")));
    }
}
