//! Resource limits and Landlock, from their readable form to the kernel's.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use crate::grant::PlaceKind;
use crate::plan::{LandlockRules, PathRule, Resource, Right, Scopes, TcpRule};
use crate::sys;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::process::Rlimit;

/// Processes that the same user may start meanwhile, other sandboxes included, without starving this one. The tree itself is counted by
/// its supervisor; this only stops it from outrunning the count.
const HEADROOM: u64 = 2048;

/// Limits a resource of this process and its descendants; never raises what was lower before.
pub(crate) fn limit(resource: Resource, value: u64) -> io::Result<()> {
    use rustix::process::Resource as Kernel;
    let (kernel, soft, hard) = match resource {
        // At the soft limit the program is told, a second later it dies.
        Resource::Cpu => (Kernel::Cpu, value, value.saturating_add(1)),
        Resource::FileSize => (Kernel::Fsize, value, value),
        Resource::OpenFiles => (Kernel::Nofile, value, value),
        Resource::Processes => (Kernel::Nproc, value, value),
        Resource::MoreProcesses => {
            let sum = value.saturating_add(running_tasks()?).saturating_add(HEADROOM);
            (Kernel::Nproc, sum, sum)
        }
        Resource::CoreSize => (Kernel::Core, value, value),
        Resource::LockedMemory => (Kernel::Memlock, value, value),
        Resource::MessageQueues => return sys::limit_queues(value),
    };
    set(kernel, soft, hard)
}

fn set(resource: rustix::process::Resource, soft: u64, hard: u64) -> io::Result<()> {
    let ceiling = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let new = Rlimit { current: Some(soft.min(ceiling)), maximum: Some(hard.min(ceiling)) };
    Ok(rustix::process::setrlimit(resource, new)?)
}

/// Processes and threads of this user, as the kernel counts them for the limit.
fn running_tasks() -> io::Result<u64> {
    let own = rustix::process::getuid().as_raw();
    let mut sum = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let is_process = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        if is_process && entry.metadata().is_ok_and(|metadata| metadata.uid() == own) {
            let threads = std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count);
            sum += u64::try_from(threads).unwrap_or(0);
        }
    }
    Ok(sum)
}

/// Restricts this process by Landlock, wholly or not at all.
pub(crate) fn landlock(rules: &LandlockRules) -> io::Result<()> {
    let abi = ABI::from(i32::try_from(rules.version).unwrap_or(i32::MAX));
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(io::Error::other)?;
    if let TcpRule::Connect(_) = rules.tcp {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi)).map_err(io::Error::other)?;
    }
    if rules.scopes == Scopes::Inside {
        ruleset = ruleset.scope(Scope::from_all(abi)).map_err(io::Error::other)?;
    }
    let mut created = ruleset.create().map_err(io::Error::other)?;
    for PathRule { path, kind, right } in &rules.paths {
        let access = match kind {
            PlaceKind::Directory => accesses(*right, abi),
            PlaceKind::File => accesses(*right, abi) & AccessFs::from_file(abi),
        };
        let beneath = PathFd::new(path).map_err(io::Error::other)?;
        created = created.add_rule(PathBeneath::new(beneath, access)).map_err(io::Error::other)?;
    }
    if let TcpRule::Connect(ports) = &rules.tcp {
        for port in ports {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(io::Error::other)?;
        }
    }
    let status = created.restrict_self().map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        Ok(())
    } else {
        Err(io::Error::other("Landlock was enforced only in part"))
    }
}

fn accesses(right: Right, abi: ABI) -> BitFlags<AccessFs> {
    match right {
        Right::ReadExecute => AccessFs::from_read(abi),
        Right::Read => AccessFs::ReadFile | AccessFs::ReadDir,
        Right::Change => AccessFs::from_all(abi) & !(AccessFs::MakeBlock | AccessFs::MakeChar),
        Right::Device => {
            (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev)
                & AccessFs::from_all(abi)
        }
    }
}
