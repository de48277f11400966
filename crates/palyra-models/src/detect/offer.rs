//! What was found, and what accepting it would mean.

use serde::Serialize;

use crate::accounts::{Account, ModelName};

/// A provider that could be used. Nothing is sent to it before somebody accepts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// A name for the account.
    pub name: String,
    /// The account as it would be written into `models.toml`.
    pub account: Account,
    /// The models it has, as far as that is known without telling anybody anything.
    pub models: Vec<String>,
    /// A model to begin with; none if it has none yet.
    pub model: Option<ModelName>,
    /// Why it is offered, in one line.
    pub why: String,
    /// What would be sent where, in one line.
    pub sends: String,
}

impl Offer {
    pub(super) fn new(name: &str, account: Account, models: Vec<String>, why: String) -> Self {
        let first = models.first().map(String::as_str).or_else(|| account.kind.first_model());
        let model = first.map(|model| ModelName::new(name, model));
        let destination = account.destination();
        let sends = if is_loopback(&destination) {
            format!("conversations would go to `{destination}`, on this machine")
        } else {
            let clear = if destination.starts_with("https://") { "" } else { ", unencrypted" };
            format!("conversations would be sent to `{destination}`{clear}")
        };
        Self { name: name.to_owned(), account, models, model, why, sends }
    }

    /// The one command that accepts it.
    #[must_use]
    pub fn command(&self) -> String {
        match &self.model {
            Some(model) => format!("palyra models set-default {model}"),
            None => format!("palyra models set-default {}/MODEL", self.name),
        }
    }
}

/// Whether an address is this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let Ok(url) = url.parse::<reqwest::Url>() else { return false };
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
