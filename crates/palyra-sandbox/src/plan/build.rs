//! Putting a plan together: tier, identity, limits, rules, environment.

use std::path::{Path, PathBuf};

use palyra_common::SandboxTier;

use super::check::{check, missing_for};
use super::filter::{FilterProfile, MemoryFiles, SetGroupId, Sockets};
use super::room::{self, GUEST_HOME, Mapping};
use super::step::{GuestIdentity, LandlockRules, Namespace, PathRule, Resource, Right, Scopes, Step, TcpRule};
use super::{Plan, Program};
use crate::error::PlanError;
use crate::grant::{Access, Fallback, Grant, Invocation, Network, PlaceKind, ProxyPorts};
use crate::host::{HostFacts, LANDLOCK_NETWORK, LANDLOCK_SCOPES, Privilege, SystemPathKind};

/// Locked memory is taken from everyone: enough for keys and small rings.
const LOCKED_BYTES: u64 = 8 << 20;
/// The kernel's own default for message queues.
const QUEUE_BYTES: u64 = 819_200;

/// Makes the exact plan for one process, or says why there is none.
pub fn plan(grant: &Grant, host: &HostFacts, invocation: &Invocation) -> Result<Plan, PlanError> {
    let (tier, fell_back) = tier(grant, host)?;
    check(grant, invocation)?;
    check_network(grant, host, tier)?;
    let identity = match host.privilege {
        Privilege::Root => GuestIdentity::Private,
        Privilege::Ordinary { uid, gid } => GuestIdentity::Caller { uid, gid },
    };
    let scratch =
        (tier == SandboxTier::B).then(|| grant.scratch_root.join(format!("palyra-sandbox-{}", invocation.id)));
    let (room, ahead, namespaces) = match tier {
        SandboxTier::C => isolated_room(grant, host, identity),
        _ => restricted_room(grant, host, identity, scratch.as_deref()),
    };
    let writable =
        grant.shares().filter(|(_, access)| *access == Access::ReadWrite).map(|(place, _)| place.path.clone());
    Ok(Plan {
        writable: writable.chain(scratch.clone()).collect(),
        id: invocation.id.clone(),
        tier,
        fell_back,
        identity,
        namespaces,
        cgroups: host.cgroups.clone(),
        limits: grant.limits.clone(),
        room,
        ahead,
        guest: guest(grant, host, invocation, tier, identity, scratch.as_deref()),
        program: program(grant, invocation),
        arguments: invocation.arguments.clone(),
        environment: environment(grant, invocation, scratch.as_deref()),
        listeners: match grant.network {
            Network::Proxy(ports) if tier == SandboxTier::C => Some(ports),
            _ => None,
        },
        terminal: invocation.terminal,
        scratch,
    })
}

/// The tier to run in, and what the host lacks for the one that was asked for.
fn tier(grant: &Grant, host: &HostFacts) -> Result<(SandboxTier, Vec<String>), PlanError> {
    let wanted = grant.tier;
    if !matches!(wanted, SandboxTier::B | SandboxTier::C) {
        return Err(PlanError::TierInvalid { tier: wanted });
    }
    let missing = missing_for(wanted, host);
    if missing.is_empty() {
        return Ok((wanted, missing));
    }
    let may_fall_back = wanted == SandboxTier::C && grant.fallback == Fallback::TierB;
    if may_fall_back && missing_for(SandboxTier::B, host).is_empty() {
        return Ok((SandboxTier::B, missing));
    }
    Err(PlanError::TierUnavailable { tier: wanted, missing })
}

fn check_network(grant: &Grant, host: &HostFacts, tier: SandboxTier) -> Result<(), PlanError> {
    let Network::Proxy(ports) = grant.network else { return Ok(()) };
    if ports.http == 0 || ports.socks == 0 {
        let what = "the proxy's port".to_owned();
        return Err(PlanError::ArgumentInvalid { what, reason: "it is zero" });
    }
    if ports.http == ports.socks {
        let what = "the proxy's port".to_owned();
        return Err(PlanError::ArgumentInvalid { what, reason: "HTTP and SOCKS need one each" });
    }
    if tier == SandboxTier::B && host.landlock < LANDLOCK_NETWORK {
        let reason = format!(
            "tier B needs Landlock version {LANDLOCK_NETWORK} to limit connections, the kernel has version {}",
            host.landlock
        );
        return Err(PlanError::NetworkUnavailable { reason });
    }
    Ok(())
}

