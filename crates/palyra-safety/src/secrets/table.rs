//! The table of detectors: what each is called, what it reports, and the anchors at which it looks.
//!
//! Anchors are found in one pass over the text whatever their case; a detector then looks at the few places that matter. A
//! detector without a telling anchor would cost every text, so there is none.

use super::assigned;
use super::cloud;
use super::connection;
use super::pem;
use super::shapes::{self, SHAPES, Shape};
use super::site::{Hit, Site};
use super::structured;
use crate::findings::FindingKind as K;

/// How an anchor must be spelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As in the table.
    Exact,
    /// In any mixture of cases.
    AnyCase,
}

/// One detector with its own code.
pub(crate) struct Detector {
    pub(crate) name: &'static str,
    pub(crate) kind: K,
    pub(crate) anchors: &'static [&'static str],
    pub(crate) spelling: Spelling,
    /// How far before the anchor a finding may start.
    pub(crate) back: usize,
    pub(crate) inspect: fn(&Site<'_>) -> Option<Hit>,
}

/// What an anchor leads to.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    Shape(&'static Shape),
    Detector(&'static Detector, &'static str),
}

const TELLING: &[&str] = &[
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "accesskey",
    "access-key",
    "auth_key",
    "authkey",
    "private_key",
    "privatekey",
    "credential",
    "signing_key",
    "encryption_key",
];

/// The mark in the middle of an Entra ID client secret: a generation and `Q~`.
const AZURE_MARKS: &[&str] = &["0Q~", "1Q~", "2Q~", "3Q~", "4Q~", "5Q~", "6Q~", "7Q~", "8Q~", "9Q~"];

/// How base64 writes the first digits of account numbers given out since 2022.
const DISCORD_BEGINNINGS: &[&str] = &["MTA", "MTE", "MTI", "MTM", "MTQ"];

const fn detector(
    name: &'static str,
    kind: K,
    anchors: &'static [&'static str],
    spelling: Spelling,
    back: usize,
    inspect: fn(&Site<'_>) -> Option<Hit>,
) -> Detector {
    Detector { name, kind, anchors, spelling, back, inspect }
}

use Spelling::{AnyCase, Exact};

/// All detectors beyond the plain shapes.
static DETECTORS: &[Detector] = &[
    detector(
        "github_token",
        K::GithubToken,
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        Exact,
        0,
        structured::checksummed,
    ),
    detector("npm_token", K::RegistryToken, &["npm_"], Exact, 0, structured::checksummed),
    detector("pypi_token", K::RegistryToken, &["pypi-"], Exact, 0, structured::pypi),
    detector("jwt", K::Jwt, &["eyJ"], Exact, 0, structured::jwt),
    detector("model_key", K::ModelApiKey, &["sk-"], Exact, 0, structured::model_key),
    detector("sendgrid_key", K::ProviderToken, &["SG."], Exact, 0, structured::sendgrid),
    detector("telegram_bot_token", K::ProviderToken, &[":AA"], Exact, 11, structured::telegram),
    detector("discord_bot_token", K::ProviderToken, DISCORD_BEGINNINGS, Exact, 0, structured::discord_bot),
    detector(
        "discord_webhook",
        K::ProviderToken,
        &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        AnyCase,
        0,
        structured::discord_webhook,
    ),
    detector("airtable_token", K::ProviderToken, &["pat"], Exact, 0, structured::airtable),
    detector("mailchimp_key", K::ProviderToken, &["-us"], Exact, 33, structured::mailchimp),
    detector("azure_devops_token", K::AzureKey, &["JQQJ99"], Exact, 52, cloud::azure_devops),
    detector("slack_webhook", K::SlackToken, &["hooks.slack.com/services/"], AnyCase, 0, structured::slack_webhook),
    detector(
        "aws_secret_key",
        K::AwsSecretKey,
        &["secret_access_key", "secretaccesskey", "secret-access-key", "aws_secret"],
        AnyCase,
        0,
        cloud::aws_secret_by_name,
    ),
    detector("aws_key_pair", K::AwsSecretKey, &["AKIA", "ASIA"], Exact, 0, cloud::aws_secret_by_pair),
    detector("azure_key", K::AzureKey, &["accountkey=", "sharedaccesskey="], AnyCase, 0, cloud::azure_key),
    detector("azure_signature", K::AzureKey, &["sig="], AnyCase, 1, cloud::azure_signature),
    detector("azure_client_secret", K::AzureKey, AZURE_MARKS, Exact, 3, cloud::azure_client_secret),
    detector("private_key", K::PrivateKey, &["-----BEGIN "], Exact, 0, pem::private_key),
    detector("gcp_service_account", K::GcpServiceAccount, &["-----BEGIN "], Exact, 24, pem::service_account),
    detector("connection_string", K::ConnectionString, &["://"], Exact, 1, connection::password_in_address),
    detector("bearer_token", K::AuthorizationHeader, &["bearer "], AnyCase, 0, connection::bearer),
    detector("basic_credentials", K::AuthorizationHeader, &["basic "], AnyCase, 0, connection::basic),
    detector("assigned_token", K::AssignedSecret, TELLING, AnyCase, 0, assigned::token),
    detector(
        "assigned_password",
        K::AssignedSecret,
        &["password", "passwd", "passphrase", "pwd"],
        AnyCase,
        0,
        assigned::password,
    ),
];

/// Every anchor with the rule it leads to.
pub(crate) fn rules() -> Vec<(&'static str, Rule)> {
    let shapes = SHAPES.iter().map(|shape| (shape.prefix, Rule::Shape(shape)));
    let detectors = DETECTORS
        .iter()
        .flat_map(|detector| detector.anchors.iter().map(move |anchor| (*anchor, Rule::Detector(detector, anchor))));
    shapes.chain(detectors).collect()
}

impl Rule {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Shape(shape) => shape.name,
            Self::Detector(detector, _) => detector.name,
        }
    }

    pub(crate) const fn kind(self) -> K {
        match self {
            Self::Shape(shape) => shape.kind,
            Self::Detector(detector, _) => detector.kind,
        }
    }

    /// The anchor, which is public, when the finding starts with it.
    pub(crate) const fn anchor(self) -> &'static str {
        match self {
            Self::Shape(shape) => shape.prefix,
            Self::Detector(_, anchor) => anchor,
        }
    }

    pub(crate) const fn back(self) -> usize {
        match self {
            Self::Shape(_) => 0,
            Self::Detector(detector, _) => detector.back,
        }
    }

    /// Looks at one site.
    pub(crate) fn inspect(self, site: &Site<'_>) -> Option<Hit> {
        let exact = match self {
            Self::Shape(_) => true,
            Self::Detector(detector, _) => detector.spelling == Exact,
        };
        if exact && site.anchor() != self.anchor().as_bytes() {
            return None;
        }
        match self {
            Self::Shape(shape) => shapes::inspect(shape, site),
            Self::Detector(detector, _) => (detector.inspect)(site),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_anchors_are_telling() {
        let mut names = std::collections::BTreeSet::new();
        for shape in SHAPES {
            assert!(names.insert(shape.name), "{} twice", shape.name);
        }
        for detector in DETECTORS {
            assert!(names.insert(detector.name), "{} twice", detector.name);
        }
        for (anchor, rule) in rules() {
            assert!(anchor.len() >= 3 && anchor.is_ascii(), "{}: `{anchor}`", rule.name());
        }
    }
}
