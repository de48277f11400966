//! The macro that makes the catalogue: from one line per command, the typed enums, their parsers and a table about them.

/// Parameters of a command, with the thing it is about if there is one.
macro_rules! params_type {
    ([] $params:ty) => { $params };
    ([$target:ty] $params:ty) => { $crate::command::About<$target, $params> };
}

macro_rules! parse_value {
    ([] $params:ty, $value:expr) => {
        $crate::command::parse::value::<$params>($value)
    };
    ([$target:ty] $params:ty, $value:expr) => {
        $crate::command::parse::about_value::<$target, $params>($value)
    };
}

macro_rules! parse_query {
    ([] $params:ty, $id:expr, $query:expr) => {
        $crate::command::parse::query::<$params>($query)
    };
    ([$target:ty] $params:ty, $id:expr, $query:expr) => {
        $crate::command::parse::target::<$target>($id).and_then(|target| {
            Ok($crate::command::About { target, params: $crate::command::parse::query::<$params>($query)? })
        })
    };
}

macro_rules! parse_body {
    ([] $params:ty, $id:expr, $body:expr) => {
        $crate::command::parse::body::<$params>($body)
    };
    ([$target:ty] $params:ty, $id:expr, $body:expr) => {
        $crate::command::parse::target::<$target>($id).and_then(|target| {
            Ok($crate::command::About { target, params: $crate::command::parse::body::<$params>($body)? })
        })
    };
}

macro_rules! target_field {
    ([]) => {
        None
    };
    ([$target:ty]) => {
        Some(<$target as $crate::command::TargetId>::FIELD)
    };
}

macro_rules! target_of {
    ([] $params:expr) => {{
        let _ = $params;
        None
    }};
    ([$target:ty] $params:expr) => {
        Some((<$target as $crate::command::TargetId>::KIND, $params.target.to_string()))
    };
}

/// One enum of commands with one of their results.
///
/// A line reads: variant, what it is about in brackets (possibly nothing), parameters, result, effect, scope, HTTP method and address.
macro_rules! catalogue {
    (
        $(#[$command_doc:meta])* commands $commands:ident;
        $(#[$outcome_doc:meta])* outcomes $outcomes:ident;
        table $table:ident;
        $($variant:ident [$($target:ty)?] $params:ty => $result:ty, $effect:ident, $scope:ident, $method:ident $path:expr;)+
    ) => {
        $(#[$command_doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $commands {
            $(#[doc = concat!("See [`AcpCommand::", stringify!($variant), "`].")] $variant(params_type!([$($target)?] $params)),)+
        }

        $(#[$outcome_doc])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum $outcomes {
            $(#[doc = concat!("See [`AcpCommand::", stringify!($variant), "`].")] $variant(Box<$result>),)+
        }

        impl $commands {
            /// Which one it is.
            #[must_use]
            pub fn name(&self) -> AcpCommand {
                match self { $(Self::$variant(_) => AcpCommand::$variant,)+ }
            }

            /// Reads parameters that came as one JSON record; `None` if the name is not in this part of the catalogue.
            pub fn from_value(name: AcpCommand, value: Value) -> Option<Result<Self, StableErrorEnvelope>> {
                match name {
                    $(AcpCommand::$variant => Some(parse_value!([$($target)?] $params, value).map(Self::$variant)),)+
                    _ => None,
                }
            }

            /// Reads parameters that came as the id of an address and a query string.
            pub fn from_query(name: AcpCommand, id: Option<&str>, query: &str) -> Option<Result<Self, StableErrorEnvelope>> {
                let _ = id;
                match name {
                    $(AcpCommand::$variant => Some(parse_query!([$($target)?] $params, id, query).map(Self::$variant)),)+
                    _ => None,
                }
            }

            /// Reads parameters that came as the id of an address and a JSON body.
            pub fn from_body(name: AcpCommand, id: Option<&str>, body: &[u8]) -> Option<Result<Self, StableErrorEnvelope>> {
                let _ = id;
                match name {
                    $(AcpCommand::$variant => Some(parse_body!([$($target)?] $params, id, body).map(Self::$variant)),)+
                    _ => None,
                }
            }

            /// The thing that it is about: what it is, and its id.
            #[must_use]
            pub fn target(&self) -> Option<($crate::command::TargetKind, String)> {
                match self { $(Self::$variant(params) => target_of!([$($target)?] params),)+ }
            }

            /// The parameters as one JSON record.
            pub fn to_value(&self) -> serde_json::Result<Value> {
                match self { $(Self::$variant(params) => serde_json::to_value(params),)+ }
            }
        }

        /// What is known about each command of this part of the catalogue.
        pub const $table: &[CommandSpec] = &[
            $(CommandSpec {
                name: AcpCommand::$variant,
                target: target_field!([$($target)?]),
                effect: CommandEffect::$effect,
                scope: TokenScope::$scope,
                method: HttpMethod::$method,
                path: $path,
                params: |generator| generator.subschema_for::<params_type!([$($target)?] $params)>(),
                rest: |generator| <$params as schemars::JsonSchema>::json_schema(generator),
                result: |generator| generator.subschema_for::<$result>(),
            },)+
        ];
    };
}

pub(super) use {catalogue, params_type, parse_body, parse_query, parse_value, target_field, target_of};
