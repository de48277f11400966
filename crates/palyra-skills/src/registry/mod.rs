//! Registries: places that skills are got from.
//!
//! A registry vouches for what is current and complete, never for what is good: an archive from a registry still needs its publisher's signature and passes the same
//! audit and the same trust as one from a file. See `docs/skill-registries.md` for the format and `docs/adr/0013` for why it is ours.

mod book;
mod client;
mod fetch;
mod metadata;
mod writer;

pub use book::{FollowedRegistry, RegistryBook};
pub use client::{RegistryState, RootPin, download};
pub use fetch::{DirectoryRegistry, Fetched, RegistryFetch, RegistryLocation};
pub use metadata::{RegistryArtifact, RegistryIndex, RegistryRole, RegistryRoles};
pub use writer::{RegistryLifetimes, RegistryWriter};
