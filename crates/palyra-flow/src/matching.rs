//! Strict matching of a value against trusted text.
//!
//! A match has to be the whole of something a person wrote, never a piece of a longer word: `company` is not in `our-company.com`. Case and
//! Unicode composition are ignored, nothing else: a look-alike letter, an invisible character or a longer path is another value.
//! Addresses are compared as addresses (scheme and trailing slash do not matter, an added path does), account numbers without
//! their spaces.

use std::collections::HashSet;

use memchr::memmem;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

use crate::{command, links};

/// Texts that a trusted person wrote, prepared for strict matching.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedText {
    texts: Vec<String>,
    /// The same letter by letter, for commands.
    written: Vec<String>,
    addresses: HashSet<String>,
    accounts: HashSet<String>,
}

impl TrustedText {
    pub(crate) fn add(&mut self, text: &str) {
        for (link, _) in links::links(text) {
            // Folding is for finding what is hidden; what is trusted is only what really stands there.
            if !text.contains(&link) {
                continue;
            }
            // People forget the space after a full stop: `see example.org.They wrote it`.
            if let Some((before, last)) = link.rsplit_once('.')
                && last.chars().next().is_some_and(char::is_uppercase)
                && last.chars().skip(1).any(char::is_lowercase)
                && links::kind(before).is_some()
            {
                self.addresses.insert(address(before));
            }
            let address = address(&link);
            if let Some((host, _)) = address.split_once('/') {
                self.addresses.insert(host.to_owned());
            }
            self.addresses.insert(address);
        }
        self.accounts.extend(accounts(text));
        self.texts.push(plain(text));
        self.written.push(text.to_owned());
    }

    /// Whether a person wrote a command line of exactly these words.
    pub(crate) fn holds_command(&self, words: &[&str]) -> bool {
        command::holds(self.written.iter().map(String::as_str), words)
    }

    /// Whether a person wrote this script, letter by letter.
    pub(crate) fn holds_script(&self, script: &str) -> bool {
        command::holds_script(self.written.iter().map(String::as_str), script)
    }

    /// Whether the value stands, as a whole, in one of the texts.
    pub(crate) fn holds(&self, value: &str) -> bool {
        let value = plain(value.trim());
        // Marks between words are nobody's word: `;` names nothing, though people write it.
        if !value.contains(char::is_alphanumeric) {
            return false;
        }
        if !value.contains(char::is_whitespace) && links::kind(&value).is_some() {
            return self.addresses.contains(&address(&value)) || self.accounts.contains(&compact(&value));
        }
        self.accounts.contains(&compact(&value)) || self.texts.iter().any(|text| holds_whole(text, &value))
    }
}

/// Lower case, composed; nothing else changes.
pub(crate) fn plain(text: &str) -> String {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => text.to_lowercase(),
        _ => text.nfc().collect::<String>().to_lowercase(),
    }
}

/// An address without scheme and trailing slash.
pub(crate) fn address(link: &str) -> String {
    let lower = plain(link);
    let bare = ["https://", "http://", "mailto:"].iter().find_map(|scheme| lower.strip_prefix(scheme));
    bare.unwrap_or(&lower).trim_end_matches('/').to_owned()
}

/// Without spaces and hyphens.
fn compact(value: &str) -> String {
    value.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').collect()
}

/// Fewest letters and digits of an account number.
const ACCOUNT_LENGTH: usize = 8;

/// Runs of groups of letters and digits that may be one number written in groups, without their spaces: every run of neighbouring groups
/// that each hold a digit, or that follow one which does.
fn accounts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lower = plain(text);
    let groups: Vec<&str> = lower
        .split(|letter: char| letter.is_whitespace() || letter == '-')
        .map(|group| group.trim_matches(|letter: char| !letter.is_alphanumeric()))
        .collect();
    let is_group = |group: &&str| {
        !group.is_empty() && group.len() <= 34 && group.chars().all(|letter| letter.is_ascii_alphanumeric())
    };
    for start in 0..groups.len() {
        let mut joined = String::new();
        for group in groups.iter().skip(start).take_while(|group| is_group(group)).take(10) {
            joined.push_str(group);
            let digits = joined.chars().filter(char::is_ascii_digit).count();
            if joined.len() > 40 {
                break;
            }
            if joined.len() >= ACCOUNT_LENGTH && digits >= 6 {
                found.push(joined.clone());
            }
        }
    }
    found
}

