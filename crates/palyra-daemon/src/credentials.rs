//! Secrets for processes: which the operator bound to which host, and where they are read.

use async_trait::async_trait;
use palyra_common::{
    ErrorCategory, SecretRef, SecretResolver as _, SecretString, StableErrorEnvelope, ToStableError as _,
};
use palyra_egress::{CredentialBinding, SecretSource};
use palyra_secrets::DaemonSecrets;

use crate::error::DaemonError;

const KEY: &str = "process.credentials";
const FORM: &str =
    "write `HOST HEADER: TEXT {REFERENCE}`, such as `api.example.org Authorization: Bearer {env:API_TOKEN}`";

/// The bindings that the operator wrote. No message repeats the text: it may be a pasted secret.
pub(crate) fn parsed(lines: &[String]) -> Result<Vec<CredentialBinding>, DaemonError> {
    lines.iter().enumerate().map(|(at, line)| binding(at + 1, line)).collect()
}

fn binding(number: usize, line: &str) -> Result<CredentialBinding, DaemonError> {
    let wrong = |reason: &str| {
        let message = format!("entry {number}: {reason}");
        let error = StableErrorEnvelope::new("config_invalid_value", ErrorCategory::Validation, message).hint(FORM);
        DaemonError::config(KEY, &error)
    };
    let (host, rest) = line.trim().split_once(' ').ok_or_else(|| wrong("it has only one part"))?;
    let (header, value) = rest.split_once(':').ok_or_else(|| wrong("it names no header"))?;
    let (before, inner) = value.trim().split_once('{').ok_or_else(|| wrong("it has no `{reference}`"))?;
    let (reference, after) = inner.split_once('}').ok_or_else(|| wrong("its `{` is not closed"))?;
    let secret: SecretRef = reference.parse().map_err(|error| wrong(&format!("{error}")))?;
    let placeholder = format!("palyra-placeholder-{number}");
    let mut binding = CredentialBinding::header(host, header.trim(), secret, &placeholder)
        .map_err(|error| DaemonError::config(KEY, &error.to_stable()))?;
    binding.template = format!("{before}{{}}{after}");
    Ok(binding)
}

/// Secrets in the daemon's own environment, in files and in what commands print.
pub(crate) struct Secrets(pub(crate) DaemonSecrets);

#[async_trait]
impl SecretSource for Secrets {
    async fn resolve(&self, reference: &SecretRef) -> Result<SecretString, String> {
        let (reference, secrets) = (reference.clone(), self.0.clone());
        let read = tokio::task::spawn_blocking(move || secrets.resolve(&reference)).await;
        read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_is_read_and_a_wrong_one_is_not_repeated() {
        let lines = ["api.example.org Authorization: Bearer {env:API_TOKEN}".to_owned()];
        let [binding] = parsed(&lines).unwrap().try_into().unwrap();
        assert_eq!(binding.template, "Bearer {}");
        assert_eq!(binding.secret, SecretRef::Env("API_TOKEN".to_owned()));
        for line in [
            "",
            "host",
            "host X-Key",
            "host X-Key: hunter2hunter2",
            "host X: {hunter2hunter2}",
            "host X: {env:A",
            "10.0.0 X: {env:A}",
        ] {
            let error = parsed(&[line.to_owned()]).unwrap_err().to_stable();
            assert_eq!(error.code, "config_invalid_value", "{line}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
