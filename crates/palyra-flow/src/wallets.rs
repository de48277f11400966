//! Addresses of cryptocurrency wallets: what is paid there is gone.
//!
//! They are told from other long words by their checksums, or, where they have none, by their exact shape.

use palyra_common::Digest;

/// Fewest and most letters of an address with a checksum in Base58 (Bitcoin, Litecoin, Dogecoin, Tron).
const BASE58_LENGTH: std::ops::RangeInclusive<usize> = 25..=35;
/// How many bytes such an address has: a version, a hash of 20 bytes, and 4 bytes of a checksum.
const BASE58_BYTES: usize = 25;
/// Fewest and most letters in Bech32; invoices are longer than addresses.
const BECH32_LENGTH: std::ops::RangeInclusive<usize> = 25..=1023;
/// Longest prefix in Bech32 that says which money it is.
const MAX_PREFIX: usize = 24;
/// What the checksum of Bech32 and of its successor come to.
const BECH32: [u32; 2] = [1, 0x2bc8_30a3];

const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32_LETTERS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// The wallets in a text, in order.
pub(crate) fn wallets(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric();
    let mut found = Vec::new();
    // No address fits between two looks.
    let step = *BASE58_LENGTH.start();
    let mut at = step - 1;
    while let Some(byte) = bytes.get(at) {
        if !is_letter(byte) {
            at += step;
            continue;
        }
        let (before, after) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
        let start = at - before.iter().rev().take_while(|byte| is_letter(byte)).count();
        let end = at + after.iter().take_while(|byte| is_letter(byte)).count();
        found.extend(text.get(start..end).filter(|word| is_wallet(word)));
        at = end + step;
    }
    found
}

/// Whether a word is the address of a wallet.
pub(crate) fn is_wallet(word: &str) -> bool {
    is_ethereum(word) || is_base58(word) || is_bech32(word)
}

fn is_ethereum(word: &str) -> bool {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    digits.is_some_and(|digits| digits.len() == 40 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_base58(word: &str) -> bool {
    if !BASE58_LENGTH.contains(&word.len()) {
        return false;
    }
    let mut number = [0_u8; BASE58_BYTES];
    for letter in word.bytes() {
        let Some(value) = BASE58.iter().position(|known| *known == letter) else { return false };
        let mut carry = u32::try_from(value).unwrap_or_default();
        for byte in number.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            *byte = carry.to_le_bytes()[0];
            carry >>= 8;
        }
        if carry > 0 {
            return false;
        }
    }
    let Some((body, checksum)) = number.split_last_chunk::<4>() else { return false };
    let twice = Digest::of(&Digest::of(body).0);
    twice.0.starts_with(checksum)
}

fn is_bech32(word: &str) -> bool {
    let has = |wanted: fn(&u8) -> bool| word.bytes().any(|byte| wanted(&byte));
    if !BECH32_LENGTH.contains(&word.len()) || (has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)) {
        return false;
    }
    let lower = word.to_ascii_lowercase();
    let Some((prefix, data)) = lower.rsplit_once('1') else { return false };
    if prefix.is_empty() || prefix.len() > MAX_PREFIX || data.len() < 6 {
        return false;
    }
    let values = data.bytes().map(|letter| BECH32_LETTERS.iter().position(|known| *known == letter));
    let Some(values) = values.map(|value| u8::try_from(value?).ok()).collect::<Option<Vec<u8>>>() else { return false };
    let high = prefix.bytes().map(|byte| byte >> 5);
    let low = prefix.bytes().map(|byte| byte & 31);
    let sum = high.chain([0]).chain(low).chain(values).fold(1_u32, |sum, value| {
        const GENERATORS: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
        let top = sum >> 25;
        let mut next = (sum & 0x01ff_ffff) << 5 ^ u32::from(value);
        for (bit, generator) in GENERATORS.iter().enumerate() {
            if top >> bit & 1 == 1 {
                next ^= generator;
            }
        }
        next
    });
    BECH32.contains(&sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wallets_are_told_from_long_words() {
        for wallet in [
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
            "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            "0x52908400098527886E0F7030069857D2E4169EE7",
        ] {
            assert!(is_wallet(wallet), "{wallet}");
            assert_eq!(wallets(&format!("pay to:{wallet}, please")), [wallet]);
            assert_eq!(wallets(wallet), [wallet]);
        }
        for word in [
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
            "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdp",
            "52908400098527886E0F7030069857D2E4169EE7",
            "0x52908400098527886E0F7030069857D2E4169EE",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "antidisestablishmentarianism1",
        ] {
            assert!(!is_wallet(word), "{word}");
        }
    }
}
