//! Host calls of a local run, shown as they are made.

use std::collections::BTreeMap;

use async_trait::async_trait;
use palyra_common::{Environment, SecretRef, SecretResolver as _, SecretString};
use palyra_egress::SecretSource;
use palyra_executors::SkillHost;
use palyra_plugins_runtime::{
    ChannelGrant, HostFailure, HostServices, HttpGrant, HttpRequest, HttpResponse, LogLevel, SecretBytes, SecretGrant,
    StorageAnswer, StorageGrant, StorageRequest,
};

use crate::console::Console;

/// Passes every call on and tells a person about it.
pub(super) struct Shown {
    host: SkillHost,
    console: Console,
}

impl Shown {
    pub(super) fn new(host: SkillHost, console: Console) -> Self {
        Self { host, console }
    }

    fn tell(&self, text: &str) {
        self.console.remark(&format!("host: {}", crate::console::one_line(text)));
    }
}

#[async_trait]
impl HostServices for Shown {
    async fn http(&self, grant: &HttpGrant, request: HttpRequest) -> Result<HttpResponse, HostFailure> {
        let line = format!("http {} {} (granted by `{}`)", request.method, request.url, grant.rule);
        let answer = self.host.http(grant, request).await;
        match &answer {
            Ok(answer) => self.tell(&format!("{line} → {}, {} bytes", answer.status, answer.body.len())),
            Err(failure) => self.tell(&format!("{line} → {failure:?}")),
        }
        answer
    }

    async fn reveal(&self, secret: &SecretGrant) -> Result<SecretBytes, HostFailure> {
        self.tell(&format!("the value of the secret `{}`", secret.name));
        self.host.reveal(secret).await
    }

    async fn storage(&self, space: &StorageGrant, request: StorageRequest) -> Result<StorageAnswer, HostFailure> {
        let line = match &request {
            StorageRequest::Get { key } => format!("get `{key}`"),
            StorageRequest::Set { key, value } => format!("set `{key}`, {} bytes", value.len()),
            StorageRequest::Delete { key } => format!("delete `{key}`"),
            StorageRequest::Keys { prefix, .. } => format!("keys `{prefix}…`"),
            StorageRequest::Apply { changes, .. } => format!("apply {} changes", changes.len()),
        };
        self.tell(&format!("storage {}: {line}", space.name));
        self.host.storage(space, request).await
    }

    async fn channel_send(&self, channel: &ChannelGrant, text: String) -> Result<String, HostFailure> {
        self.tell(&format!("message to {}: {text}", channel.name));
        // There is nobody to send it to without a daemon.
        Ok("local".to_owned())
    }

    fn log(&self, level: LogLevel, message: &str) {
        self.tell(&format!("log {level:?}: {message}"));
    }

    fn progress(&self, percent: Option<u8>, message: &str) {
        let percent = percent.map(|percent| format!("{percent} % ")).unwrap_or_default();
        self.tell(&format!("progress {percent}{message}"));
    }

    fn config(&self) -> &BTreeMap<String, String> {
        self.host.config()
    }
}

/// Secrets of a local run: variables and files of this user.
pub(super) struct LocalSecrets(pub(super) Environment);

#[async_trait]
impl SecretSource for LocalSecrets {
    async fn resolve(&self, reference: &SecretRef) -> Result<SecretString, String> {
        self.0.resolve(reference).map_err(|error| error.to_string())
    }
}
