//! What an import of a component means.
//!
//! A component names each interface it imports as `package:name/interface@version`. Whatever is not listed here is foreign, and foreign imports are refused
//! both by the audit and by the runtime.

/// One interface of `palyra:host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostInterface {
    /// Counters and handles of grants.
    Capabilities,
    /// The type of failures.
    Failures,
    /// Requests.
    Http,
    /// Values of secrets.
    SecretReveal,
    /// Keys and values.
    Storage,
    /// Messages to people.
    Channel,
    /// Lines for the log.
    Log,
    /// How far a call has got.
    Progress,
    /// The time.
    Clock,
    /// Random bytes.
    Random,
    /// What the operator set.
    Config,
}

impl HostInterface {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Capabilities,
        Self::Failures,
        Self::Http,
        Self::SecretReveal,
        Self::Storage,
        Self::Channel,
        Self::Log,
        Self::Progress,
        Self::Clock,
        Self::Random,
        Self::Config,
    ];

    /// Its name in the package.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capabilities => "capabilities",
            Self::Failures => "failures",
            Self::Http => "http",
            Self::SecretReveal => "secret-reveal",
            Self::Storage => "storage",
            Self::Channel => "channel",
            Self::Log => "log",
            Self::Progress => "progress",
            Self::Clock => "clock",
            Self::Random => "random",
            Self::Config => "config",
        }
    }
}

/// What a component that uses `wasi:http/outgoing-handler` needs around it. Requests made through it are under the same grants as those made through
/// [`HostInterface::Http`].
pub const WASI_HTTP_IMPORTS: &[&str] = &[
    "wasi:http/types",
    "wasi:http/outgoing-handler",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/monotonic-clock",
];

/// An import that Palyra does not offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignImport(
    /// The import as the component names it.
    pub String,
);

/// Says which interface an import is: one of ours, or `None` for one that belongs to outgoing HTTP.
pub fn classify_import(import: &str) -> Result<Option<HostInterface>, ForeignImport> {
    let (path, version) = import.split_once('@').unwrap_or((import, ""));
    let foreign = || ForeignImport(import.to_owned());
    if let Some(interface) = path.strip_prefix("palyra:host/") {
        if version != crate::ABI_VERSION {
            return Err(foreign());
        }
        return HostInterface::ALL
            .iter()
            .copied()
            .find(|candidate| candidate.name() == interface)
            .map(Some)
            .ok_or_else(foreign);
    }
    if WASI_HTTP_IMPORTS.contains(&path) && version.starts_with("0.2.") {
        return Ok(None);
    }
    Err(foreign())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_interfaces_of_the_right_version_are_ours() {
        assert_eq!(classify_import("palyra:host/http@1.0.0"), Ok(Some(HostInterface::Http)));
        assert_eq!(classify_import("wasi:http/outgoing-handler@0.2.6"), Ok(None));
        for foreign in [
            "palyra:host/http@2.0.0",
            "palyra:host/http",
            "palyra:host/everything@1.0.0",
            "wasi:filesystem/types@0.2.6",
            "wasi:http/outgoing-handler@0.3.0",
            "wasi:sockets/tcp@0.2.0",
            "env",
        ] {
            assert_eq!(classify_import(foreign), Err(ForeignImport(foreign.to_owned())), "{foreign}");
        }
    }

    #[test]
    fn every_interface_is_in_the_package_and_the_other_way_round() {
        let listed: Vec<&str> =
            crate::HOST_WIT.lines().filter_map(|line| line.strip_prefix("interface ")?.strip_suffix(" {")).collect();
        let known: Vec<&str> = HostInterface::ALL.iter().map(|interface| interface.name()).collect();
        let mut missing: Vec<&&str> = listed.iter().filter(|name| !known.contains(name)).collect();
        missing.extend(known.iter().filter(|name| !listed.contains(name)));
        assert!(missing.is_empty(), "{missing:?}");
        assert!(!listed.is_empty());
    }
}
