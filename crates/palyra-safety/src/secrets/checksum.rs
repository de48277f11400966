//! The checksum of GitHub and npm tokens: CRC-32 of the random part, in base 62, six characters.

/// Digits in the order these tokens use.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Length of the checksum at the end of a token.
pub(crate) const CHECKSUM_LEN: usize = 6;

/// CRC-32 (IEEE) of some bytes; bit by bit, since tokens are short and candidates rare.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// The six characters that end a token whose random part is `body`.
#[must_use]
pub fn checksum(body: &[u8]) -> String {
    let mut value = crc32(body);
    let mut digits = [b'0'; CHECKSUM_LEN];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62.get((value % 62) as usize).copied().unwrap_or(b'0');
        value /= 62;
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

/// Whether the last six characters are the checksum of the rest.
pub(crate) fn checksum_holds(token: &[u8]) -> bool {
    token
        .len()
        .checked_sub(CHECKSUM_LEN)
        .and_then(|split| token.split_at_checked(split))
        .is_some_and(|(body, sum)| checksum(body).as_bytes() == sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(checksum(b""), "000000");
        // 0xCBF43926 = 3421780262 in base 62.
        assert_eq!(checksum(b"123456789"), "3jZRME");
        assert!(!checksum_holds(b"12345"));
    }
}
