//! Who is calling.
//!
//! A caller shows a credential and becomes a [`Principal`]: peer credentials of the Unix socket, the local token, an API token
//! ([`TokenBook`]), a console cookie ([`ConsoleSessions`]) or a device certificate ([`Authority`]). Nothing a caller merely says about
//! itself makes a principal. [`RateLimiter`] and [`Throttle`] bound how often somebody may try.
//!
//! INVARIANT: no error or missing fact ever identifies anybody; whatever cannot be checked is refused. Secrets are stored as digests
//! and compared in constant time.
//!
//! Leaves to others: sockets and headers (the daemon), whether a principal may do something (policy), storing events (the journal).

mod certificate;
mod console;
mod error;
mod principal;
mod private_files;
mod random;
mod rate;
mod refusal;
mod throttle;
mod token;

pub use certificate::{
    Authority, AuthorityOptions, ClientAuth, ClientCredentials, ClientRequest, DeviceIdentity, IssuedCertificate,
    MAX_CLIENT_LIFE, Revocation, Serial, TlsVersions, server_only_client_config,
};
pub use console::{
    ConsoleOptions, ConsoleSessionId, ConsoleSessions, OpenedSession, Transport, check_origin, clear_cookie,
    cookie_name, read_cookie, set_cookie,
};
pub use error::IdentityError;
pub use principal::{Principal, PrincipalId, Via};
pub use rate::{RateLimiter, RateOptions};
pub use refusal::Refusal;
pub use throttle::{Source, Throttle, ThrottleOptions};
pub use token::{
    Bounds, IssuedToken, NewToken, Origin, Parent, ParentDevice, ParentToken, PreviousSecret, TokenBook, TokenEvent,
    TokenId, TokenRecord,
};
