//! Documents, patches, values and pages, with everything a hostile author could think of.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

mod documents;
mod hostile;
mod oracle;
mod patches;
mod properties;
mod values;