fn isolated_room(grant: &Grant, host: &HostFacts, identity: GuestIdentity) -> (Vec<Step>, usize, Vec<Namespace>) {
    let namespaces =
        vec![Namespace::User, Namespace::Mount, Namespace::Pid, Namespace::Network, Namespace::Ipc, Namespace::Uts];
    let mut steps = vec![Step::FirstToGo, Step::DieWithParent];
    let mapping = match identity {
        GuestIdentity::Private => Mapping::Owner,
        GuestIdentity::Caller { .. } => {
            steps.extend([Step::MapCaller, Step::LimitInotify(room::INOTIFY)]);
            Mapping::None
        }
    };
    let (room, ahead) = room::room(grant, host, mapping);
    let ahead = steps.len() + ahead;
    steps.extend(room);
    (steps, ahead, namespaces)
}

/// Tier B has no root of its own. As root, the shared places are mounted over themselves with mapped owners, because the guest's private
/// id owns nothing on the host. As an ordinary user it stays who it is, where possible in a user namespace in which its processes are
/// counted apart from the user's others. Where the host can make process namespaces, the kernel ends the tree with its first process, and the guest gets a
/// `/proc` that matches its process ids and a private directory of limited size.
fn restricted_room(
    grant: &Grant,
    host: &HostFacts,
    identity: GuestIdentity,
    scratch: Option<&Path>,
) -> (Vec<Step>, usize, Vec<Namespace>) {
    let mut steps = vec![Step::FirstToGo];
    let mut namespaces = Vec::new();
    let private = identity == GuestIdentity::Private;
    let has_processes = own_processes(host);
    if has_processes {
        steps.push(Step::DieWithParent);
    }
    if !private && counted_apart(host) {
        namespaces.push(Namespace::User);
        steps.extend([Step::MapSelf, Step::LimitInotify(room::INOTIFY)]);
    }
    if private || has_processes {
        namespaces.push(Namespace::Mount);
        steps.push(Step::PrivateMounts);
    }
    if private {
        let mut shares: Vec<_> = grant.shares().collect();
        shares.sort_by(|(left, _), (right, _)| left.path.cmp(&right.path));
        for (slot, (place, access)) in shares.iter().enumerate() {
            let mapped = Mapping::Owner.of(place.owner);
            steps.push(Step::Source { slot, path: place.path.clone(), access: *access, mapped });
        }
        for (slot, (place, _)) in shares.iter().enumerate() {
            steps.push(Step::Cover { slot, path: place.path.clone() });
        }
    }
    if has_processes {
        namespaces.push(Namespace::Pid);
        let bytes = grant.limits.scratch_bytes;
        steps.extend(scratch.map(|path| Step::CoverScratch { path: path.to_owned(), bytes, mode: 0o700 }));
        steps.push(Step::CoverProc);
    }
    steps.extend(
        scratch.map(|path| Step::ScratchText { path: path.join(".gitconfig"), content: room::GIT_IDENTITY.to_owned() }),
    );
    steps.push(Step::Undumpable);
    (steps, 0, namespaces)
}

/// Whether tier B can have a process namespace with a `/proc` of its own, which takes what tier C is made of.
fn own_processes(host: &HostFacts) -> bool {
    host.user_namespace.works() && host.isolation.works()
}

/// Whether the kernel can count an ordinary user's guest in a user namespace of its own.
fn counted_apart(host: &HostFacts) -> bool {
    host.user_namespace.works()
}

