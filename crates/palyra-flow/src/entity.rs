//! Typed entities: web and mail addresses, bank accounts, telephone numbers, each with the equality of its own kind.
//!
//! Two spellings are the same entity only where the kind itself says so: a host and a scheme without regard to case, a default port, an account or telephone
//! number without its spaces. Paths, queries and fragments are compared as they are, because every letter that may vary carries a bit to whoever receives it.
//!
//! INVARIANT: a part of an entity is another entity. The host of an address, the parent of a path and the first groups of a number are not the address, the
//! path and the number.

use std::collections::HashMap;

use url::{Position, Url};

use crate::matching::plain;
use crate::{links, numbers};

/// One entity in its normal form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Entity {
    /// The kind and what has to be equal, apart from the scheme.
    key: Key,
    /// The scheme of a web address, if one was written.
    scheme: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Web(String),
    Mail(String),
    Account(String),
    Phone(String),
}

impl Entity {
    /// The entity that a text is as a whole. Nothing for other texts, and for what looks like an address and cannot be parsed as one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(number) = Self::parse_number(text) {
            return Some(number);
        }
        links::kind(text)?;
        if text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
            return None;
        }
        if let Some(mail) = mail(text) {
            return Some(Self { key: Key::Mail(mail), scheme: None });
        }
        web(text)
    }

    /// The account or telephone number that a text is as a whole.
    pub(crate) fn parse_number(text: &str) -> Option<Self> {
        let key = numbers::account(text).map(Key::Account).or_else(|| numbers::phone(text).map(Key::Phone))?;
        Some(Self { key, scheme: None })
    }

    /// Whether it is an address wherever it stands. A word of letters and digits may be an account number, and much else.
    pub(crate) fn leads_somewhere(&self) -> bool {
        match &self.key {
            Key::Web(_) | Key::Mail(_) | Key::Phone(_) => true,
            Key::Account(number) => numbers::is_international(number),
        }
    }

    /// Whether a text is this entity in a spelling that says nothing beside it: its normal form, or an account in groups of four. Every other spelling that means the same, such as a
    /// default port or a path with `..` in it, is the choice of whoever wrote it, and choices carry bits.
    pub(crate) fn is_plainly(&self, text: &str) -> bool {
        match &self.key {
            Key::Web(rest) => {
                let whole = |text: &str| text == rest || Some(text) == rest.strip_suffix('/');
                match (text.split_once("://"), &self.scheme) {
                    (Some((scheme, rest)), Some(own)) => scheme == own && whole(rest),
                    (None, _) => whole(text),
                    (Some(_), None) => false,
                }
            }
            Key::Mail(mail) => text == mail,
            Key::Phone(number) => text == number,
            Key::Account(number) => {
                let groups = text.split(' ').collect::<Vec<_>>();
                let in_fours = groups.split_last().is_none_or(|(last, rest)| {
                    !last.is_empty() && last.len() <= 4 && rest.iter().all(|group| group.len() == 4)
                });
                text == number || in_fours && groups.concat() == *number
            }
        }
    }

    /// Whether a call with this entity goes where the named one leads. Whoever writes no scheme leaves it to the program.
    fn is_named_by(&self, scheme: Option<&str>) -> bool {
        scheme.is_none() || self.scheme.is_none() || self.scheme.as_deref() == scheme
    }
}

/// A mail address: the domain as a host name, the name before it as it is but for the case of its letters, which no mail server tells apart.
fn mail(text: &str) -> Option<String> {
    let scheme = text.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("mailto:"));
    let bare = scheme.map_or(text, |(_, bare)| bare);
    if bare.contains(['/', '?', '#']) || bare.contains("://") {
        return None;
    }
    let (name, domain) = bare.rsplit_once('@')?;
    let domain = Url::parse(&format!("http://{domain}/")).ok()?;
    let plain = domain.port().is_none() && domain.username().is_empty();
    let name = name.to_ascii_lowercase();
    (plain && !name.is_empty()).then(|| format!("{name}@{}", domain.host_str().unwrap_or_default()))
}

/// A web address, with or without its scheme.
fn web(text: &str) -> Option<Entity> {
    let (scheme, url) = if text.contains("://") {
        let url = Url::parse(text).ok()?;
        (Some(url.scheme().to_owned()), url)
    } else {
        (None, Url::parse(&format!("https://{}", text.strip_prefix("//").unwrap_or(text))).ok()?)
    };
    url.host_str()?;
    // Everything after the scheme, user names and passwords included: `https://example.org@evil.example` is at home at the latter.
    let rest = url[Position::BeforeUsername..].to_owned();
    Some(Entity { key: Key::Web(rest), scheme })
}

/// Entities that somebody named, each with what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Entities<T>(HashMap<Key, Vec<(Option<String>, T)>>);

impl<T> Default for Entities<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Entities<T> {
    /// Adds an entity. What was known of it first stays.
    pub(crate) fn insert(&mut self, entity: Entity, known: T) {
        let schemes = self.0.entry(entity.key).or_default();
        if !schemes.iter().any(|(scheme, _)| *scheme == entity.scheme) {
            schemes.push((entity.scheme, known));
        }
    }

    /// What is known of this very entity.
    pub(crate) fn get(&self, entity: &Entity) -> Option<&T> {
        let schemes = self.0.get(&entity.key)?;
        schemes.iter().find(|(scheme, _)| entity.is_named_by(scheme.as_deref())).map(|(_, known)| known)
    }
}

/// Whether two texts name the same: equal as entities if both are, as words if neither is.
pub(crate) fn same(named: &str, value: &str) -> bool {
    match (Entity::parse(named), Entity::parse(value)) {
        (Some(named), Some(value)) => named.key == value.key && value.is_named_by(named.scheme.as_deref()),
        (None, None) => plain(named.trim()) == plain(value.trim()),
        _ => false,
    }
}

#[cfg(test)]
#[path = "entity_tests.rs"]
mod tests;
