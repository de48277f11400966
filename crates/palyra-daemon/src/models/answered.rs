//! Which providers have answered, kept in the state root: after a restart a run goes on waiting for one that is away, and does not fail as if it had been configured wrongly.
//!
//! What is kept is a name and a digest of where the provider is. A file that cannot be read or written costs nothing but that knowledge.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use palyra_common::Digest;
use palyra_models::{Account, AnswerMemory};

const FILE: &str = "providers-answered.json";

/// See the module.
#[derive(Debug)]
pub(super) struct Answered {
    path: PathBuf,
    known: Mutex<BTreeMap<String, Digest>>,
}

impl Answered {
    pub(super) fn open(state_root: &Path) -> Self {
        let path = state_root.join(FILE);
        let known = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::warn!(%error, path = %path.display(), "which providers have answered before cannot be read");
                BTreeMap::new()
            }),
            Err(_) => BTreeMap::new(),
        };
        Self { path, known: Mutex::new(known) }
    }

    fn save(&self, known: &BTreeMap<String, Digest>) -> io::Result<()> {
        let temporary = self.path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(known)?)?;
        // Not synced: a power cut costs this knowledge and nothing else, and an answer is waiting.
        fs::rename(&temporary, &self.path)
    }
}

/// Where an account's provider is: one that was moved has to answer there first.
fn place(account: &Account) -> Digest {
    Digest::of(format!("{}\n{}", account.kind, account.base_url.as_deref().unwrap_or_default()).as_bytes())
}

impl AnswerMemory for Answered {
    fn has_answered(&self, provider: &str, account: &Account) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(provider).is_some_and(|known| *known == place(account))
    }

    fn note_answer(&self, provider: &str, account: &Account) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(provider.to_owned(), place(account)) == Some(place(account)) {
            return;
        }
        if let Err(error) = self.save(&known) {
            tracing::warn!(%error, "which providers have answered cannot be kept for the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use palyra_models::ProviderKind;

    use super::*;

    #[test]
    fn a_provider_that_answered_is_known_after_a_restart_where_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let at = |url: &str| Account { base_url: Some(url.to_owned()), ..Account::new(ProviderKind::OpenaiCompatible) };
        let here = at("http://127.0.0.1:1/v1");
        let first = Answered::open(directory.path());
        assert!(!first.has_answered("work", &here));
        first.note_answer("work", &here);
        let again = Answered::open(directory.path());
        assert!(again.has_answered("work", &here));
        assert!(!again.has_answered("home", &here), "another account");
        assert!(!again.has_answered("work", &at("http://127.0.0.1:2/v1")), "it is elsewhere now");
        fs::write(directory.path().join(FILE), "{").unwrap();
        assert!(!Answered::open(directory.path()).has_answered("work", &here));
    }
}
