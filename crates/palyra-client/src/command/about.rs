//! Parameters of a command, with or without the one thing that it is about.
//!
//! On the wire both are one flat record, `{"run_id": "…", "reason": "…"}`. In Rust they are apart, because the address of an HTTP route
//! carries the id and its body the rest, and because a record of parameters refuses fields that it does not know.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use palyra_common::{ApprovalId, AuxiliaryTaskId, BindingId, CanvasId, DeviceId, RunId, SessionId};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// An id that a command can be about.
pub trait TargetId: FromStr<Err: Display> + Display + Clone + JsonSchema {
    /// What it is an id of.
    const KIND: TargetKind;
    /// Its field on the wire and its name in the templates of addresses.
    const FIELD: &'static str = Self::KIND.field();
}

macro_rules! targets {
    ($($type:ty => $kind:ident $field:literal),+ $(,)?) => {
        /// What a command can be about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum TargetKind {
            $(#[doc = concat!("Named by `", $field, "`.")] $kind,)+
        }

        impl TargetKind {
            /// The field on the wire that names it.
            #[must_use]
            pub const fn field(self) -> &'static str {
                match self { $(Self::$kind => $field,)+ }
            }
        }

        $(impl TargetId for $type {
            const KIND: TargetKind = TargetKind::$kind;
        })+
    };
}

targets! {
    SessionId => Session "session_id",
    RunId => Run "run_id",
    ApprovalId => Approval "approval_id",
    AuxiliaryTaskId => AuxiliaryTask "task_id",
    BindingId => Binding "binding_id",
    CanvasId => Canvas "canvas_id",
    DeviceId => Device "device_id",
    SkillName => Skill "skill_id",
    PublisherName => Publisher "publisher",
    HookName => Hook "hook_id",
    AgentName => Agent "agent_id",
    TokenName => Token "token_id",
    RecordSeq => Record "seq",
}

/// Id of an API token, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TokenName(pub String);

impl FromStr for TokenName {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if plain { Ok(Self(text.to_owned())) } else { Err("it must be 1 to 64 letters and digits") }
    }
}

impl Display for TokenName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! plain_names {
    ($($(#[$doc:meta])+ $name:ident),+ $(,)?) => {$(
        $(#[$doc])+
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl FromStr for $name {
            type Err = &'static str;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
                let fits = !text.is_empty() && text.len() <= 64 && text.bytes().all(plain);
                if fits { Ok(Self(text.to_owned())) } else { Err("it must be 1 to 64 lower-case letters, digits, `.`, `_` and `-`") }
            }
        }

        impl Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

plain_names! {
    /// A skill, such as `kv-notes`.
    SkillName,
    /// Who signs skills.
    PublisherName,
    /// A binding of an event to a plugin.
    HookName,
    /// An agent, such as `reviewer`.
    AgentName,
}

/// Position of a record in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RecordSeq(pub u64);

impl FromStr for RecordSeq {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl Display for RecordSeq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A command without parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// What a command is about, and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About<T, P = NoParams> {
    /// The one thing.
    pub target: T,
    /// Everything else.
    pub params: P,
}

impl<T, P: Default> About<T, P> {
    /// With no parameters.
    #[must_use]
    pub fn only(target: T) -> Self {
        Self { target, params: P::default() }
    }
}

impl<T: TargetId, P: Serialize> Serialize for About<T, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Map::new();
        fields.insert(T::FIELD.to_owned(), Value::String(self.target.to_string()));
        match serde_json::to_value(&self.params).map_err(serde::ser::Error::custom)? {
            Value::Object(params) => fields.extend(params),
            _ => return Err(serde::ser::Error::custom("parameters must be a JSON object")),
        }
        fields.serialize(serializer)
    }
}

impl<'de, T: TargetId, P: DeserializeOwned> Deserialize<'de> for About<T, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let target = match fields.remove(T::FIELD) {
            Some(Value::String(text)) => text,
            // Positions are numbers in JSON and texts in an address.
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(D::Error::custom(format!("field `{}` is not an id", T::FIELD))),
            None => return Err(D::Error::missing_field(T::FIELD)),
        };
        let target =
            target.parse().map_err(|error: T::Err| D::Error::custom(format!("field `{}`: {error}", T::FIELD)))?;
        let params = P::deserialize(Value::Object(fields)).map_err(D::Error::custom)?;
        Ok(Self { target, params })
    }
}

impl<T: TargetId, P: JsonSchema> JsonSchema for About<T, P> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Of{}", P::schema_name(), T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let target = generator.subschema_for::<T>();
        let mut schema = P::json_schema(generator);
        let object = schema.ensure_object();
        let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            properties.insert(T::FIELD.to_owned(), target.into());
        }
        let required = object.entry("required").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(required) = required {
            required.push(Value::String(T::FIELD.to_owned()));
        }
        schema
    }
}
