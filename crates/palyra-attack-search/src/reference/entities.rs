//! Typed entities with the equality of their type, read in the plainest way.

use std::cmp::Ordering;

/// One entity in its normal form, with how it was written. Spelling is no part of its equality.
#[derive(Debug, Clone)]
pub enum Entity {
    /// A mail address; case does not matter.
    Mail(String, String),
    /// A web address: scheme, if one was written, and the rest with its host in small letters.
    Web(Option<String>, String, String),
    /// An account number without spaces.
    Account(String, String),
    /// A telephone number without spaces.
    Phone(String, String),
}

impl PartialEq for Entity {
    fn eq(&self, other: &Self) -> bool {
        self.form() == other.form()
    }
}

impl Eq for Entity {}

impl PartialOrd for Entity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.form().cmp(&other.form())
    }
}

impl Entity {
    /// Its type and what has to be equal.
    fn form(&self) -> (u8, Option<&str>, &str) {
        match self {
            Self::Mail(address, _) => (0, None, address),
            Self::Web(scheme, rest, _) => (1, scheme.as_deref(), rest),
            Self::Account(number, _) => (2, None, number),
            Self::Phone(number, _) => (3, None, number),
        }
    }

    /// As it was written.
    #[must_use]
    pub fn written(&self) -> &str {
        match self {
            Self::Mail(_, written) | Self::Web(_, _, written) | Self::Account(_, written) | Self::Phone(_, written) => {
                written
            }
        }
    }
}

/// The entity that a text is as a whole.
#[must_use]
pub fn entity(text: &str) -> Option<Entity> {
    let text = text.trim();
    account(text).or_else(|| phone(text)).or_else(|| mail(text)).or_else(|| web(text))
}

/// The entities in a text. What is spelled with wide letters or invisible ones is read as a browser would.
#[must_use]
pub fn entities(text: &str) -> Vec<Entity> {
    let mut found = Vec::new();
    for text in [text.to_owned(), folded(text)] {
        let is_edge = |letter: char| letter.is_whitespace() || "\"'`<>()[]{}|\\,;«»„“”".contains(letter);
        for token in text.split(is_edge) {
            let token = token.trim_matches(|letter: char| ".:!?*_~…".contains(letter));
            found.extend(mail(token).or_else(|| web(token)).or_else(|| account(token)));
        }
        // Numbers are written in groups: any run of up to ten words may be one.
        let words: Vec<&str> = text.split_whitespace().collect();
        for start in 0..words.len() {
            for end in start + 1..=words.len().min(start + 10) {
                let run = words[start..end].join(" ");
                let run = run.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '+');
                found.extend(account(run).filter(|_| mod97(&closed(run))).or_else(|| phone(run)));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn mail(text: &str) -> Option<Entity> {
    let bare = text.strip_prefix("mailto:").unwrap_or(text);
    let (name, host) = bare.rsplit_once('@')?;
    let is_name = !name.is_empty() && !name.contains(['/', ' ', '@']);
    (is_name && is_host(host)).then(|| Entity::Mail(bare.to_lowercase(), text.to_owned()))
}

fn web(text: &str) -> Option<Entity> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme.to_lowercase()), rest),
        None => (None, text.strip_prefix("//").unwrap_or(text)),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.split(':').next().unwrap_or_default();
    let path = if path.is_empty() { "/" } else { path };
    let is_address = is_host(host) && !text.contains(char::is_whitespace);
    is_address.then(|| Entity::Web(scheme, format!("{}{path}", authority.to_lowercase()), text.to_owned()))
}

fn is_host(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty() && label.chars().all(|letter| letter.is_alphanumeric() || letter == '-' || letter == '_')
    };
    let is_top = |label: &&str| label.chars().count() >= 2 && label.chars().all(char::is_alphabetic);
    labels.len() >= 2 && labels.iter().all(is_label) && labels.last().is_some_and(is_top)
}

fn account(text: &str) -> Option<Entity> {
    let bare = closed(text);
    let letters = bare.chars().all(|letter| letter.is_ascii_alphanumeric());
    let is_account = (15..=34).contains(&bare.len())
        && letters
        && bare.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && mod97(&bare);
    is_account.then(|| Entity::Account(bare, text.to_owned()))
}

fn closed(text: &str) -> String {
    text.chars().filter(|letter| *letter != ' ' && *letter != '-').collect::<String>().to_uppercase()
}

fn mod97(bare: &str) -> bool {
    if bare.len() < 5 || !bare.is_ascii() {
        return false;
    }
    let (head, tail) = bare.split_at(4);
    let mut remainder = 0_u32;
    for letter in tail.chars().chain(head.chars()) {
        let Some(value) = letter.to_digit(36) else { return false };
        remainder = (remainder * if value < 10 { 10 } else { 100 } + value) % 97;
    }
    remainder == 1
}

fn phone(text: &str) -> Option<Entity> {
    let digits: String = text.chars().filter(|letter| !" -()/".contains(*letter)).collect();
    let number = digits.strip_prefix('+')?;
    let is_number = (7..=15).contains(&number.len()) && number.chars().all(|letter| letter.is_ascii_digit());
    is_number.then(|| Entity::Phone(digits, text.to_owned()))
}

fn folded(text: &str) -> String {
    let plain = |letter: char| match letter {
        '\u{200b}'..='\u{200d}' | '\u{ad}' | '\u{feff}' => None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0),
        other => Some(other),
    };
    text.chars().filter_map(plain).collect()
}
