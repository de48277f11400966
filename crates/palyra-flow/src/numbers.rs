//! Numbers that lead to somebody: bank accounts and telephone numbers, also where people write them in groups.
//!
//! A number in groups is recognised as a whole or not at all: as an international account number by its check digits, otherwise as the longest run of groups
//! of one length. INVARIANT: fewer or more groups than were written make another number.

use std::ops::Range;

/// Fewest and most letters and digits of an account number.
const ACCOUNT_LENGTH: std::ops::RangeInclusive<usize> = 8..=34;
/// Fewest digits of an account number, so that words are none.
const ACCOUNT_DIGITS: usize = 6;
/// Fewest letters and digits of an international account number.
const IBAN_LENGTH: usize = 15;
/// How long the groups of an international account number are.
const IBAN_GROUP: usize = 4;
/// Digits of an international telephone number (ITU-T E.164).
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// What may stand between the digits of a telephone number.
const SEPARATORS: [char; 8] = [' ', '-', '.', '/', '(', ')', '\u{a0}', '\u{202f}'];

/// What a number in a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberKind {
    /// A telephone number with its country, or an international account number: it leads somewhere wherever it stands.
    International,
    /// A number in groups, as accounts and cards are written, and as much else is.
    Grouped,
}

/// A text that is an account number as a whole, without its spaces and in capitals.
pub(crate) fn account(text: &str) -> Option<String> {
    let single = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let whole = || numbers(text).into_iter().any(|(span, _)| span == (0..text.len())) && !text.starts_with('+');
    let compact = compact(text);
    let digits = compact.bytes().filter(u8::is_ascii_digit).count();
    let fits = ACCOUNT_LENGTH.contains(&compact.len()) && digits >= ACCOUNT_DIGITS;
    (fits && (single || whole())).then_some(compact)
}

/// A text that is an international telephone number as a whole: `+` and its digits.
pub(crate) fn phone(text: &str) -> Option<String> {
    let end = phone_end(text, 0)?;
    (end == text.len()).then(|| format!("+{}", text.chars().filter(char::is_ascii_digit).collect::<String>()))
}

/// Whether an account number in its normal form has the shape of an international one: two letters, two digits, eleven to thirty letters and digits.
pub(crate) fn is_international(number: &str) -> bool {
    let bytes = number.as_bytes();
    (IBAN_LENGTH..=*ACCOUNT_LENGTH.end()).contains(&bytes.len())
        && bytes.iter().take(2).all(u8::is_ascii_alphabetic)
        && bytes.iter().skip(2).take(2).all(u8::is_ascii_digit)
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes.iter().filter(|byte| byte.is_ascii_digit()).count() >= *ACCOUNT_LENGTH.start()
}

/// Without spaces and hyphens, in capitals.
fn compact(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
}

/// The telephone numbers, and the account numbers that are written in groups, with where they stand.
pub(crate) fn numbers(text: &str) -> Vec<(Range<usize>, NumberKind)> {
    let mut found: Vec<(Range<usize>, NumberKind)> = Vec::new();
    for plus in memchr::memchr_iter(b'+', text.as_bytes()) {
        let first = text
            .get(..plus)
            .and_then(|before| before.chars().next_back())
            .is_none_or(|letter| !letter.is_alphanumeric());
        if let Some(end) = phone_end(text, plus).filter(|_| first) {
            found.push((plus..end, NumberKind::International));
        }
    }
    let groups = groups(text);
    let mut at = 0;
    while let Some(rest) = groups.get(at..).filter(|rest| !rest.is_empty()) {
        let run = iban(rest).map(|length| (length, NumberKind::International));
        let run = run.or_else(|| grouped(rest).map(|length| (length, NumberKind::Grouped)));
        let (length, kind) = run.unwrap_or((1, NumberKind::Grouped));
        if let (Some(first), Some(last)) = (rest.first(), rest.get(length - 1))
            && length > 1
        {
            found.push((first.start..last.end, kind));
        }
        at += length;
    }
    found
}

/// Where a telephone number that begins here ends.
fn phone_end(text: &str, start: usize) -> Option<usize> {
    let number = text.get(start..)?.strip_prefix('+')?;
    let (mut digits, mut end, mut gap) = (0, 0, 0);
    for (at, letter) in number.char_indices() {
        if letter.is_ascii_digit() {
            (digits, end, gap) = (digits + 1, at + 1, 0);
        } else if (digits > 0 && gap < 2 && SEPARATORS.contains(&letter)) || (letter == '(' && digits + gap == 0) {
            gap += 1;
        } else if letter.is_alphanumeric() && gap == 0 {
            return None;
        } else {
            break;
        }
    }
    PHONE_DIGITS.contains(&digits).then_some(start + 1 + end)
}

/// A run of letters and digits, and whether exactly one space or hyphen parts it from the one before.
#[derive(Debug)]
struct Group<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    joined: bool,
}

impl Group<'_> {
    fn is_digits(&self) -> bool {
        self.text.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn has_digit(&self) -> bool {
        self.text.bytes().any(|byte| byte.is_ascii_digit())
    }
}

