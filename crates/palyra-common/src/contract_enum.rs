//! The macro behind every enum that crosses a boundary.
//!
//! A contract enum names each value once, beside its variant, and gets every spelling from that one place: the JSON and
//! SQL name, the protobuf name and number, the JSON Schema and the accepted aliases. Reading is lenient (any case,
//! `snake_case`, `kebab-case`, `camelCase`, aliases); writing emits the canonical name only.

use thiserror::Error;

use crate::{ErrorCategory, StableErrorEnvelope, ToStableError};

/// A text that is no value of a contract enum.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{value}` is not one of {expected}")]
pub struct UnknownContractValue {
    /// The contract's stable name, such as `run_lifecycle_phase`.
    pub contract: &'static str,
    /// What was given.
    pub value: String,
    /// The canonical values, comma separated.
    pub expected: String,
}

impl ToStableError for UnknownContractValue {
    fn to_stable(&self) -> StableErrorEnvelope {
        StableErrorEnvelope::new("value_unknown", ErrorCategory::Validation, self.to_string())
            .hint(format!("use one of {}", self.expected))
    }
}

/// What every contract enum offers, for code that treats them alike (schemas, reference pages, tests).
pub trait ContractEnum: Copy + Eq + Sized + 'static {
    /// Stable snake_case name of the contract itself.
    const CONTRACT: &'static str;
    /// All values in their documented order.
    const ALL: &'static [Self];
    /// Canonical wire and SQL name.
    fn as_str(self) -> &'static str;
    /// Spellings read besides the canonical one.
    fn aliases(self) -> &'static [&'static str];

    /// Reads a value in any accepted spelling.
    fn parse(text: &str) -> Result<Self, UnknownContractValue> {
        let wanted = fold(text);
        Self::ALL
            .iter()
            .copied()
            .find(|value| fold(value.as_str()) == wanted || value.aliases().iter().any(|alias| fold(alias) == wanted))
            .ok_or_else(|| UnknownContractValue {
                contract: Self::CONTRACT,
                value: text.to_owned(),
                expected: Self::ALL.iter().map(|value| value.as_str()).collect::<Vec<_>>().join(", "),
            })
    }

    /// The protobuf value name, `CONTRACT_VALUE` in capitals.
    fn proto_name(self) -> String {
        let screaming = |text: &str| {
            text.chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                .collect::<String>()
        };
        format!("{}_{}", screaming(Self::CONTRACT), screaming(self.as_str()))
    }

    /// The protobuf number: the position in [`ContractEnum::ALL`] plus one, since zero means "unspecified".
    fn proto_number(self) -> i32 {
        let position = Self::ALL.iter().position(|value| *value == self).unwrap_or_default();
        i32::try_from(position).unwrap_or(i32::MAX - 1) + 1
    }

    /// The list inside a SQL `CHECK (column IN (…))`.
    fn sql_values() -> String {
        Self::ALL.iter().map(|value| format!("'{}'", value.as_str())).collect::<Vec<_>>().join(", ")
    }
}

/// Drops what the accepted spellings differ in: case and the separators `_`, `-`, `.`, `:` and space.
fn fold(text: &str) -> String {
    text.trim().chars().filter(|c| !matches!(c, '_' | '-' | '.' | ':' | ' ')).map(|c| c.to_ascii_lowercase()).collect()
}

/// Declares a contract enum: `Variant = "canonical" | "alias" | …`.
#[macro_export]
macro_rules! runtime_contract_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident($contract:literal) {
            $( $(#[$variant_meta:meta])* $variant:ident = $canonical:literal $(| $alias:literal)* ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
        }

        impl $name {
            /// All values in their documented order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Canonical wire and SQL name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $canonical,)+ }
            }
        }

        impl $crate::ContractEnum for $name {
            const CONTRACT: &'static str = $contract;
            const ALL: &'static [Self] = Self::ALL;
            fn as_str(self) -> &'static str {
                Self::as_str(self)
            }
            fn aliases(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($alias),*],)+ }
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::core::str::FromStr for $name {
            type Err = $crate::UnknownContractValue;
            fn from_str(text: &str) -> ::core::result::Result<Self, Self::Err> {
                <Self as $crate::ContractEnum>::parse(text)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<Self, D::Error> {
                let text = <::std::borrow::Cow<'de, str> as ::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(<D::Error as ::serde::de::Error>::custom)
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(stringify!($name))
            }
            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({ "type": "string", "enum": [$($canonical),+] })
            }
        }
    };
}
