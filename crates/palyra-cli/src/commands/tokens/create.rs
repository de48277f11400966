//! `palyra tokens create`.

use clap::Args;
use palyra_client::api::CreateTokenParams;
use palyra_common::{PrincipalRole, TokenScope};

use crate::numbers;

const DAY_SECONDS: u64 = 24 * 3600;
/// Ten years; the daemon takes no more either.
const MAX_DAYS: u32 = 3650;

/// What the token is for, and what it may do.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// What it is for
    #[arg(long)]
    name: String,
    /// Role: owner, operator or viewer
    #[arg(long, default_value = "operator")]
    role: PrincipalRole,
    /// Limit it to this scope, such as runs:read; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<TokenScope>,
    /// Principal it acts for [default: you]
    #[arg(long = "for", value_name = "NAME")]
    subject: Option<String>,
    /// Expire after this many days
    #[arg(long, value_name = "DAYS", value_parser = numbers::between::<u32>(1, MAX_DAYS))]
    days: Option<u32>,
    /// Commands per minute it may send
    #[arg(long, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    rate: Option<u32>,
}

impl CreateArguments {
    pub(super) fn params(self) -> CreateTokenParams {
        CreateTokenParams {
            name: self.name,
            role: self.role,
            scopes: (!self.scopes.is_empty()).then_some(self.scopes),
            subject: self.subject,
            expires_in_seconds: self.days.map(|days| u64::from(days) * DAY_SECONDS),
            rate_per_minute: self.rate,
        }
    }
}
