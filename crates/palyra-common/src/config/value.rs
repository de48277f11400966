//! Values of configuration keys before they get their Rust types, and the rules they are checked by.

use std::fmt;
use std::net::SocketAddr;
use std::num::IntErrorKind;

use serde::Serialize;

use crate::{ContractEnum, SecretRef};

/// A value as a layer gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ConfigValue {
    /// No value.
    Unset,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

impl fmt::Display for ConfigValue {
    /// As it would be written in `palyra.toml`; an unset value is shown as `(unset)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_toml() {
            Some(value) => f.pad(value.to_string().trim()),
            None => f.pad("(unset)"),
        }
    }
}

impl ConfigValue {
    /// The value as TOML, unless it is unset.
    pub(super) fn to_toml(&self) -> Option<toml_edit::Value> {
        match self {
            Self::Unset => None,
            Self::Bool(value) => Some((*value).into()),
            Self::Integer(value) => Some((*value).into()),
            Self::Text(value) => Some(value.as_str().into()),
            Self::List(values) => Some(values.iter().map(String::as_str).collect()),
        }
    }

    /// Reads a TOML value, or says what it is instead.
    pub(super) fn from_toml(item: &toml_edit::Item) -> Result<Self, String> {
        let Some(value) = item.as_value() else { return Err(item.type_name().to_owned()) };
        match value {
            toml_edit::Value::Boolean(value) => Ok(Self::Bool(*value.value())),
            toml_edit::Value::Integer(value) => Ok(Self::Integer(*value.value())),
            toml_edit::Value::String(value) => Ok(Self::Text(value.value().clone())),
            toml_edit::Value::Array(values) => values
                .iter()
                .map(|value| value.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
                .map(Self::List)
                .ok_or_else(|| "list of values other than strings".to_owned()),
            other => Err(other.type_name().to_owned()),
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Unset => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Text(value) => value.as_str().into(),
            Self::List(values) => values.clone().into(),
        }
    }

    /// Reads back what [`Config`](super::Config) serialises to; anything it never does is unset.
    pub(super) fn from_json(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(value) => value.as_i64().map_or(Self::Unset, Self::Integer),
            serde_json::Value::String(value) => Self::Text(value.clone()),
            serde_json::Value::Array(values) => {
                Self::List(values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect())
            }
            serde_json::Value::Null | serde_json::Value::Object(_) => Self::Unset,
        }
    }

    const fn type_name(&self) -> &'static str {
        match self {
            Self::Unset => "nothing",
            Self::Bool(_) => "boolean",
            Self::Integer(_) => "integer",
            Self::Text(_) => "string",
            Self::List(_) => "list",
        }
    }
}

/// What values a key takes.
#[derive(Debug, Clone, Copy)]
pub enum ValueType {
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds.
    Integer {
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// Any text but the empty one.
    Text,
    /// A list of texts that are not empty.
    List,
    /// One value of a contract enum.
    Choice {
        /// The canonical values.
        names: fn() -> Vec<&'static str>,
        /// The canonical form of a spelling.
        canonical: fn(&str) -> Option<&'static str>,
    },
    /// A list of values of a contract enum.
    Choices {
        /// The canonical values.
        names: fn() -> Vec<&'static str>,
        /// The canonical form of a spelling.
        canonical: fn(&str) -> Option<&'static str>,
    },
    /// An IP address and a port.
    Address,
    /// The base of an HTTP interface.
    HttpUrl,
    /// A path; a relative one in the file starts from the file's directory.
    Path,
    /// A reference to a secret.
    Secret,
    /// An amount of money.
    Amount,
}

/// Why a value does not fit its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// It is of another type, which is named.
    Type(String),
    /// It is of the right type and still wrong.
    Value(String),
}

impl ValueType {
    /// The choices of a contract enum.
    pub(super) const fn choice<T: ContractEnum>() -> Self {
        Self::Choice {
            names: || T::ALL.iter().map(|value| value.as_str()).collect(),
            canonical: |text| T::parse(text).ok().map(T::as_str),
        }
    }

    /// A list of choices of a contract enum.
    pub(super) const fn choices<T: ContractEnum>() -> Self {
        Self::Choices {
            names: || T::ALL.iter().map(|value| value.as_str()).collect(),
            canonical: |text| T::parse(text).ok().map(T::as_str),
        }
    }

    /// A whole number within bounds.
    pub(super) const fn integer(min: i64, max: i64) -> Self {
        Self::Integer { min, max }
    }