/// The runs of ASCII letters and digits of a text that may belong to a number. Runs beside a digit are kept, and no others: prose is passed over.
fn groups(text: &str) -> Vec<Group<'_>> {
    let mut found: Vec<Group<'_>> = Vec::new();
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return found;
    }
    let mut end_before = 0;
    for part in text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        // Slices of one text: their distance is where they stand.
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        let end = start + part.len();
        let between = text.get(end_before..start).unwrap_or_default();
        let joined = end_before > 0 && matches!(between, " " | "-" | "\u{a0}" | "\u{202f}");
        found.push(Group { text: part, start, end, joined });
        end_before = end;
    }
    found
}

/// How many groups, from the first on, are one international account number.
fn iban(groups: &[Group<'_>]) -> Option<usize> {
    let first = groups.first()?;
    let country = first.text.as_bytes();
    let begins = country.len() == IBAN_GROUP
        && country.iter().take(2).all(u8::is_ascii_alphabetic)
        && country.iter().skip(2).all(u8::is_ascii_digit);
    if !begins {
        return None;
    }
    let mut length = 1;
    for group in groups.iter().skip(1) {
        if !group.joined || group.text.len() > IBAN_GROUP || length > ACCOUNT_LENGTH.end() / IBAN_GROUP {
            break;
        }
        if group.text.len() < IBAN_GROUP {
            length += usize::from(group.has_digit());
            break;
        }
        length += 1;
    }
    let number = |length: usize| -> String { groups.iter().take(length).map(|group| group.text).collect() };
    let fits = |length: &usize| (IBAN_LENGTH..=*ACCOUNT_LENGTH.end()).contains(&number(*length).len());
    let valid = (1..=length).rev().filter(fits).find(|length| has_valid_check_digits(&number(*length)));
    // Without valid check digits nobody knows where it ends; words after it are none of its groups.
    let trimmed =
        || (1..=length).rev().find(|length| groups.get(length - 1).is_some_and(Group::has_digit)).filter(fits);
    valid.or_else(trimmed)
}

/// The check of ISO 7064 that international account numbers carry.
fn has_valid_check_digits(number: &str) -> bool {
    let (country, rest) = number.split_at_checked(4).unwrap_or((number, ""));
    let remainder = rest.chars().chain(country.chars()).try_fold(0_u32, |remainder, letter| {
        let value = letter.to_digit(36)?;
        Some(if value < 10 { (remainder * 10 + value) % 97 } else { (remainder * 100 + value) % 97 })
    });
    remainder == Some(1)
}

/// How many groups, from the first on, are one number in groups of digits: at least three, of one length but for the last.
fn grouped(groups: &[Group<'_>]) -> Option<usize> {
    let size = groups.first().filter(|group| group.is_digits())?.text.len();
    if !(3..=6).contains(&size) {
        return None;
    }
    let mut length = 1;
    for group in groups.iter().skip(1) {
        if !group.joined || !group.is_digits() || group.text.len() > size {
            break;
        }
        length += 1;
        if group.text.len() < size {
            break;
        }
    }
    (length >= 3).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        numbers(text).into_iter().filter_map(|(span, _)| text.get(span)).collect()
    }

    #[test]
    fn numbers_in_groups_are_found_as_a_whole() {
        let iban = "GB29 NWBK 6016 1331 9268 19";
        assert_eq!(found(&format!("My account is {iban} and the rent is 2200.")), [iban]);
        assert_eq!(found("DE89 3704 0044 0532 0130 00 this week"), ["DE89 3704 0044 0532 0130 00"]);
        assert_eq!(found("to SE45 5000 0000 0583 9825 7466 soon"), ["SE45 5000 0000 0583 9825 7466"]);
        assert_eq!(found("card 4111-1111-1111-1111, due 12/27"), ["4111-1111-1111-1111"]);
        assert_eq!(found("call +49 (30) 1234-567 or +1.202.555.0100."), ["+49 (30) 1234-567", "+1.202.555.0100"]);
        for none in ["1+1 is 2", "in 2026 and 2027", "version 1.2.3", "2026-11-19", "x+4930123456", "AB12 is a gate"] {
            assert!(found(none).is_empty(), "{none}: {:?}", found(none));
        }
    }

    #[test]
    fn a_number_has_one_normal_form() {
        let iban = Some("GB29NWBK60161331926819".to_owned());
        assert_eq!(account("gb29 nwbk 6016 1331 9268 19"), iban);
        assert_eq!(account("GB29NWBK60161331926819"), iban);
        assert_eq!(account("GB29 NWBK 6016"), None, "a part is no account");
        assert_eq!(account("pay GB29NWBK60161331926819"), None);
        assert_eq!(phone("+49 (30) 1234-567").as_deref(), Some("+49301234567"));
        assert_eq!(phone("+49 (30) 1234-567 and"), None);
        assert_eq!(account("+49 30 1234567"), None);
    }

    proptest::proptest! {
        #[test]
        fn what_is_found_stands_there_and_is_a_number_by_itself(text in "([A-Z]{2}[0-9]{2}|[0-9]{1,6}|[a-z]{1,5}|\\+| |-|\\.){0,20}") {
            for (span, _) in numbers(&text) {
                let number = text.get(span).unwrap_or_default();
                proptest::prop_assert!(number.contains(|letter: char| letter.is_ascii_digit()), "{number}");
                proptest::prop_assert_eq!(found(number), [number]);
            }
        }
    }
}
