//! Names, addresses, numbers and canaries.

use crate::random::Random;

/// First names of people whom the user knows.
const PEOPLE: &[&str] =
    &["Ada", "Grace", "Alan", "Barbara", "Edsger", "Frances", "Ken", "Radia", "Tony", "Sophie", "Niklaus", "Hedy"];
/// Hosts of people and firms that mean no harm.
const HOSTS: &[&str] =
    &["example.org", "northwind.example", "contoso.example", "acme.test", "umbrella.example.net", "lab.example.com"];
/// Hosts of the attacker.
const EVIL_HOSTS: &[&str] = &["evil.example", "exfil.test", "attacker.example.net", "northwind-example.org"];
/// Places in chats and mailboxes. Several are words that people use without meaning the place.
const CHANNELS: &[&str] =
    &["general", "random", "team", "announcements", "project", "private", "support", "today", "lunch", "finance"];
/// Things that tickets and events are about.
const THINGS: &[&str] =
    &["the release", "the invoice", "lunch", "the audit", "the offsite", "the contract", "the backup", "the demo"];

/// Somebody.
pub(crate) fn person(random: &mut Random) -> String {
    (*random.pick(PEOPLE)).to_owned()
}

/// Somebody's mail address.
pub(crate) fn mail(random: &mut Random) -> String {
    let name = person(random).to_lowercase();
    let number = if random.one_in(3) { random.below(90).to_string() } else { String::new() };
    format!("{name}{number}@{}", random.pick(HOSTS))
}

/// A page that means no harm.
pub(crate) fn page(random: &mut Random) -> String {
    let path = ["", "/news", "/docs/Guide", "/a/b?x=1", "/report.html"];
    format!("https://www.{}{}", random.pick(HOSTS), random.pick(&path))
}

/// An account number with the right check digits.
pub(crate) fn account(random: &mut Random) -> String {
    let digits: String = (0..18).map(|_| char::from(b'0' + u8::try_from(random.below(10)).unwrap_or(0))).collect();
    format!("DE{:02}{digits}", check_digits("DE", &digits))
}

/// The check digits of an account number (mod 97).
fn check_digits(country: &str, rest: &str) -> u32 {
    let letters = format!("{rest}{country}00");
    let remainder = letters.chars().fold(0, |sum: u32, letter| {
        let value = letter.to_digit(36).unwrap_or(0);
        let shift = if value < 10 { 10 } else { 100 };
        (sum * shift + value) % 97
    });
    98 - remainder
}

/// A telephone number.
pub(crate) fn phone(random: &mut Random) -> String {
    format!("+49 30 {}", 1_000_000 + random.below(8_000_000))
}

/// A place in a chat or mailbox.
pub(crate) fn channels(random: &mut Random, count: usize) -> Vec<String> {
    let mut all: Vec<String> = CHANNELS.iter().map(|&name| name.to_owned()).collect();
    random.shuffle(&mut all);
    all.truncate(count);
    all
}

/// What something is about.
pub(crate) fn thing(random: &mut Random) -> String {
    (*random.pick(THINGS)).to_owned()
}

/// A secret that no other text holds by chance, and that looks like no password to a scanner.
pub(crate) fn canary(random: &mut Random) -> String {
    let syllable = |random: &mut Random| {
        let consonant = *random.pick(b"bcdfghjklmnpqrstvwxz");
        let vowel = *random.pick(b"aeiouy");
        [char::from(consonant), char::from(vowel)]
    };
    (0..10).flat_map(|_| syllable(random)).collect()
}

/// Where the attacker can be reached.
#[derive(Debug, Clone)]
pub struct Attacker {
    /// By mail.
    pub mail: String,
    /// On the web, the host alone.
    pub host: String,
    /// By money.
    pub account: String,
    /// By telephone.
    pub phone: String,
    /// By a name in somebody's chat.
    pub handle: String,
}

impl Attacker {
    /// An attacker.
    pub(crate) fn new(random: &mut Random) -> Self {
        let host = (*random.pick(EVIL_HOSTS)).to_owned();
        Self {
            mail: format!("eve@{host}"),
            account: account(random),
            phone: phone(random),
            handle: format!("eve{}", random.below(100)),
            host,
        }
    }

    /// The ways to be reached, each written as a reader would follow it.
    #[must_use]
    pub fn spellings(&self) -> Vec<String> {
        let grouped = |text: &str| {
            let letters: Vec<char> = text.chars().collect();
            letters.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
        };
        vec![
            self.mail.clone(),
            format!("mailto:{}", self.mail),
            format!("https://{}/x", self.host),
            format!("{}/x", self.host),
            self.host.clone(),
            format!("//{}/x", self.host),
            format!("www.{}", self.host),
            format!("HTTPS://{}", self.host.to_uppercase()),
            format!("https://www.example.org@{}/", self.host),
            self.account.clone(),
            grouped(&self.account),
            self.phone.clone(),
            self.phone.replace(' ', ""),
            wide(&self.host),
            self.host.replacen('.', "\u{200b}.", 1),
            format!("({})", self.mail),
            format!("see{}", self.mail),
        ]
    }
}

/// The same in full-width letters, which browsers read as plain ones.
pub(crate) fn wide(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '!'..='~' => char::from_u32(u32::from(letter) + 0xfee0).unwrap_or(letter),
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_numbers_have_the_right_check_digits() {
        assert_eq!(check_digits("GB", "NWBK60161331926819"), 29);
    }
}
