//! How a plan looks on paper: one line per act, in the order in which they happen.

use std::fmt;

use super::step::{GuestIdentity, LandlockRules, PathRule, Resource, Right, Scopes, Step, TcpRule};
use super::{Plan, Program};
use crate::host::Cgroups;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tier {}", self.tier.as_str())?;
        if !self.fell_back.is_empty() {
            writeln!(f, "instead of tier C, because {}", self.fell_back.join("; "))?;
        }
        match self.identity {
            GuestIdentity::Private => writeln!(f, "identity: a private id, outside every range in use")?,
            GuestIdentity::Caller { uid, gid } => writeln!(f, "identity: the caller, {uid}:{gid}")?,
        }
        let namespaces: Vec<_> = self.namespaces.iter().map(|one| format!("{one:?}").to_lowercase()).collect();
        writeln!(f, "namespaces: {}", if namespaces.is_empty() { "none".to_owned() } else { namespaces.join(" ") })?;
        writeln!(f, "control group: {}", Group(&self.cgroups))?;
        let limits = &self.limits;
        writeln!(
            f,
            "watched: wall {:?}, cpu {:?}, memory {}, processes {}, written {}",
            limits.wall, limits.cpu, limits.memory_bytes, limits.processes, limits.written_bytes
        )?;
        if let Some(scratch) = &self.scratch {
            writeln!(f, "scratch directory: {}", scratch.display())?;
        }
        for (at, step) in self.room.iter().enumerate() {
            if at == 0 && self.ahead > 0 {
                writeln!(f, "rootfs, may be prepared in advance:")?;
            }
            if at == self.ahead {
                writeln!(f, "room:")?;
            }
            writeln!(f, "  {step}")?;
        }
        writeln!(f, "guest:")?;
        self.guest.iter().try_for_each(|step| writeln!(f, "  {step}"))?;
        writeln!(f, "environment:")?;
        self.environment.iter().try_for_each(|(name, value)| writeln!(f, "  {name}={value}"))?;
        match &self.program {
            Program::Checks => write!(f, "execute: the launcher's own checks"),
            Program::File { name, candidates } => {
                let places: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
                write!(f, "execute: {name:?} {:?} from the first of {}", self.arguments, places.join(" "))
            }
        }
    }
}

struct Group<'a>(&'a Cgroups);

impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Cgroups::None(reason) => write!(f, "none ({reason})"),
            Cgroups::V2 { parent, memory, pids } => {
                write!(f, "version 2 in {} (memory: {memory}, processes: {pids})", parent.display())
            }
            Cgroups::V1 { memory, pids } => {
                let show = |path: &Option<std::path::PathBuf>| {
                    path.as_ref().map_or_else(|| "no".to_owned(), |path| path.display().to_string())
                };
                write!(f, "version 1 (memory: {}, processes: {})", show(memory), show(pids))
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::LimitInotify(limits) => write!(f, " {} instances, {} watches", limits.instances, limits.watches),
            Self::Hostname(name) => write!(f, " {name}"),
            Self::Listen(port) => write!(f, " 127.0.0.1:{port}"),
            Self::Source { slot, path, access, mapped } => {
                write!(f, " {slot} {} {access} nosuid nodev", path.display())?;
                match mapped {
                    Some(owner) => write!(f, " ({}:{} is the guest)", owner.uid, owner.gid),
                    None => Ok(()),
                }
            }
            Self::Device { slot, path } | Self::Attach { slot, path, .. } | Self::Cover { slot, path } => {
                write!(f, " {slot} {}", path.display())
            }
            Self::Directory(path) | Self::WorkingDirectory(path) => write!(f, " {}", path.display()),
            Self::Text { path, content } | Self::ScratchText { path, content } => {
                write!(f, " {} ({} bytes)", path.display(), content.len())
            }
            Self::Link { path, target } => write!(f, " {} -> {}", path.display(), target.display()),
            Self::Scratch { path, bytes, mode } | Self::CoverScratch { path, bytes, mode } => {
                write!(f, " {} {bytes} bytes mode {mode:o}", path.display())
            }
            Self::HideSockets { writable, read_only } => {
                writable.iter().chain(read_only).try_for_each(|path| write!(f, " {}", path.display()))
            }
            Self::Limit { resource, value } => write!(f, " {resource} {value}"),
            Self::Landlock(rules) => write!(f, "{rules}"),
            Self::Seccomp(profile) => {
                write!(f, " {}", profile.sockets())?;
                profile.filter().to_string().lines().try_for_each(|line| write!(f, "\n    {line}"))
            }
            Self::FirstToGo
            | Self::MapCaller
            | Self::MapSelf
            | Self::LoopbackUp
            | Self::PrivateMounts
            | Self::Root
            | Self::Terminals
            | Self::Proc
            | Self::CoverProc
            | Self::Pivot
            | Self::DieWithParent
            | Self::Session
            | Self::ControllingTerminal
            | Self::Stdio
            | Self::LeaveGroups
            | Self::EnterUserNamespace
            | Self::BoundCapabilities
            | Self::BecomeGuest
            | Self::DropCapabilities
            | Self::NoNewPrivileges
            | Self::Undumpable
            | Self::CloseDescriptors => Ok(()),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu seconds",
            Self::FileSize => "file bytes",
            Self::OpenFiles => "open files",
            Self::Processes => "processes",
            Self::MoreProcesses => "processes above the user's own",
            Self::CoreSize => "core bytes",
            Self::LockedMemory => "locked bytes",
            Self::MessageQueues => "queue bytes",
        })
    }
}

impl fmt::Display for LandlockRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " version {}", self.version)?;
        for PathRule { path, right, .. } in &self.paths {
            let right = match right {
                Right::ReadExecute => "read, execute",
                Right::Read => "read",
                Right::Change => "read, execute, change",
                Right::Device => "read, write, control",
            };
            write!(f, "\n    {}: {right}", path.display())?;
        }
        match &self.tcp {
            TcpRule::Unhandled => write!(f, "\n    TCP: left to the namespace or the filter")?,
            TcpRule::Connect(ports) if ports.is_empty() => write!(f, "\n    TCP: nothing")?,
            TcpRule::Connect(ports) => write!(f, "\n    TCP: connect to ports {ports:?}")?,
        }
        match self.scopes {
            Scopes::Inside => write!(f, "\n    signals and abstract sockets: inside only"),
            Scopes::Unavailable => write!(f, "\n    signals and abstract sockets: not confined by this kernel"),
        }
    }
}