fn guest(
    grant: &Grant,
    host: &HostFacts,
    invocation: &Invocation,
    tier: SandboxTier,
    identity: GuestIdentity,
    scratch: Option<&Path>,
) -> Vec<Step> {
    let mut steps = vec![Step::Session, Step::Stdio];
    if invocation.terminal.is_some() {
        steps.push(Step::ControllingTerminal);
    }
    steps.extend(limits(grant, host, tier, identity));
    if identity == GuestIdentity::Private {
        steps.push(Step::LeaveGroups);
        if tier == SandboxTier::C {
            steps.push(Step::EnterUserNamespace);
        }
    }
    // A plain user outside a user namespace has no capabilities and may not shrink what it could get; that it gets none is then up to `no_new_privileges`.
    if tier == SandboxTier::C || identity == GuestIdentity::Private || counted_apart(host) {
        steps.push(Step::BoundCapabilities);
    }
    if identity == GuestIdentity::Private {
        steps.push(Step::BecomeGuest);
    }
    steps.extend([Step::DropCapabilities, Step::DieWithParent, Step::NoNewPrivileges]);
    steps.push(Step::WorkingDirectory(invocation.working_directory.clone()));
    steps.push(Step::Landlock(landlock(grant, host, tier, scratch)));
    steps.push(Step::CloseDescriptors);
    steps.push(Step::Seccomp(filter_profile(grant, host, tier)));
    steps
}

fn filter_profile(grant: &Grant, host: &HostFacts, tier: SandboxTier) -> FilterProfile {
    let sockets = match (tier, grant.network) {
        (SandboxTier::C, _) => Sockets::Isolated,
        (_, Network::None) => Sockets::None,
        (_, Network::Proxy(_)) => Sockets::Tcp,
    };
    let memory_files = match (host.cgroups.limits_memory(), tier) {
        (false, SandboxTier::C) => MemoryFiles::Counted,
        (false, _) => MemoryFiles::None,
        (true, SandboxTier::C) => MemoryFiles::Any,
        (true, _) => MemoryFiles::NotExecutable,
    };
    // Root's guest is another user than the first process, which can then do nothing for it.
    let set_group_id = match (tier, host.privilege) {
        (SandboxTier::C, Privilege::Ordinary { .. }) => SetGroupId::Directories,
        _ => SetGroupId::Nothing,
    };
    FilterProfile { sockets, memory_files, set_group_id }
}

fn limits(grant: &Grant, host: &HostFacts, tier: SandboxTier, identity: GuestIdentity) -> Vec<Step> {
    let limits = &grant.limits;
    let seconds = limits.cpu.as_secs().saturating_add(u64::from(limits.cpu.subsec_nanos() > 0));
    let processes = u64::from(limits.processes);
    let mut all = vec![
        (Resource::Cpu, seconds),
        (Resource::FileSize, limits.file_bytes),
        (Resource::OpenFiles, u64::from(limits.open_files)),
        (Resource::CoreSize, 0),
        (Resource::LockedMemory, LOCKED_BYTES.min(limits.memory_bytes)),
        (Resource::MessageQueues, QUEUE_BYTES.min(limits.memory_bytes)),
    ];
    all.push(match (identity, tier) {
        (GuestIdentity::Caller { .. }, SandboxTier::B) if !counted_apart(host) => (Resource::MoreProcesses, processes),
        // The sandbox's first process has the guest's id in the guest's namespace.
        (GuestIdentity::Caller { .. }, _) => (Resource::Processes, processes.saturating_add(1)),
        (GuestIdentity::Private, _) => (Resource::Processes, processes),
    });
    all.into_iter().map(|(resource, value)| Step::Limit { resource, value }).collect()
}

