//! Tokens known by a prefix, an alphabet and a length: one row each.
//!
//! A row is enough when the prefix is telling and the rest is random. What needs a checksum, an inner structure or context has a
//! file of its own.

use super::entropy::looks_random;
use super::site::{
    Hit, Site, base32, base62, base64_any, base64_padded, base64url, dotted, hex, hex_parts, upper_alphanumeric, word,
};
use crate::findings::{Confidence, FindingKind};

/// Longest token followed; beyond this it is cut, and its rest is still covered by whatever follows.
const MAX_TOKEN: usize = 512;

/// How long the part after the prefix is.
#[derive(Clone, Copy)]
pub(crate) enum Length {
    /// Exactly so long: one more character of the alphabet and it is something else.
    Exactly(usize),
    /// So long or longer.
    AtLeast(usize),
}

/// What may stand before the prefix.
#[derive(Clone, Copy)]
pub(crate) enum Left {
    /// Anything: the prefix is telling enough.
    Free,
    /// No letter or digit.
    Word,
}

/// One row: a provider's token.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) kind: FindingKind,
    pub(crate) prefix: &'static str,
    pub(crate) alphabet: fn(u8) -> bool,
    pub(crate) length: Length,
    pub(crate) left: Left,
}

const fn row(
    name: &'static str,
    kind: FindingKind,
    prefix: &'static str,
    alphabet: fn(u8) -> bool,
    length: Length,
    left: Left,
) -> Shape {
    Shape { name, kind, prefix, alphabet, length, left }
}

use FindingKind as K;
use Left::{Free, Word};
use Length::{AtLeast, Exactly};

