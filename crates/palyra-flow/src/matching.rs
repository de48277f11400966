//! Strict matching of a value against trusted text.
//!
//! An address or a number has to be equal to one that a person wrote, by the equality of its kind (see [`crate::entity`]). Any other value has to be the whole of
//! something a person wrote, never a piece of a longer word: `company` is not in `our-company`. Case and Unicode composition are ignored there, nothing else: a
//! look-alike letter or an invisible character is another value. Paths outside the workspace are compared case included.

use std::ops::Range;

use memchr::memmem;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

use crate::entity::{Entities, Entity};
use crate::{command, links, numbers};

/// Texts that a trusted person wrote, prepared for strict matching.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedText {
    texts: Vec<Text>,
    /// The same letter by letter, for commands and paths.
    written: Vec<String>,
    entities: Entities<()>,
}

/// A text for matching words.
#[derive(Debug, Clone)]
struct Text {
    plain: String,
    /// Where numbers stand that are written in groups: no group is a word of its own.
    numbers: Vec<Range<usize>>,
}

impl Text {
    fn holds(&self, value: &str) -> bool {
        wholes(&self.plain, value).any(|start| {
            let end = start + value.len();
            let cuts = |number: &Range<usize>| {
                let apart = end <= number.start || number.end <= start;
                !apart && (number.start < start || end < number.end)
            };
            !self.numbers.iter().any(cuts)
        })
    }
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
                && let Some(entity) = Entity::parse(before)
            {
                self.entities.insert(entity, ());
            }
            if let Some(entity) = Entity::parse(&link) {
                self.entities.insert(entity, ());
            }
        }
        let grouped = numbers::numbers(text).into_iter().filter_map(|(span, _)| text.get(span));
        let single = text.split(|letter: char| !letter.is_alphanumeric());
        for number in grouped.chain(single).filter_map(Entity::parse_number) {
            self.entities.insert(number, ());
        }
        let plain = plain(text);
        let numbers = numbers::numbers(&plain).into_iter().map(|(span, _)| span).collect();
        self.texts.push(Text { plain, numbers });
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

    /// Whether a person wrote this path, case included.
    pub(crate) fn holds_path(&self, path: &str) -> bool {
        let path = path.trim();
        path.contains(char::is_alphanumeric) && self.written.iter().any(|text| wholes(text, path).next().is_some())
    }

    /// Whether a person wrote this word as a name: in quotes, after `#` or `@`, with a capital letter inside of a sentence, or with what no word of the language has.
    pub(crate) fn sets_apart(&self, word: &str) -> bool {
        let word = word.trim();
        let bare = word.trim_start_matches(['#', '@']);
        !bare.is_empty()
            && self.written.iter().any(|text| {
                wholes_of(text, word).any(|start| is_set_apart(text, start, word))
                    || wholes_of(text, bare).any(|start| is_set_apart(text, start, bare))
            })
    }

    /// Whether a person wrote this number, in digits.
    pub(crate) fn says_number(&self, wanted: f64) -> bool {
        let is_other = |letter: char| !letter.is_ascii_digit() && !".,".contains(letter);
        let same = |number: &str| {
            let plain = number.trim_matches(['.', ',']);
            let parsed = |text: &str| {
                text.parse::<f64>().is_ok_and(|number| (number - wanted).abs() < f64::EPSILON * wanted.abs().max(1.0))
            };
            !plain.is_empty() && (parsed(plain) || parsed(&plain.replace(',', "")))
        };
        self.written.iter().any(|text| text.split(is_other).any(same))
    }

    /// Whether a person wrote any number by itself. A share (`10%`) says nothing without what it is a share of; groups of an account count, since nobody can be sure.
    pub(crate) fn says_an_amount(&self) -> bool {
        let is_amount = |word: &str| {
            let bare = word.trim_matches(|letter: char| !letter.is_ascii_digit() && letter != '%');
            bare.contains(|letter: char| letter.is_ascii_digit())
                && bare.chars().all(|letter| letter.is_ascii_digit() || ".,'".contains(letter))
        };
        self.written.iter().any(|text| text.split(char::is_whitespace).any(is_amount))
    }

    /// Whether a person wrote the value, and it is spelled as they wrote it, or as anybody would spell it. What else means the same, with other blanks or other capitals, is a choice, and choices
    /// can spell what the planner has seen.
    pub(crate) fn spells(&self, value: &str) -> bool {
        if !self.holds(value) || value != value.trim() {
            return false;
        }
        if self.written.iter().any(|text| text.contains(value)) {
            return true;
        }
        if let Some(entity) = Entity::parse(value) {
            return entity.is_plainly(value);
        }
        let capitals = value.chars().filter(|letter| letter.is_uppercase()).count();
        let letters = value.chars().filter(|letter| letter.is_alphabetic()).count();
        let begins_with_capitals = || {
            let mut words = value.split(' ').map(|word| word.chars().filter(|letter| letter.is_alphabetic()));
            words
                .all(|mut word| word.next().is_none_or(char::is_uppercase) && word.all(|letter| !letter.is_uppercase()))
        };
        let begins_with_a_capital =
            || capitals == 1 && value.chars().find(|letter| letter.is_alphabetic()).is_some_and(char::is_uppercase);
        capitals == 0 || capitals == letters || begins_with_a_capital() || begins_with_capitals()
    }

    /// Whether a person wrote this number, and it is spelled as they wrote it, or in its shortest form.
    pub(crate) fn spells_number(&self, value: &str) -> bool {
        let Ok(number) = value.parse::<f64>() else { return false };
        let is_part = |letter: char| letter.is_ascii_digit() || ".,".contains(letter);
        let mut words = self.written.iter().flat_map(|text| text.split(|letter: char| !is_part(letter)));
        self.says_number(number)
            && (value == number.to_string()
                || value == format!("{number:?}")
                || words.any(|word| word.trim_matches(['.', ',']) == value))
    }

    /// Whether the value is any part of one of the texts: what a value is *not* trusted for.
    pub(crate) fn mentions(&self, value: &str) -> bool {
        let value = plain(value.trim());
        self.texts.iter().any(|text| text.plain.contains(&value))
    }

    /// Whether the value stands, as a whole, in one of the texts.
    pub(crate) fn holds(&self, value: &str) -> bool {
        let value = value.trim();
        // Marks between words are nobody's word: `;` names nothing, though people write it.
        if !value.contains(char::is_alphanumeric) {
            return false;
        }
        let entity = Entity::parse(value);
        if entity.as_ref().is_some_and(|entity| self.entities.get(entity).is_some()) {
            return true;
        }
        // An address that cannot be parsed is no word either.
        if entity.is_some_and(|entity| entity.leads_somewhere()) || links::kind(value).is_some() {
            return false;
        }
        let value = plain(value);
        self.texts.iter().any(|text| text.holds(&value))
    }
}

