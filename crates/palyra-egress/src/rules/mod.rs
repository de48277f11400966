//! What a grant allows, and the pure decision about one request.
//!
//! `rule` is one line of a grant, `grant` the whole of it with its limits and credentials, `check` the decision, `path` the comparison of paths.
//! Nothing here does I/O, so every decision of the proxy and of the client can be tabled and tested.

mod check;
mod grant;
mod path;
mod rule;

pub(crate) use check::check_classified;
pub use check::{Inside, Request, Verdict, check, check_addresses, check_connect};
pub use grant::{
    CredentialBinding, CredentialPlace, CredentialTransport, EgressGrant, EgressLimits, GrantLine, Intercept,
    PrivateHost,
};
pub use rule::{HostPattern, Methods, Rule};
