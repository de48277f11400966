//! Identifiers: one ULID newtype per kind of thing, so that a run id cannot be passed where a session id is meant.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;
use ulid::Ulid;

use crate::{ErrorCategory, StableErrorEnvelope, ToStableError};

/// A text that is not a ULID.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{}` is not a {kind} id; expected 26 characters such as 01JC0Q6F7Z8G9H0J1K2M3N4P5Q", shown(value))]
pub struct InvalidId {
    /// Which kind of id was expected, such as `run`.
    pub kind: &'static str,
    /// What was given.
    pub value: String,
}

/// So much of a wrong id as one line can show: it may be anything that somebody sent.
fn shown(value: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = value.chars().take(MOST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if value.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

impl ToStableError for InvalidId {
    fn to_stable(&self) -> StableErrorEnvelope {
        StableErrorEnvelope::new("id_invalid", ErrorCategory::Validation, self.to_string())
            .hint(format!("copy the {} id from the list that shows it", self.kind))
    }
}

/// Reads an id out of any format. Written by hand so that a wrong one is refused in our words, whichever decoder met it.
struct Reading<T> {
    kind: &'static str,
    id: PhantomData<T>,
}

impl<T: FromStr<Err = InvalidId>> Visitor<'_> for Reading<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} id of 26 characters such as 01JC0Q6F7Z8G9H0J1K2M3N4P5Q", self.kind)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! ulid_newtypes {
    ($( $(#[$meta:meta])* $name:ident($kind:literal); )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Ulid);

        impl $name {
            /// A fresh id. Ids are an *input* of the run machine; only drivers and surfaces call this.
            #[must_use]
            pub fn generate() -> Self {
                Self(Ulid::generate())
            }

            /// The id with exactly these 128 bits, for tests and for reading stored bytes.
            #[must_use]
            pub const fn from_u128(bits: u128) -> Self {
                Self(Ulid(bits))
            }

            /// The id as 128 bits, as stored.
            #[must_use]
            pub const fn to_u128(self) -> u128 {
                self.0.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0.to_string())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Ulid::from_string(text)
                    .map(Self)
                    .map_err(|_| InvalidId { kind: $kind, value: text.to_owned() })
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Reading { kind: $kind, id: PhantomData::<Self> })
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(stringify!($name))
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": "^[0-9A-HJKMNP-TV-Z]{26}$" })
            }
        }
    )+};
}

ulid_newtypes! {
    /// One agent task from its first message to its terminal phase.
    RunId("run");
    /// A conversation: a sequence of runs that share history.
    SessionId("session");
    /// A question put to a person.
    ApprovalId("approval");
    /// A place outside that is tied to a session.
    BindingId("binding");
    /// A device that was paired with this installation.
    DeviceId("device");
    /// A canvas that agents draw user interface on.
    CanvasId("canvas");
    /// A goal that outlives single runs.
    ObjectiveId("objective");
    /// One request on a control connection.
    RequestId("request");
    /// One auxiliary model task.
    AuxiliaryTaskId("auxiliary task");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_text_and_json() {
        let id = RunId::generate();
        assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<RunId>(&json).unwrap(), id);
        assert_eq!(RunId::from_u128(id.to_u128()), id);
    }

    #[test]
    fn a_wrong_id_stays_one_short_line() {
        let error = format!("a\nb{}", "x".repeat(100_000)).parse::<RunId>().unwrap_err().to_string();
        assert!(error.starts_with("`a\u{fffd}bxxx") && error.len() < 200, "{error}");
    }

    #[test]
    fn a_wrong_id_names_its_kind() {
        let error = "nope".parse::<SessionId>().unwrap_err();
        assert!(error.to_string().starts_with("`nope` is not a session id"));
        let told = |json: &str| serde_json::from_str::<RequestId>(json).unwrap_err().to_string();
        assert!(
            told("\"1\"").starts_with("`1` is not a request id; expected 26 characters such as"),
            "{}",
            told("\"1\"")
        );
        assert!(told("7").contains("expected a request id of 26 characters"), "{}", told("7"));
    }
}