/// Lower case, composed; nothing else changes.
pub(crate) fn plain(text: &str) -> String {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => text.to_lowercase(),
        _ => text.nfc().collect::<String>().to_lowercase(),
    }
}

/// Where a value stands in a text as whole words.
fn wholes<'a>(text: &'a str, value: &'a str) -> impl Iterator<Item = usize> + 'a {
    memmem::find_iter(text.as_bytes(), value.as_bytes()).filter(move |&start| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + value.len()..).unwrap_or_default();
        let edge_before = value.chars().next().is_none_or(|first| !part_of_a_word(first));
        let edge_after = value.chars().next_back().is_none_or(|last| !part_of_a_word(last));
        (edge_before || ends_before(before)) && (edge_after || begins_after(after))
    })
}

/// Where a word stands in a text as it was written, without regard to the case of ASCII letters.
fn wholes_of<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let found = text.char_indices().map(|(start, _)| start).filter(move |&start| {
        text.get(start..start + word.len()).is_some_and(|piece| piece.eq_ignore_ascii_case(word))
    });
    found.filter(move |&start| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + word.len()..).unwrap_or_default();
        let marked = before.is_some_and(|mark| mark == '#' || mark == '@');
        (marked || ends_before(before)) && begins_after(after)
    })
}

