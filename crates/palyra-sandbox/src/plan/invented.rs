//! Hosts and grants that exist only in tests.

use std::path::PathBuf;

use palyra_common::SandboxTier;

use crate::grant::{Access, Grant, Invocation, Owner, Place, PlaceKind, Share, TerminalSize};
use crate::host::{Ability, Cgroups, HostFacts, Privilege, SystemPath, SystemPathKind};

/// A current kernel, with a few system paths, as root or as user 1001.
pub(crate) fn host(privilege: Privilege) -> HostFacts {
    let path = |path: &str, kind| SystemPath { path: PathBuf::from(path), kind };
    HostFacts {
        kernel: "6.18.0".to_owned(),
        machine: "x86_64".to_owned(),
        privilege,
        user_namespace: Ability::Works,
        isolation: Ability::Works,
        mapped_mounts: if privilege == Privilege::Root {
            Ability::Works
        } else {
            Ability::Fails("not root".to_owned())
        },
        landlock: 7,
        seccomp: Ability::Works,
        cgroups: match privilege {
            Privilege::Root => {
                Cgroups::V1 { memory: Some("/sys/fs/cgroup/memory".into()), pids: Some("/sys/fs/cgroup/pids".into()) }
            }
            Privilege::Ordinary { .. } => Cgroups::None("not delegated".to_owned()),
        },
        system: vec![
            path("/usr", SystemPathKind::Directory),
            path("/bin", SystemPathKind::Link("usr/bin".into())),
            path("/etc/ld.so.cache", SystemPathKind::File),
            path("/etc/passwd", SystemPathKind::File),
        ],
        notes: Vec::new(),
    }
}

pub(crate) const USER: Privilege = Privilege::Ordinary { uid: 1001, gid: 1002 };

/// A workspace, a file to read and a directory to write besides.
pub(crate) fn grant(tier: SandboxTier) -> Grant {
    let place = |path: &str, kind, uid| Place { path: PathBuf::from(path), kind, owner: Owner { uid, gid: uid } };
    let workspace = Share { place: place("/work/project", PlaceKind::Directory, 1001), access: Access::ReadWrite };
    let mut grant = Grant::new(tier, workspace);
    grant.read_only.push(place("/opt/tool", PlaceKind::File, 0));
    grant.writable.push(place("/work/project/cache", PlaceKind::Directory, 1003));
    grant.program_path = vec!["/usr/bin".into()];
    grant.scratch_root = "/state/scratch".into();
    grant.environment = vec!["CI".to_owned()];
    grant
}

pub(crate) fn invocation() -> Invocation {
    let mut invocation = Invocation::new("call-1", "cargo", "/work/project/sub").arguments(["test", "--quiet"]);
    invocation.environment = vec![("CI".to_owned(), "1".to_owned())];
    invocation
}

pub(crate) fn with_terminal(mut invocation: Invocation) -> Invocation {
    invocation.terminal = Some(TerminalSize { rows: 24, columns: 80 });
    invocation
}
