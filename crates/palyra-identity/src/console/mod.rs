//! The console in a browser: sessions behind a cookie, the cookie itself, and where requests may come from.

mod cookie;
mod origin;
mod sessions;

pub use cookie::{Transport, clear_cookie, cookie_name, read_cookie, set_cookie};
pub use origin::check_origin;
pub use sessions::{ConsoleOptions, ConsoleSessionId, ConsoleSessions, OpenedSession};