fn landlock(grant: &Grant, host: &HostFacts, tier: SandboxTier, scratch: Option<&Path>) -> LandlockRules {
    let rule = |path: PathBuf, kind, right| PathRule { path, kind, right };
    let directory = |path: &str, right| rule(PathBuf::from(path), PlaceKind::Directory, right);
    let mut paths = Vec::new();
    if tier == SandboxTier::C {
        // The root holds nothing but what was put there.
        paths.push(directory("/", Right::ReadExecute));
        paths.extend(room::scratches().map(|(path, _)| directory(path, Right::Change)));
        paths.push(directory("/dev", Right::Device));
    } else {
        for system in &host.system {
            match system.kind {
                SystemPathKind::Directory => {
                    paths.push(rule(system.path.clone(), PlaceKind::Directory, Right::ReadExecute));
                }
                SystemPathKind::File => paths.push(rule(system.path.clone(), PlaceKind::File, Right::Read)),
                // Rules follow files, not names: the target is in the list itself or stays closed.
                SystemPathKind::Link(_) => {}
            }
        }
        paths.push(directory("/proc", Right::Read));
        paths.extend(scratch.map(|path| rule(path.to_owned(), PlaceKind::Directory, Right::Change)));
        paths.extend(room::devices().map(|path| rule(path, PlaceKind::File, Right::Device)));
    }
    paths.extend(grant.shares().map(|(place, access)| {
        let right = match access {
            Access::ReadOnly => Right::ReadExecute,
            Access::ReadWrite => Right::Change,
        };
        rule(place.path.clone(), place.kind, right)
    }));
    let tcp = match (tier, grant.network) {
        (SandboxTier::C, _) => TcpRule::Unhandled,
        _ if host.landlock < LANDLOCK_NETWORK => TcpRule::Unhandled,
        (_, Network::None) => TcpRule::Connect(Vec::new()),
        (_, Network::Proxy(ProxyPorts { http, socks })) => TcpRule::Connect(vec![http, socks]),
    };
    let scopes = if host.landlock >= LANDLOCK_SCOPES { Scopes::Inside } else { Scopes::Unavailable };
    LandlockRules { version: host.landlock, paths, tcp, scopes }
}

fn program(grant: &Grant, invocation: &Invocation) -> Program {
    let name = invocation.program.clone();
    let candidates = if name.contains('/') {
        vec![invocation.working_directory.join(&name)]
    } else {
        grant.program_path.iter().map(|directory| directory.join(&name)).collect()
    };
    Program::File { name, candidates }
}

fn environment(grant: &Grant, invocation: &Invocation, scratch: Option<&Path>) -> Vec<(String, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let path = grant.program_path.iter().map(|directory| text(directory)).collect::<Vec<_>>().join(":");
    let home = scratch.map_or_else(|| GUEST_HOME.to_owned(), text);
    let temporary = scratch.map_or_else(|| "/tmp".to_owned(), text);
    let terminal = if invocation.terminal.is_some() { "xterm-256color" } else { "dumb" };
    let mut all = vec![
        ("PATH".to_owned(), path),
        ("HOME".to_owned(), home),
        ("TMPDIR".to_owned(), temporary),
        ("USER".to_owned(), "agent".to_owned()),
        ("LOGNAME".to_owned(), "agent".to_owned()),
        ("SHELL".to_owned(), "/bin/sh".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("TERM".to_owned(), terminal.to_owned()),
        // The leak detector of AddressSanitizer traces its own process, which no sandbox permits, and would fail every program at its end.
        ("ASAN_OPTIONS".to_owned(), "detect_leaks=0".to_owned()),
    ];
    if scratch.is_none() {
        // A git that was built elsewhere than for `/usr` looks in another place.
        all.push(("GIT_CONFIG_SYSTEM".to_owned(), room::GIT_CONFIG.to_owned()));
    }
    if let Network::Proxy(ports) = grant.network {
        let http = format!("http://127.0.0.1:{}", ports.http);
        // `socks5h`: names are resolved by the proxy, there is no resolver inside.
        let socks = format!("socks5h://127.0.0.1:{}", ports.socks);
        let both = [("HTTP_PROXY", &http), ("HTTPS_PROXY", &http), ("ALL_PROXY", &socks), ("NO_PROXY", &String::new())];
        for (name, value) in both {
            all.push((name.to_owned(), value.clone()));
            all.push((name.to_lowercase(), value.clone()));
        }
    }
    for (name, value) in &invocation.environment {
        all.retain(|(known, _)| known != name);
        all.push((name.clone(), value.clone()));
    }
    all
}
