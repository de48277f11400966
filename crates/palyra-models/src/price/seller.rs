//! Who sells a call: whose prices count, and whether there is anything to pay.

use std::net::IpAddr;

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

runtime_contract_enum! {
    /// Whether calls have to be paid for.
    pub enum Billing("model_billing") {
        /// Somebody sends a bill.
        Paid = "paid",
        /// The model runs on this machine, or on a server that people run themselves.
        Local = "local",
    }
}

/// A shop that sells models of others.
pub(super) const OPENROUTER: &str = "openrouter";

/// Hosts of vendors, so that a plain base URL finds the right prices.
const HOSTS: [(&str, &str); 5] = [
    ("api.openai.com", "openai"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("openrouter.ai", OPENROUTER),
    ("api.deepseek.com", "deepseek"),
];

/// Whom a call is bought from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seller {
    /// The provider's name in the configuration; prices in the operator's file can be given for it.
    pub name: String,
    /// Whose prices count, such as `openai`.
    pub vendor: String,
    /// Whether there is anything to pay.
    pub billing: Billing,
}

impl Seller {
    /// The seller behind a provider: its name in the configuration, its kind (`openai`, `anthropic`, `gemini`, `openrouter`, `ollama`,
    /// `openai_compatible`, `offline`, …) and the base URL, where one is set.
    #[must_use]
    pub fn new(name: &str, kind: &str, base_url: Option<&str>) -> Self {
        let host = base_url.and_then(host);
        let known = host.as_deref().and_then(|host| HOSTS.iter().find(|(known, _)| *known == host));
        let vendor = match (known, vendor(kind)) {
            (Some((_, vendor)), _) => (*vendor).to_owned(),
            (None, Some(vendor)) => vendor.to_owned(),
            // A server of any kind may be named after the vendor it belongs to.
            (None, None) => vendor(name).map_or_else(|| name.to_ascii_lowercase(), str::to_owned),
        };
        let here = host.as_deref().is_some_and(is_this_machine);
        // Ollama is a server that people run; its vendor's own host is not.
        let own = match kind.to_ascii_lowercase().as_str() {
            "offline" | "scripted" => true,
            "ollama" => !host.as_deref().is_some_and(|host| host == "ollama.com" || host.ends_with(".ollama.com")),
            _ => false,
        };
        let billing = if here || own { Billing::Local } else { Billing::Paid };
        Self { name: name.to_owned(), vendor, billing }
    }

    /// Whether the charge that this seller states for a call is what it takes for it. OpenRouter deducts it from the account as it states it;
    /// any other server may write what it likes.
    #[must_use]
    pub fn states_charges(&self) -> bool {
        self.vendor == OPENROUTER && self.billing == Billing::Paid
    }
}

/// The vendor that a kind of provider stands for.
fn vendor(kind: &str) -> Option<&'static str> {
    let kind = kind.to_ascii_lowercase();
    Some(match kind.as_str() {
        "openai" | "openai_chat" | "openai_responses" => "openai",
        "anthropic" | "claude" => "anthropic",
        "gemini" | "google" => "gemini",
        OPENROUTER => OPENROUTER,
        "deepseek" => "deepseek",
        "ollama" => "ollama",
        _ => return None,
    })
}

fn host(base_url: &str) -> Option<String> {
    let url = reqwest::Url::parse(base_url).ok()?;
    Some(url.host_str()?.trim_end_matches('.').to_ascii_lowercase())
}

/// Whether a host is this machine by its very name. Names that would have to be looked up are not.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost"
        || host.ends_with(".localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_prices_are_found_and_own_servers_are_free() {
        use Billing::{Local, Paid};
        for (name, kind, url, vendor, billing) in [
            ("openai", "openai", None, "openai", Paid),
            ("main", "openai_responses", None, "openai", Paid),
            ("main", "openai_compatible", Some("https://api.openai.com/v1"), "openai", Paid),
            ("x", "openai_compatible", Some("https://API.OpenAI.com./v1"), "openai", Paid),
            ("lab", "openai_compatible", Some("https://models.example.com/v1"), "lab", Paid),
            ("deepseek", "openai_compatible", Some("https://proxy.example.com"), "deepseek", Paid),
            ("here", "openai_compatible", Some("http://127.0.0.1:8080/v1"), "here", Local),
            ("here", "openai_compatible", Some("http://127.8.9.1:8080"), "here", Local),
            ("here", "openai_compatible", Some("http://[::1]:8080"), "here", Local),
            ("here", "openai_compatible", Some("http://[::ffff:127.0.0.1]:8080"), "here", Local),
            ("here", "openai_compatible", Some("http://localhost:8080"), "here", Local),
            ("there", "openai_compatible", Some("http://192.168.1.7:8080"), "there", Paid),
            ("trick", "openai_compatible", Some("http://127.0.0.1.example.com"), "trick", Paid),
            ("trick", "openai_compatible", Some("http://localhost.example.com"), "trick", Paid),
            ("odd", "openai_compatible", Some("no url"), "odd", Paid),
            ("ollama", "ollama", None, "ollama", Local),
            ("ollama", "ollama", Some("http://gpu.lan:11434"), "ollama", Local),
            ("ollama", "ollama", Some("https://ollama.com"), "ollama", Paid),
            ("offline", "offline", None, "offline", Local),
        ] {
            let seller = Seller::new(name, kind, url);
            assert_eq!((seller.vendor.as_str(), seller.billing), (vendor, billing), "{name} {kind} {url:?}");
        }
    }
}
