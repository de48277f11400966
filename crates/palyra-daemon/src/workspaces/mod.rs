//! Where each principal may work: granted roots, roots of the configuration, and the directories that the daemon makes for conversations.
//!
//! The engine asks here each time it opens a workspace, so a grant counts for the next run and a revocation too. Paths are stored without links and compared as
//! they are: a root that is later replaced by a link leads nowhere.

mod configured;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use palyra_agent::{WorkspaceAuthority, WorkspaceRoots};
use palyra_common::Digest;
use palyra_common::config::Config;
use palyra_journal::Journal;
use palyra_tools::Roots;
use tokio::sync::Mutex;

pub(crate) use self::configured::{ConfiguredRoot, trusted};
pub(crate) use self::table::{CHANGED, Changed, Granted, WorkspaceGrants};
use crate::error::DaemonError;

/// All roots of all principals.
pub(crate) struct Workspaces {
    granted: RwLock<BTreeMap<(String, String), Granted>>,
    configured: Vec<ConfiguredRoot>,
    /// Directory of the daemon's own making; each principal has one below it.
    conversations: PathBuf,
    /// `openai.workspace`, which an operator gave to everybody who may use models.
    shared: Option<PathBuf>,
    /// Directories that are too much for one workspace.
    too_broad: Vec<PathBuf>,
    /// One change at a time: each looks at the grants, is recorded and then counts.
    pub(crate) changing: Mutex<()>,
}

impl Workspaces {
    /// The roots as the journal and the configuration have them.
    pub(crate) fn load(
        journal: &Journal,
        config: &Config,
        state_root: &Path,
        home: Option<&Path>,
    ) -> Result<Self, DaemonError> {
        let granted = journal.read_blocking(|reader| Ok(table::all(reader.connection())?))?;
        let by_key = |grant: Granted| ((grant.principal.clone(), grant.path.clone()), grant);
        Ok(Self {
            granted: RwLock::new(granted.into_iter().map(by_key).collect()),
            configured: configured::read(&config.workspaces.roots)?,
            conversations: real(&beside(state_root)),
            shared: config.openai.workspace.as_deref().map(real),
            too_broad: home.map(real).into_iter().collect(),
            changing: Mutex::new(()),
        })
    }

    /// The directory in which the daemon makes directories for a principal's conversations.
    pub(crate) fn conversations_of(&self, principal: &str) -> PathBuf {
        self.conversations.join(Digest::of(principal.as_bytes()).to_hex())
    }

    /// Whether a directory is one that conversations have without anybody's grant.
    pub(crate) fn is_of_conversations(&self, principal: &str, path: &Path) -> bool {
        path.starts_with(self.conversations_of(principal))
            || self.shared.as_deref().is_some_and(|shared| path == shared)
    }

    /// The grants in force, by principal and path, and what the configuration says.
    pub(crate) fn list(&self) -> (Vec<Granted>, &[ConfiguredRoot]) {
        let granted = self.granted.read().unwrap_or_else(PoisonError::into_inner);
        (granted.values().cloned().collect(), &self.configured)
    }

    /// A grant, if it is in force.
    pub(crate) fn find(&self, principal: &str, path: &str) -> Option<Granted> {
        let granted = self.granted.read().unwrap_or_else(PoisonError::into_inner);
        granted.get(&(principal.to_owned(), path.to_owned())).cloned()
    }

    /// Takes up a change that is on the journal.
    pub(crate) fn apply(&self, changed: Changed) {
        let mut granted = self.granted.write().unwrap_or_else(PoisonError::into_inner);
        match changed {
            Changed::Granted { principal, path, by, at } => {
                granted.insert((principal.clone(), path.clone()), Granted { principal, path, by, at });
            }
            Changed::Revoked { principal, path, .. } => {
                granted.remove(&(principal, path));
            }
        }
    }

    fn granted_to(&self, principal: &str) -> Vec<PathBuf> {
        let granted = self.granted.read().unwrap_or_else(PoisonError::into_inner);
        let granted =
            granted.values().filter(|grant| grant.principal == principal).map(|grant| PathBuf::from(&grant.path));
        let configured = self.configured.iter().filter(|root| root.is_for(principal)).map(|root| root.path.clone());
        granted.chain(configured).collect()
    }
}

impl WorkspaceRoots for Workspaces {
    fn roots(&self, principal: &str, authority: WorkspaceAuthority) -> Roots {
        match authority {
            WorkspaceAuthority::LocalOwner => {
                Roots::Anywhere { except: self.too_broad.clone(), granted: self.granted_to(principal) }
            }
            WorkspaceAuthority::Granted => {
                let own = std::iter::once(self.conversations_of(principal));
                Roots::Below(self.granted_to(principal).into_iter().chain(own).collect())
            }
            WorkspaceAuthority::Conversation => {
                Roots::Below(self.shared.clone().into_iter().chain([self.conversations_of(principal)]).collect())
            }
        }
    }
}

/// Beside the state root and not in it, because no tool may ever reach into the state root.
fn beside(state_root: &Path) -> PathBuf {
    let mut name = state_root.file_name().map_or_else(|| "palyra".into(), ToOwned::to_owned);
    name.push("-workspaces");
    state_root.with_file_name(name)
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(found), ..) => found,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        (Err(_), ..) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_lie_beside_the_state_and_not_in_it() {
        let root = Path::new("/home/ada/.local/state/palyra");
        assert_eq!(beside(root), Path::new("/home/ada/.local/state/palyra-workspaces"));
        assert!(!beside(root).starts_with(root));
    }
}
