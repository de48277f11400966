//! What each tier gives on this host, and what it cannot give.
//!
//! Made from the facts alone, so that it says the same as planning does. What tier B cannot deny by design stands here and in
//! `docs/sandbox.md`; a test keeps the two in step.

use std::fmt;

use palyra_common::SandboxTier;
use serde::{Deserialize, Serialize};

use crate::host::{Cgroups, HostFacts, LANDLOCK_NETWORK, LANDLOCK_SCOPES, Privilege};
use crate::plan::missing_for;

/// One tier on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierExplanation {
    /// The tier.
    pub tier: SandboxTier,
    /// What is missing; empty if the tier can be given.
    pub missing: Vec<String>,
    /// What it gives here.
    pub gives: Vec<String>,
    /// What it does not deny here.
    pub lacks: Vec<String>,
}

/// What this host gives to each tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Kernel and rights.
    pub host: String,
    /// Tiers B and C.
    pub tiers: Vec<TierExplanation>,
    /// What was noticed besides.
    pub notes: Vec<String>,
}

/// Says what each tier gives on this host.
#[must_use]
pub fn explain(host: &HostFacts) -> Explanation {
    let rights = match host.privilege {
        Privilege::Root => "root; guests run under private ids".to_owned(),
        Privilege::Ordinary { uid, .. } => format!("user {uid}; guests run as the same user"),
    };
    Explanation {
        host: format!("Linux {} on {}, {rights}", host.kernel, host.machine),
        tiers: vec![tier_b(host), tier_c(host)],
        notes: host.notes.clone(),
    }
}

fn common(host: &HostFacts, tier: SandboxTier) -> Vec<String> {
    let mut gives = vec![
        format!("files: Landlock version {}", host.landlock),
        "system calls: an allow-list; everything else fails with ENOSYS".to_owned(),
        "no new privileges, no capabilities, no inherited descriptors or variables".to_owned(),
    ];
    gives.push(match &host.cgroups {
        Cgroups::None(reason) => {
            let memory_files = match tier {
                SandboxTier::C => "files in memory counted by the sandbox",
                SandboxTier::A | SandboxTier::B => "no files in memory",
            };
            format!(
                "limits: per process by the kernel, memory by sampling, {memory_files}, no control group ({reason})"
            )
        }
        groups => {
            let version = if matches!(groups, Cgroups::V2 { .. }) { 2 } else { 1 };
            let word = |yes: bool| if yes { "by the kernel" } else { "by sampling or per process" };
            format!(
                "limits: control groups version {version}; memory {}, processes {}",
                word(groups.limits_memory()),
                word(groups.limits_processes())
            )
        }
    });
    gives.push("limits: wall clock, CPU time and bytes written, enforced from outside".to_owned());
    gives
}

/// What tier B cannot deny by design, whatever the host.
pub(crate) const TIER_B_BY_DESIGN: &[&str] = &[
    "seeing that files exist, with their sizes, owners and times, anywhere the user has access",
    "changing mode and times of files owned by the guest's user, also outside the workspace (none when the daemon runs as root)",
    "seeing which processes run and their command lines, where the host cannot make process namespaces",
    "changing the scheduling of other processes of the guest's user (none when the daemon runs as root)",
    "seeing the host's name, its network interfaces and its hardware",
    "filling the disk up to the limit on written bytes, also with temporary files where the host cannot mount a private directory",
    "with network granted: connecting to the proxy's port numbers on any host, because Landlock filters ports, not addresses",
];

fn tier_b(host: &HostFacts) -> TierExplanation {
    let mut gives = common(host, SandboxTier::B);
    gives.push(if host.landlock >= LANDLOCK_NETWORK {
        "network: none, or TCP to the proxy's ports only".to_owned()
    } else {
        "network: none; this kernel's Landlock cannot limit connections, so none can be granted".to_owned()
    });
    let mut lacks: Vec<String> = TIER_B_BY_DESIGN.iter().map(|text| (*text).to_owned()).collect();
    if host.landlock < LANDLOCK_SCOPES {
        lacks.push(
            "signalling other processes of the same user: this kernel's Landlock cannot confine signals".to_owned(),
        );
    }
    TierExplanation { tier: SandboxTier::B, missing: missing_for(SandboxTier::B, host), gives, lacks }
}

fn tier_c(host: &HostFacts) -> TierExplanation {
    let mut gives = common(host, SandboxTier::C);
    gives.extend([
        "own namespaces: users, mounts, processes, network, IPC, host name".to_owned(),
        "a minimal read-only root, private /tmp, home and shared memory of limited size".to_owned(),
        "network: its own loopback; the egress proxy is the only route out, where granted".to_owned(),
        "the whole process tree dies with its first process".to_owned(),
    ]);
    let lacks = vec![
        "leaving a file in the workspace that a trusted tool executes later: such files are reported".to_owned(),
        "attacks on the kernel through the allowed system calls, and hardware side channels".to_owned(),
    ];
    TierExplanation { tier: SandboxTier::C, missing: missing_for(SandboxTier::C, host), gives, lacks }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.host)?;
        for TierExplanation { tier, missing, gives, lacks } in &self.tiers {
            let verdict = if missing.is_empty() { "available" } else { "not available" };
            write!(f, "\n\ntier {}: {verdict}", tier.as_str())?;
            let lists = [("missing", missing), ("gives", gives), ("does not deny", lacks)];
            for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
                write!(f, "\n  {title}:")?;
                list.iter().try_for_each(|line| write!(f, "\n    - {line}"))?;
            }
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n\nnote: {note}"))
    }
}
