//! The sandbox of this daemon: started when it is first wanted, and offered only in tiers that were seen to hold.
//!
//! A proof is made once per kernel, binary and user and kept in the state, but only if every tier that the host can give was seen to hold. Anything less is tried
//! again, at the next start and while the daemon runs: what was missing may have been granted since, and a proof that failed once must not keep all programs from
//! running for good.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use palyra_common::{SandboxTier, ToStableError as _};
use palyra_sandbox::{HostFacts, LauncherOptions, ProofKey, ProofReport, Sandbox, SandboxError, missing_for, prove};
use palyra_tools::ToolError;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

/// How soon an incomplete result is tried again. Trying takes about half a second, in which the program that asked waits.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// The tiers of processes.
const TIERS: [SandboxTier; 2] = [SandboxTier::B, SandboxTier::C];

/// The sandbox, made ready when it is first wanted.
pub(crate) struct Readiness {
    launcher: PathBuf,
    state: PathBuf,
    ready: Mutex<Option<Arc<Ready>>>,
}

/// A sandbox that processes can be started in.
pub(crate) struct Ready {
    pub(super) sandbox: Sandbox,
    pub(super) host: HostFacts,
    proofs: Vec<ProofReport>,
    made: Instant,
}

/// What is kept about a proof.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: ProofKey,
    proofs: Vec<ProofReport>,
}

impl Readiness {
    pub(super) fn new(launcher: PathBuf, state: PathBuf) -> Self {
        Self { launcher, state, ready: Mutex::new(None) }
    }

    /// The sandbox; made ready by whoever asks first. A failure, or a result that lacks a tier, is tried again by a later one.
    pub(super) async fn get(&self) -> Result<Arc<Ready>, ToolError> {
        let mut ready = self.ready.lock().await;
        if let Some(known) = ready.as_ref().filter(|known| known.is_complete() || known.made.elapsed() < TRY_AGAIN) {
            return Ok(Arc::clone(known));
        }
        let (launcher, state) = (self.launcher.clone(), self.state.clone());
        let made = tokio::task::spawn_blocking(move || make(&launcher, &state)).await;
        match made {
            Ok(made) => Ok(Arc::clone(ready.insert(Arc::new(made.map_err(|error| refused(&error))?)))),
            Err(error) => Err(ToolError::Internal(error.to_string())),
        }
    }
}

impl Ready {
    /// Whether no later attempt could give more.
    fn is_complete(&self) -> bool {
        holds(&self.proofs, &TIERS)
    }

    /// Fails unless the tier was seen to hold here.
    pub(super) fn require(&self, tier: SandboxTier) -> Result<(), ToolError> {
        require(&self.proofs, tier).map_err(|error| refused(&error))
    }
}

fn require(proofs: &[ProofReport], tier: SandboxTier) -> Result<(), SandboxError> {
    match proofs.iter().find(|proof| proof.tier == tier) {
        Some(proof) => proof.require(),
        None => {
            Err(SandboxError::TierUnproven { tier, failures: vec!["it has not been verified on this host".to_owned()] })
        }
    }
}

/// Whether every one of the tiers was seen to hold.
fn holds(proofs: &[ProofReport], tiers: &[SandboxTier]) -> bool {
    tiers.iter().all(|tier| require(proofs, *tier).is_ok())
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
    let available: Vec<_> = TIERS.into_iter().filter(|tier| missing_for(*tier, &host).is_empty()).collect();
    let file = state.join("sandbox-proof.json");
    let kept = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
    let proofs = match kept.filter(|kept| kept.key == key && holds(&kept.proofs, &available)) {
        Some(kept) => kept.proofs,
        None => prove_all(&sandbox, &host, key, &available, &file)?,
    };
    Ok(Ready { sandbox, host, proofs, made: Instant::now() })
}

fn prove_all(
    sandbox: &Sandbox,
    host: &HostFacts,
    key: ProofKey,
    available: &[SandboxTier],
    file: &Path,
) -> Result<Vec<ProofReport>, SandboxError> {
    // Not in the state: a guest of root's daemon has an id of its own, which cannot even walk through it.
    let directory = std::env::temp_dir();
    let proofs: Vec<_> =
        available.iter().map(|tier| prove(sandbox, host, *tier, &directory)).collect::<Result<_, _>>()?;
    for proof in &proofs {
        if let Err(error) = proof.require() {
            tracing::error!(error = %error.to_stable(), "a sandbox tier failed its checks on this host and is not offered");
        }
    }
    let kept = Kept { key, proofs };
    // Without the file the proof is made again at the next start; that is slower and nothing worse.
    let saved = if holds(&kept.proofs, available) {
        serde_json::to_vec(&kept).map_err(std::io::Error::from).and_then(|bytes| fs::write(file, bytes))
    } else {
        fs::remove_file(file)
            .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
    };
    if let Err(error) = saved {
        tracing::warn!(file = %file.display(), %error, "the result of the sandbox check could not be saved");
    }
    Ok(kept.proofs)
}

#[cfg(test)]
mod tests {
    use palyra_sandbox::Check;

    use super::*;

    fn proof(tier: SandboxTier, held: bool) -> ProofReport {
        ProofReport { tier, checks: vec![Check { name: "x".to_owned(), held, detail: String::new() }] }
    }

    #[test]
    fn only_a_proof_of_every_tier_that_passed_is_enough() {
        let (b, c) = (proof(SandboxTier::B, true), proof(SandboxTier::C, true));
        assert!(holds(&[b.clone(), c], &TIERS));
        // Tier C failed, or became available after the proof was made.
        assert!(!holds(&[b.clone(), proof(SandboxTier::C, false)], &TIERS));
        assert!(!holds(std::slice::from_ref(&b), &TIERS));
        assert!(holds(&[b], &[SandboxTier::B]));
        assert!(!holds(&[ProofReport { tier: SandboxTier::B, checks: Vec::new() }], &[SandboxTier::B]));
    }

    #[test]
    fn a_tier_that_was_not_seen_to_hold_is_not_used() {
        assert!(require(&[proof(SandboxTier::B, true)], SandboxTier::B).is_ok());
        assert!(require(&[proof(SandboxTier::B, true)], SandboxTier::C).is_err());
        assert!(require(&[proof(SandboxTier::C, false)], SandboxTier::C).is_err());
    }
}
