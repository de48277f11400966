//! What this build is: version, source, target and compiler, fixed at compile time.

use schemars::JsonSchema;
use serde::Serialize;

/// Facts about this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BuildInfo {
    /// The product's version.
    pub version: &'static str,
    /// The commit it was built from, where whoever built it has named one.
    pub commit: Option<&'static str>,
    /// The platform it was built for.
    pub target: &'static str,
    /// The compiler.
    pub rustc: &'static str,
    /// `debug` or `release`.
    pub profile: &'static str,
}

impl BuildInfo {
    /// The facts about the running program.
    #[must_use]
    pub const fn current() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("PALYRA_BUILD_COMMIT_FOUND"),
            target: env!("PALYRA_BUILD_TARGET"),
            rustc: env!("PALYRA_BUILD_RUSTC"),
            profile: env!("PALYRA_BUILD_PROFILE"),
        }
    }

    /// One line: `0.1.0 (3f2a91c04be7, x86_64-unknown-linux-gnu, release)`.
    #[must_use]
    pub fn line(&self) -> String {
        let commit = self.commit.map(|commit| format!("{commit}, ")).unwrap_or_default();
        format!("{} ({commit}{}, {})", self.version, self.target, self.profile)
    }
}
