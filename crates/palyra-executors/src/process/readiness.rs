//! The sandbox of this daemon: started when it is first wanted, and offered only in tiers that were seen to hold.
//!
//! The proof is made once per kernel, binary and user and kept in the state; a kernel that changes under a daemon is noticed at its next start.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palyra_common::{SandboxTier, ToStableError as _};
use palyra_sandbox::{HostFacts, LauncherOptions, ProofKey, ProofReport, Sandbox, SandboxError, missing_for, prove};
use palyra_tools::ToolError;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

/// The sandbox, made ready once.
pub(crate) struct Readiness {
    launcher: PathBuf,
    state: PathBuf,
    ready: OnceCell<Arc<Ready>>,
}

/// A sandbox that processes can be started in.
pub(crate) struct Ready {
    pub(super) sandbox: Sandbox,
    pub(super) host: HostFacts,
    proofs: Vec<ProofReport>,
}

/// What is kept about a proof.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: ProofKey,
    proofs: Vec<ProofReport>,
}

impl Readiness {
    pub(super) fn new(launcher: PathBuf, state: PathBuf) -> Self {
        Self { launcher, state, ready: OnceCell::new() }
    }

    /// The sandbox; made ready by whoever asks first. A failure is tried again by the next.
    pub(super) async fn get(&self) -> Result<Arc<Ready>, ToolError> {
        let ready = self.ready.get_or_try_init(|| async {
            let (launcher, state) = (self.launcher.clone(), self.state.clone());
            let made = tokio::task::spawn_blocking(move || make(&launcher, &state)).await;
            match made {
                Ok(made) => made.map(Arc::new).map_err(|error| refused(&error)),
                Err(error) => Err(ToolError::Internal(error.to_string())),
            }
        });
        ready.await.cloned()
    }
}

impl Ready {
    /// Fails unless the tier was seen to hold here.
    pub(super) fn require(&self, tier: SandboxTier) -> Result<(), ToolError> {
        let proven = self.proofs.iter().find(|proof| proof.tier == tier);
        match proven {
            Some(proof) => proof.require().map_err(|error| refused(&error)),
            None => Err(refused(&SandboxError::TierUnproven {
                tier,
                failures: vec!["it has not been verified on this host".to_owned()],
            })),
        }
    }
}

/// A refusal of the sandbox, in its own words.
pub(super) fn refused(error: &dyn palyra_common::ToStableError) -> ToolError {
    ToolError::Custom(Box::new(error.to_stable()))
}

fn make(launcher: &Path, state: &Path) -> Result<Ready, SandboxError> {
    let options = LauncherOptions { binary: launcher.to_owned() };
    let sandbox = Sandbox::start(options)?;
    let host = sandbox.host_facts()?;
    let key = ProofKey::of(&host, launcher)?;
    let file = state.join("sandbox-proof.json");
    let kept = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
    if let Some(kept) = kept.filter(|kept| kept.key == key) {
        return Ok(Ready { sandbox, host, proofs: kept.proofs });
    }
    let mut proofs = Vec::new();
    for tier in [SandboxTier::B, SandboxTier::C] {
        if missing_for(tier, &host).is_empty() {
            // Not in the state: a guest of root's daemon has an id of its own, which cannot even walk through it.
            proofs.push(prove(&sandbox, &host, tier, &std::env::temp_dir())?);
        }
    }
    let kept = Kept { key, proofs };
    // Without the file the proof is made again at the next start; that is slower and nothing worse.
    let written = serde_json::to_vec(&kept).map(|bytes| fs::write(&file, bytes));
    if !matches!(written, Ok(Ok(()))) {
        tracing::warn!(file = %file.display(), "the result of the sandbox check could not be saved");
    }
    for proof in &kept.proofs {
        if let Err(error) = proof.require() {
            tracing::error!(error = %error.to_stable(), "a sandbox tier failed its checks on this host and is not offered");
        }
    }
    Ok(Ready { sandbox, host, proofs: kept.proofs })
}
