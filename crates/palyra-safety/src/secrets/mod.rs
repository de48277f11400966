//! Secret detection: token shapes, structures, context, and exact vault values.
//!
//! [`table`] lists the detectors; each sees a [`site::Site`], never the whole text. [`vault`] knows how a value may be spelled. The
//! one pass over the text that finds anchors and spellings is in `matcher`; [`crate::Scanner`] drives it over all views.

mod assigned;
mod checksum;
mod cloud;
mod connection;
mod entropy;
mod matcher;
mod pem;
mod shapes;
mod site;
mod structured;
mod table;
mod vault;

pub use checksum::checksum;
pub(crate) use matcher::{Found, Matcher};
pub use vault::VaultEntry;
