//! What ships inside the program: the schema, the default policies and the cases that hold them in place.

/// A file that ships inside the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedFile {
    /// File name.
    pub name: &'static str,
    /// Contents.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        &[$(ShippedFile { name: $name, text: include_str!(concat!("../../../policies/", $name)) }),+]
    };
}

/// The published schema.
pub const SCHEMA: &str = include_str!("schema.cedarschema");

/// The default policies.
pub const SHIPPED_POLICIES: &[ShippedFile] = shipped![
    "asking.cedar",
    "commands.cedar",
    "execution.cedar",
    "grants.cedar",
    "people.cedar",
    "servers.cedar",
    "sinks.cedar",
    "skills.cedar",
    "workspace.cedar"
];

/// The cases of the default policies.
pub const SHIPPED_TESTS: &[ShippedFile] = shipped![
    "asking.policy-test.toml",
    "commands.policy-test.toml",
    "execution.policy-test.toml",
    "grants.policy-test.toml",
    "people.policy-test.toml",
    "servers.policy-test.toml",
    "signals.policy-test.toml",
    "sinks.policy-test.toml",
    "skills.policy-test.toml",
    "workspace.policy-test.toml",
];