    /// What is expected, for messages and reference pages.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Bool => "boolean (true or false)".to_owned(),
            Self::Integer { min, max: i64::MAX } => format!("integer of at least {min}"),
            Self::Integer { min, max } => format!("integer from {min} to {max}"),
            Self::Text => "string".to_owned(),
            Self::List => "list of strings".to_owned(),
            Self::Choice { names, .. } => format!("string, one of {}", names().join(", ")),
            Self::Choices { names, .. } => format!("list of strings, each one of {}", names().join(", ")),
            Self::Address => "string, an IP address and a port such as 127.0.0.1:7142".to_owned(),
            Self::HttpUrl => "string, a URL such as https://host/v1".to_owned(),
            Self::Path => "string, a path".to_owned(),
            Self::Secret => {
                "string, a reference `vault:scope/key`, `env:NAME`, `file:path` or `exec:command`".to_owned()
            }
            Self::Amount => "string, an amount in US dollars such as $5 or 0.50 USD".to_owned(),
        }
    }

    /// The value in its canonical form, if it fits.
    pub(super) fn check(&self, value: ConfigValue) -> Result<ConfigValue, Mismatch> {
        let wrong = |reason: String| Err(Mismatch::Value(reason));
        match (self, value) {
            (Self::Bool, ConfigValue::Bool(value)) => Ok(ConfigValue::Bool(value)),
            (Self::Integer { min, max }, ConfigValue::Integer(value)) => {
                if (*min..=*max).contains(&value) {
                    Ok(ConfigValue::Integer(value))
                } else {
                    wrong(format!("`{value}` is not an {}", self.describe()))
                }
            }
            (Self::List, ConfigValue::List(values)) => {
                if values.iter().any(|value| value.trim().is_empty()) {
                    return wrong("a list may not contain an empty string".to_owned());
                }
                Ok(ConfigValue::List(values))
            }
            (Self::Text | Self::Path | Self::HttpUrl, ConfigValue::Text(text)) if text.trim().is_empty() => {
                wrong("the value is empty; remove the key to leave it unset".to_owned())
            }
            (Self::Text | Self::Path, ConfigValue::Text(text)) if text.contains('\0') => {
                wrong("a value may not contain a null character".to_owned())
            }
            (Self::Text | Self::Path, ConfigValue::Text(text)) => Ok(ConfigValue::Text(text)),
            (Self::Choice { names, canonical }, ConfigValue::Text(text)) => match canonical(&text) {
                Some(name) => Ok(ConfigValue::Text(name.to_owned())),
                None => wrong(format!("`{}` is not one of {}", shown(&text), names().join(", "))),
            },
            (Self::Choices { names, canonical }, ConfigValue::List(values)) => {
                let known = |text: &String| canonical(text).map(str::to_owned).ok_or_else(|| shown(text));
                match values.iter().map(known).collect::<Result<Vec<String>, String>>() {
                    Ok(values) => Ok(ConfigValue::List(values)),
                    Err(unknown) => wrong(format!("`{unknown}` is not one of {}", names().join(", "))),
                }
            }
            (Self::Address, ConfigValue::Text(text)) => match text.parse::<SocketAddr>() {
                Ok(address) => Ok(ConfigValue::Text(address.to_string())),
                Err(_) => wrong(format!("`{}` is not an IP address and a port", shown(&text))),
            },
            (Self::HttpUrl, ConfigValue::Text(text)) => check_http_url(text),
            // The text is not repeated: it may be the secret itself.
            (Self::Secret, ConfigValue::Text(text)) => match text.parse::<SecretRef>() {
                Ok(reference) => Ok(ConfigValue::Text(reference.to_string())),
                Err(error) => wrong(error.to_string()),
            },
            (Self::Amount, ConfigValue::Text(text)) => match crate::micro_dollars(&text) {
                Ok(_) => Ok(ConfigValue::Text(text)),
                Err(reason) => wrong(format!("`{}` is not an amount in US dollars: {reason}", shown(&text))),
            },
            (_, other) => Err(Mismatch::Type(other.type_name().to_owned())),
        }
    }

    /// Reads and checks a value given as bare text, in the environment or on the command line.
    ///
    /// A list is comma separated or a TOML array.
    pub(crate) fn check_text(&self, text: &str) -> Result<ConfigValue, Mismatch> {
        let not_a = |what: &str| Err(Mismatch::Type(format!("`{}`, which is not a {what}", shown(text))));
        let value = match self {
            Self::Bool => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" => ConfigValue::Bool(true),
                "false" | "0" => ConfigValue::Bool(false),
                _ => return not_a("boolean"),
            },
            Self::Integer { .. } => match text.trim().replace('_', "").parse() {
                Ok(value) => ConfigValue::Integer(value),
                Err(error) if matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => {
                    return Err(Mismatch::Type(format!("`{}`, which is too large a number", shown(text))));
                }
                Err(_) => return not_a("whole number"),
            },
            Self::List | Self::Choices { .. } if text.trim_start().starts_with('[') => {
                let Ok(value) = text.trim().parse::<toml_edit::Value>() else { return not_a("list") };
                ConfigValue::from_toml(&toml_edit::Item::Value(value)).map_err(Mismatch::Type)?
            }
            Self::List | Self::Choices { .. } => ConfigValue::List(
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            ),
            Self::Text
            | Self::Choice { .. }
            | Self::Address
            | Self::HttpUrl
            | Self::Path
            | Self::Secret
            | Self::Amount => ConfigValue::Text(text.to_owned()),
        };
        self.check(value)
    }
}

fn check_http_url(text: String) -> Result<ConfigValue, Mismatch> {
    let wrong = |reason: &str| Err(Mismatch::Value(reason.to_owned()));
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return wrong("a URL must start with `https://` or `http://`");
    };
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return wrong("a URL may not contain spaces or control characters");
    }
    if text.contains(['?', '#']) {
        return wrong("a base URL may not have a query or a fragment");
    }
    let authority = rest.split(['/', '\\']).next().unwrap_or_default();
    // Kept out of the message: what stands before `@` is most likely a password.
    if authority.contains('@') {
        return wrong("a URL may not contain a user name or a password; use a secret reference");
    }
    if authority.is_empty() || authority.starts_with(':') {
        return wrong("a URL must name a host");
    }
    Ok(ConfigValue::Text(text))
}

/// User input made fit for a one-line message: no control characters, no more than 80 characters.
pub(super) fn shown(text: &str) -> String {
    let mut line: String =
        text.chars().take(80).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    if text.chars().nth(80).is_some() {
        line.push('…');
    }
    line
}