fn holds_whole(text: &str, value: &str) -> bool {
    memmem::find_iter(text.as_bytes(), value.as_bytes()).any(|start| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + value.len()..).unwrap_or_default();
        let edge_before = value.chars().next().is_none_or(|first| !part_of_a_word(first));
        let edge_after = value.chars().next_back().is_none_or(|last| !part_of_a_word(last));
        (edge_before || ends_before(before)) && (edge_after || begins_after(after))
    })
}

/// Marks that join words into one name.
const JOINING: &str = "_-.@/+#\\";

/// Whether a longer word could go on beyond this letter: `-company` is a piece of `our-company`.
fn part_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || JOINING.contains(letter)
}

fn ends_before(before: Option<char>) -> bool {
    before.is_none_or(|letter| !letter.is_alphanumeric() && !JOINING.contains(letter))
}

/// A full stop at the end of a sentence ends a word, one inside a host name does not.
fn begins_after(after: &str) -> bool {
    let mut letters = after.chars();
    match letters.next() {
        None => true,
        Some(letter) if letter.is_alphanumeric() || letter == '_' || letter == '@' => false,
        Some(letter) if JOINING.contains(letter) => letters.next().is_none_or(|next| !next.is_alphanumeric()),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted(text: &str) -> TrustedText {
        let mut trusted = TrustedText::default();
        trusted.add(text);
        trusted
    }

    #[test]
    fn words_match_as_a_whole() {
        let text =
            trusted("Add Charlie to the 'general' channel. Ask Bob's friend at our-company.com about Elm Street.");
        for value in ["Charlie", "general", "bob", "our-company.com", "Elm Street", "OUR-COMPANY.COM"] {
            assert!(text.holds(value), "{value}");
        }
        for value in ["company.com", "company", "Charl", "eneral", "Elm Street 5", "compan", "", " "] {
            assert!(!text.holds(value), "{value}");
        }
    }

    #[test]
    fn marks_are_nobodys_word_and_do_not_cut_words() {
        let text = trusted("Read it; post it to #team, write to /srv/notes and to our-company's C++ list (see below).");
        for value in ["#team", "/srv/notes", "C++", "c++ list", "(see below)", "our-company"] {
            assert!(text.holds(value), "{value}");
        }
        for value in [";", "; ", ",", "-", "(", "-company", "our-", "/notes", "/srv/", "srv/notes", "#", "."] {
            assert!(!text.holds(value), "{value}");
        }
    }

    #[test]
    fn addresses_match_as_addresses() {
        let text = trusted("Read https://www.example.org/notes/today, then write to ada@example.org.");
        for value in
            ["www.example.org/notes/today", "http://www.example.org/notes/today/", "www.example.org", "ada@example.org"]
        {
            assert!(text.holds(value), "{value}");
        }
        for value in [
            "www.example.org/notes",
            "www.example.org/notes/today?key=secret",
            "evil.www.example.org",
            "example.org.evil.example",
            "ada@example.org.evil.example",
            "eve@example.org",
        ] {
            assert!(!text.holds(value), "{value}");
        }
    }

    #[test]
    fn a_forgotten_space_after_a_full_stop_is_forgiven() {
        let text = trusted("post it to our website www.our-company.com.They sent it");
        assert!(text.holds("www.our-company.com"));
        assert!(!text.holds("our-company.com"));
        assert!(!text.holds("www.our-company.co"));
    }

    #[test]
    fn account_numbers_match_without_their_spaces() {
        let text = trusted("My landlord's account is GB29 NWBK 6016 1331 9268 19 and the rent is 2200.");
        assert!(text.holds("GB29NWBK60161331926819"));
        assert!(text.holds("gb29 nwbk 6016 1331 9268 19"));
        assert!(!text.holds("GB29NWBK60161331926818"));
        assert!(!text.holds("US133000000121212121212"));
        assert!(text.holds("2200"));
        assert!(!text.holds("220"));
    }

    #[test]
    fn look_alikes_are_other_values() {
        let text = trusted("Send it to alice@paypal.com and to Alice");
        assert!(!text.holds("alice@p\u{0430}ypal.com"));
        assert!(!text.holds("Al\u{200b}ice"));
        assert!(!text.holds("Ａｌｉｃｅ"));
    }
}