/// All rows.
pub(crate) static SHAPES: &[Shape] = &[
    row("github_fine_grained", K::GithubToken, "github_pat_", word, AtLeast(40), Free),
    row("google_api_key", K::GcpKey, "AIza", base64url, Exactly(35), Word),
    row("google_oauth_token", K::GcpKey, "ya29.", base64url, AtLeast(30), Word),
    row("google_oauth_secret", K::GcpKey, "GOCSPX-", base64url, Exactly(28), Free),
    row("slack_bot_token", K::SlackToken, "xoxb-", base64url, AtLeast(20), Free),
    row("slack_user_token", K::SlackToken, "xoxp-", base64url, AtLeast(20), Free),
    row("slack_app_token", K::SlackToken, "xoxa-", base64url, AtLeast(20), Free),
    row("slack_refresh_token", K::SlackToken, "xoxr-", base64url, AtLeast(20), Free),
    row("slack_session_token", K::SlackToken, "xoxs-", base64url, AtLeast(20), Free),
    row("slack_cookie_token", K::SlackToken, "xoxc-", base64url, AtLeast(20), Free),
    row("slack_config_token", K::SlackToken, "xoxe-", base64url, AtLeast(20), Free),
    row("slack_config_access", K::SlackToken, "xoxe.", dotted, AtLeast(20), Free),
    row("slack_level_token", K::SlackToken, "xapp-", base64url, AtLeast(20), Free),
    row("stripe_secret", K::StripeKey, "sk_live_", base62, AtLeast(16), Free),
    row("stripe_restricted", K::StripeKey, "rk_live_", base62, AtLeast(16), Free),
    row("stripe_test_secret", K::StripeKey, "sk_test_", base62, AtLeast(16), Free),
    row("stripe_test_restricted", K::StripeKey, "rk_test_", base62, AtLeast(16), Free),
    row("stripe_webhook", K::StripeKey, "whsec_", base62, AtLeast(24), Free),
    row("anthropic_key", K::ModelApiKey, "sk-ant-", base64url, AtLeast(24), Free),
    row("openai_project_key", K::ModelApiKey, "sk-proj-", base64url, AtLeast(24), Free),
    row("openai_service_key", K::ModelApiKey, "sk-svcacct-", base64url, AtLeast(24), Free),
    row("openai_admin_key", K::ModelApiKey, "sk-admin-", base64url, AtLeast(24), Free),
    row("openrouter_key", K::ModelApiKey, "sk-or-v1-", hex, AtLeast(32), Free),
    row("groq_key", K::ModelApiKey, "gsk_", base62, AtLeast(40), Word),
    row("xai_key", K::ModelApiKey, "xai-", base62, AtLeast(60), Word),
    row("perplexity_key", K::ModelApiKey, "pplx-", base62, AtLeast(40), Word),
    row("replicate_key", K::ModelApiKey, "r8_", base62, Exactly(37), Word),
    row("huggingface_token", K::ModelApiKey, "hf_", base62, Exactly(34), Word),
    row("nvidia_key", K::ModelApiKey, "nvapi-", base64url, AtLeast(60), Word),
    row("langsmith_key", K::ModelApiKey, "lsv2_", word, AtLeast(40), Word),
    row("tavily_key", K::ModelApiKey, "tvly-", base64url, AtLeast(30), Word),
    row("rubygems_key", K::RegistryToken, "rubygems_", hex, Exactly(48), Free),
    row("crates_io_token", K::RegistryToken, "cio", base62, Exactly(32), Word),
    row("docker_pat", K::RegistryToken, "dckr_pat_", base64url, AtLeast(20), Free),
    row("docker_org_token", K::RegistryToken, "dckr_oat_", base64url, AtLeast(20), Free),
    row("nuget_key", K::RegistryToken, "oy2", base62, Exactly(43), Word),
    row("clojars_token", K::RegistryToken, "CLOJARS_", hex, Exactly(60), Free),
    row("artifactory_key", K::RegistryToken, "AKCp", base62, AtLeast(60), Word),
    row("gitlab_pat", K::ProviderToken, "glpat-", dotted, AtLeast(20), Free),
    row("gitlab_deploy_token", K::ProviderToken, "gldt-", base64url, AtLeast(20), Word),
    row("gitlab_runner_token", K::ProviderToken, "glrt-", dotted, AtLeast(20), Word),
    row("gitlab_feed_token", K::ProviderToken, "glft-", base64url, AtLeast(20), Word),
    row("gitlab_scim_token", K::ProviderToken, "glsoat-", base64url, AtLeast(20), Word),
    row("gitlab_trigger_token", K::ProviderToken, "glptt-", hex, AtLeast(40), Word),
    row("gitlab_agent_token", K::ProviderToken, "glagent-", base64url, AtLeast(50), Word),
    row("gitlab_oauth_secret", K::ProviderToken, "gloas-", base64url, AtLeast(40), Word),
    row("gitlab_mail_token", K::ProviderToken, "glimt-", base64url, AtLeast(20), Word),
    row("gitlab_job_token", K::ProviderToken, "glcbt-", base64url, AtLeast(20), Word),
    row("gitlab_registration_token", K::ProviderToken, "GR1348941", base64url, AtLeast(20), Word),
    row("bitbucket_password", K::ProviderToken, "ATBB", base62, AtLeast(28), Word),
    row("sourcegraph_token", K::ProviderToken, "sgp_", word, AtLeast(40), Word),
    row("buildkite_token", K::ProviderToken, "bkua_", hex, Exactly(40), Word),
    row("digitalocean_refresh", K::ProviderToken, "dor_v1_", hex, Exactly(64), Free),
    row("heroku_key", K::ProviderToken, "HRKU-AA", base64url, AtLeast(50), Word),
    row("fly_token", K::ProviderToken, "fm2_", base64_padded, AtLeast(80), Word),
    row("fly_access_token", K::ProviderToken, "fo1_", base64url, Exactly(43), Word),
    row("terraform_token", K::ProviderToken, ".atlasv1.", base64url, AtLeast(60), Free),
    row("planetscale_token", K::ProviderToken, "pscale_tkn_", dotted, AtLeast(30), Free),
    row("planetscale_password", K::ProviderToken, "pscale_pw_", dotted, AtLeast(30), Free),
    row("planetscale_oauth", K::ProviderToken, "pscale_oauth_", dotted, AtLeast(30), Free),
    row("supabase_secret", K::ProviderToken, "sb_secret_", base64url, AtLeast(28), Free),
    row("cloudflare_origin_key", K::ProviderToken, "v1.0-", hex_parts, AtLeast(170), Word),
    row("openshift_token", K::ProviderToken, "sha256~", base64url, Exactly(43), Word),
    row("deno_token", K::ProviderToken, "ddp_", base62, Exactly(36), Word),
    row("digitalocean_token", K::ProviderToken, "dop_v1_", hex, Exactly(64), Free),
    row("digitalocean_oauth", K::ProviderToken, "doo_v1_", hex, Exactly(64), Free),
    row("databricks_token", K::ProviderToken, "dapi", hex, Exactly(32), Word),
    row("shopify_access", K::ProviderToken, "shpat_", hex, Exactly(32), Free),
    row("shopify_secret", K::ProviderToken, "shpss_", hex, Exactly(32), Free),
    row("shopify_custom", K::ProviderToken, "shpca_", hex, Exactly(32), Free),
    row("shopify_private", K::ProviderToken, "shppa_", hex, Exactly(32), Free),
    row("linear_key", K::ProviderToken, "lin_api_", base62, AtLeast(32), Free),
    row("postman_key", K::ProviderToken, "PMAK-", base64url, AtLeast(40), Word),
    row("grafana_token", K::ProviderToken, "glsa_", word, AtLeast(36), Word),
    row("vault_token", K::ProviderToken, "hvs.", base64url, AtLeast(24), Word),
    row("vault_batch_token", K::ProviderToken, "hvb.", base64url, AtLeast(24), Word),
    row("age_key", K::PrivateKey, "AGE-SECRET-KEY-1", upper_alphanumeric, AtLeast(50), Free),
    row("tailscale_key", K::ProviderToken, "tskey-", base64url, AtLeast(20), Free),
    row("supabase_token", K::ProviderToken, "sbp_", hex, Exactly(40), Word),
    row("sentry_token", K::ProviderToken, "sntrys_", base64_any, AtLeast(40), Free),
    row("atlassian_token", K::ProviderToken, "ATATT3", base64url, AtLeast(60), Word),
    row("doppler_token", K::ProviderToken, "dp.pt.", base62, AtLeast(40), Word),
    row("newrelic_key", K::ProviderToken, "NRAK-", upper_alphanumeric, Exactly(27), Word),
    row("square_token", K::ProviderToken, "sq0atp-", base64url, Exactly(22), Free),
    row("square_secret", K::ProviderToken, "sq0csp-", base64url, Exactly(43), Free),
    row("square_access", K::ProviderToken, "EAAA", base64url, Exactly(60), Word),
    row("shippo_token", K::ProviderToken, "shippo_live_", hex, Exactly(40), Free),
    row("shippo_test_token", K::ProviderToken, "shippo_test_", hex, Exactly(40), Free),
    row("easypost_key", K::ProviderToken, "EZAK", base62, Exactly(54), Word),
    row("easypost_test_key", K::ProviderToken, "EZTK", base62, Exactly(54), Word),
    row("mailgun_key", K::ProviderToken, "key-", hex, Exactly(32), Word),
    row("brevo_key", K::ProviderToken, "xkeysib-", base64url, AtLeast(64), Free),
    row("brevo_smtp_key", K::ProviderToken, "xsmtpsib-", base64url, AtLeast(64), Free),
    row("figma_token", K::ProviderToken, "figd_", base64url, AtLeast(40), Word),
    row("typeform_token", K::ProviderToken, "tfp_", dotted, AtLeast(50), Word),
    row("contentful_token", K::ProviderToken, "CFPAT-", base64url, Exactly(43), Word),
    row("grafana_cloud_token", K::ProviderToken, "glc_", base64_padded, AtLeast(40), Word),
    row("dynatrace_token", K::ProviderToken, "dt0c01.", dotted, AtLeast(80), Word),
    row("sentry_user_token", K::ProviderToken, "sntryu_", hex, Exactly(64), Free),
    row("doppler_service_token", K::ProviderToken, "dp.st.", dotted, AtLeast(40), Word),
    row("readme_key", K::ProviderToken, "rdme_", base62, AtLeast(60), Word),
    row("prefect_key", K::ProviderToken, "pnu_", base62, Exactly(36), Word),
    row("frameio_token", K::ProviderToken, "fio-u-", base64url, AtLeast(60), Word),
    row("duffel_token", K::ProviderToken, "duffel_live_", base64url, AtLeast(40), Free),
    row("duffel_test_token", K::ProviderToken, "duffel_test_", base64url, AtLeast(40), Free),
    row("infracost_key", K::ProviderToken, "ico-", base62, Exactly(32), Word),
    row("onepassword_account", K::ProviderToken, "ops_eyJ", base64_padded, AtLeast(200), Word),
    row("mapbox_secret", K::ProviderToken, "sk.eyJ", dotted, AtLeast(60), Word),
    row("pulumi_token", K::ProviderToken, "pul-", hex, Exactly(40), Word),
    row("netlify_token", K::ProviderToken, "nfp_", base62, Exactly(36), Word),
    row("notion_token", K::ProviderToken, "ntn_", base62, AtLeast(40), Word),
    row("aws_access_key", K::AwsAccessKey, "AKIA", base32, Exactly(16), Word),
    row("aws_session_key", K::AwsAccessKey, "ASIA", base32, Exactly(16), Word),
    row("aws_bedrock_key", K::AwsSecretKey, "ABSK", base64_padded, AtLeast(100), Word),
    row("aws_bearer_key", K::AwsAccessKey, "ABIA", base32, Exactly(16), Word),
];

/// Looks for the row's token at an anchor.
pub(crate) fn inspect(shape: &Shape, site: &Site<'_>) -> Option<Hit> {
    if matches!(shape.left, Word) && !site.starts_word() {
        return None;
    }
    let end = match shape.length {
        Exactly(len) => {
            let end = site.run(site.after, len + 1, shape.alphabet);
            (end == site.after + len).then_some(end)?
        }
        AtLeast(len) => {
            let end = site.run(site.after, MAX_TOKEN, shape.alphabet);
            (end >= site.after + len).then_some(end)?
        }
    };
    let body = site.slice(site.after, end);
    // A key's body names no words: `sk-proj-my-name` has neither a digit nor both cases, which chance all but never does.
    let digits = body.iter().any(u8::is_ascii_digit);
    let cases = body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase);
    let fixed = matches!(shape.length, Exactly(_));
    if !looks_random(body) || !(digits || cases || fixed) {
        return None;
    }
    Hit::new(site.at, end, Confidence::High)
}
