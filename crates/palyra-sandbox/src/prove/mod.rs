//! The escape battery that ships with the product.
//!
//! [`prove`] starts a sandbox of the given tier whose program is the launcher itself: once everything is in place it does not execute a file but
//! tries what must be denied, and says what happened. So no compiler and no test file is needed on a user's machine. A tier one of whose
//! denials fails is not offered. The result belongs to a kernel and a binary ([`ProofKey`]) and can be kept.

pub(crate) mod inside;

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use palyra_common::{Digest, SandboxTier};
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::grant::{Access, Grant, Invocation, Place, Share};
use crate::host::HostFacts;
use crate::launch::{Sandbox, Stdio, Stream};
use crate::plan::plan;

/// What a proof depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofKey {
    /// Release of the kernel.
    pub kernel: String,
    /// Digest of the binary that carries plans out.
    pub binary: Digest,
    /// Rights the daemon ran with: root and an ordinary user take different ways.
    pub uid: u32,
}

impl ProofKey {
    /// The key for this host and the given binary.
    pub fn of(host: &HostFacts, binary: &Path) -> Result<Self, SandboxError> {
        let unusable =
            |error: std::io::Error| SandboxError::PlaceUnusable { path: binary.to_owned(), reason: error.to_string() };
        let binary = fs::File::open(binary).and_then(Digest::of_reader).map_err(unusable)?;
        let uid = rustix::process::geteuid().as_raw();
        Ok(Self { kernel: host.kernel.clone(), binary, uid })
    }
}

/// One thing that must be denied, and whether it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name.
    pub name: String,
    /// Whether it was denied.
    pub held: bool,
    /// What happened.
    pub detail: String,
}

/// The outcome of the battery for one tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofReport {
    /// The tier.
    pub tier: SandboxTier,
    /// Every check.
    pub checks: Vec<Check>,
}

impl ProofReport {
    /// Fails, naming them, if any check did not hold, or if there were none.
    pub fn require(&self) -> Result<(), SandboxError> {
        let mut failures: Vec<_> = self
            .checks
            .iter()
            .filter(|check| !check.held)
            .map(|check| format!("{}: {}", check.name, check.detail))
            .collect();
        if self.checks.is_empty() {
            failures.push("no checks were run".to_owned());
        }
        if failures.is_empty() { Ok(()) } else { Err(SandboxError::TierUnproven { tier: self.tier, failures }) }
    }
}

/// Runs the battery in a sandbox of the given tier. `directory` is a place for its files; it is left as it was.
pub fn prove(
    sandbox: &Sandbox,
    host: &HostFacts,
    tier: SandboxTier,
    directory: &Path,
) -> Result<ProofReport, SandboxError> {
    let bait = Bait::lay(directory)
        .map_err(|error| SandboxError::PlaceUnusable { path: directory.to_owned(), reason: error.to_string() })?;
    let workspace = Share { place: Place::look(&bait.workspace)?, access: Access::ReadWrite };
    let mut grant = Grant::new(tier, workspace);
    grant.scratch_root.clone_from(&bait.directory);
    let id = format!("prove-{}", bait.name);
    let target = serde_json::to_string(&bait.target(tier, host))
        .map_err(|error| SandboxError::LauncherFailed { reason: error.to_string() })?;
    let invocation = Invocation::new(id, "checks", grant.workspace.place.path.clone()).arguments([target]);
    let plan = plan(&grant, host, &invocation)?.with_checks();
    let stdio = Stdio { stdin: Stream::Null, stdout: Stream::Pipe, stderr: Stream::Null };
    let mut child = sandbox.spawn_blocking(&plan, stdio)?;
    let mut text = String::new();
    let read = child.stdout.take().map(|stdout| fs::File::from(stdout).read_to_string(&mut text));
    child.wait_blocking()?;
    let checks = match read {
        Some(Ok(_)) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        _ => Err("its output was lost".to_owned()),
    };
    let checks = checks.map_err(|reason| SandboxError::LauncherFailed {
        reason: format!("the checks inside the sandbox did not finish: {reason}"),
    })?;
    Ok(ProofReport { tier, checks })
}

/// Things that a sandbox must not reach, laid out on the real host.
struct Bait {
    name: String,
    directory: PathBuf,
    workspace: PathBuf,
    outside: PathBuf,
    secret: PathBuf,
    service: TcpListener,
    _abstract_service: UnixListener,
}

impl Bait {
    fn lay(parent: &Path) -> std::io::Result<Self> {
        let nanos =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let name = format!("{}-{nanos}", std::process::id());
        let directory = parent.canonicalize()?.join(format!("prove-{name}"));
        let workspace = directory.join("workspace");
        fs::create_dir_all(&workspace)?;
        // Not above the workspace: directories above a mount exist inside too, empty but for the way down.
        let outside = directory.join("outside");
        fs::create_dir(&outside)?;
        let secret = outside.join("secret");
        fs::write(&secret, "secret")?;
        // Readable by everyone: only the sandbox stands between it and the guest.
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644))?;
        let address = SocketAddr::from_abstract_name(format!("palyra-prove-{name}"))?;
        let _abstract_service = UnixListener::bind_addr(&address)?;
        let service = TcpListener::bind("127.0.0.1:0")?;
        Ok(Self { name, directory, workspace, outside, secret, service, _abstract_service })
    }

    fn target(&self, tier: SandboxTier, host: &HostFacts) -> inside::Target {
        inside::Target {
            isolated: tier == SandboxTier::C,
            scopes: host.landlock >= crate::host::LANDLOCK_SCOPES,
            secret: self.secret.clone(),
            outside: self.outside.clone(),
            port: self.service.local_addr().map_or(0, |address| address.port()),
            abstract_name: format!("palyra-prove-{}", self.name),
            outsider: std::process::id(),
        }
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