/// Whether what stands there differs from an ordinary word of a sentence.
fn is_set_apart(text: &str, start: usize, word: &str) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let written = text.get(start..start + word.len()).unwrap_or_default();
    let is_quote = |letter: char| "\"'`«»“”‘’„#@".contains(letter);
    if before.chars().next_back().is_some_and(is_quote) {
        return true;
    }
    if written.chars().any(|letter| !letter.is_alphabetic() && letter != ' ' && letter != '\'') {
        return true;
    }
    let begins_a_sentence = before.trim_end().chars().next_back().is_none_or(|last| ".!?:\n".contains(last));
    if begins_a_sentence {
        written.chars().skip(1).any(char::is_uppercase)
    } else {
        written.chars().any(char::is_uppercase)
    }
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
        for value in ["www.example.org/notes/today", "HTTPS://WWW.example.org/notes/today", "ada@example.org"] {
            assert!(text.holds(value), "{value}");
        }
        for value in [
            "www.example.org",
            "https://www.example.org/",
            "http://www.example.org/notes/today",
            "https://www.example.org/notes/today/",
            "https://www.example.org/notes/Today",
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
        for other in
            ["US133000000121212121212", "GB29NWBK6016133192", "GB29 NWBK 6016", "GB29NWBK601613319268192200", "192200"]
        {
            assert!(!text.holds(other), "{other}");
        }
        assert!(text.holds("2200"));
        assert!(!text.holds("220"));
    }

    #[test]
    fn paths_match_with_their_case_and_never_by_their_parents() {
        let text = trusted("Copy /srv/notes/Today.md to ~/backup please");
        assert!(text.holds_path("/srv/notes/Today.md") && text.holds_path("~/backup"));
        for other in ["/srv/notes/today.md", "/srv/notes", "/srv", "/", "~", "notes/Today.md", "~/backup/x", ""] {
            assert!(!text.holds_path(other), "{other}");
        }
    }

    #[test]
    fn only_plain_spellings_say_nothing_beside_the_value() {
        let text = trusted(
            "Weather in berlin for 1,200 people? Pay GB29 NWBK 6016 1331 9268 19, see https://www.example.org/notes/today",
        );
        for value in [
            "berlin",
            "Berlin",
            "BERLIN",
            "Weather In Berlin",
            "1,200",
            "GB29NWBK60161331926819",
            "GB29 NWBK 6016 1331 9268 19",
            "www.example.org/notes/today",
            "https://www.example.org/notes/today",
        ] {
            assert!(text.spells(value), "{value}");
        }
        for value in [
            "berlin \t \t",
            " berlin",
            "bErLin",
            "wEather in Berlin",
            "GB29 NWBK6016 1331 9268 19",
            "gb29NWBK60161331926819",
            "https://www.example.org/SECRET/../notes/today",
            "https://www.example.org:0443/notes/today",
            "HTTPS://www.Example.org/notes/today",
            "https://www.example.org/notes/today\n",
        ] {
            assert!(!text.spells(value), "{value}");
        }
        for number in ["1200", "1200.0"] {
            assert!(text.spells_number(number), "{number}");
        }
        for number in ["1200.00", "1.2e3", "1200.00000000000000001", "+1200", " 1200", "1201"] {
            assert!(!text.spells_number(number), "{number}");
        }
    }

    #[test]
    fn look_alikes_are_other_values() {
        let text = trusted("Send it to alice@paypal.com and to Alice");
        assert!(!text.holds("alice@p\u{0430}ypal.com"));
        assert!(!text.holds("Al\u{200b}ice"));
        assert!(!text.holds("Ａｌｉｃｅ"));
    }
}
