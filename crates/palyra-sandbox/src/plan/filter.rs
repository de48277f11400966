//! Which system calls a guest may make, in a form that people can read.
//!
//! Four lists make a filter. The first names dangerous calls, wholly or with some arguments, each with its reason: they fail with "not
//! permitted". The second names what programs can do without: it fails with "not supported". The third names what the sandbox's first process does for the
//! caller. The fourth names everything a program needs: any other call fails with "no such call", which libraries know how to live
//! with (`clone3` is left out on purpose: its flags lie in memory where no filter can see them, and the C library then uses `clone`).
//!
//! INVARIANT: a filter depends on its profile alone, so the launcher compiles each profile once.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::calls::{ALLOWED, ALLOWED_IN_PART, ALLOWED_IPC, ALLOWED_LEGACY, DENIED};

/// Which of the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilterProfile {
    /// Which sockets there are.
    pub sockets: Sockets,
    /// Which memory files there are.
    pub memory_files: MemoryFiles,
    /// What may get the set-group-id bit.
    pub set_group_id: SetGroupId,
}

/// Which sockets a guest may make; also decides between tier B and tier C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sockets {
    /// Tier C: sockets are harmless in a network namespace of one's own.
    Isolated,
    /// Tier C, where a shared directory may hold sockets of the host: no Unix sockets but pairs.
    IsolatedWithoutUnix,
    /// Tier B without network: no sockets.
    None,
    /// Tier B with network: TCP sockets only, their ports checked by Landlock.
    Tcp,
}

/// Which files in memory (`memfd_create`) a guest may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryFiles {
    /// Any. Tier C can execute what it writes to `/tmp` as well.
    Any,
    /// Any, made and counted by the sandbox's first process, because no control group limits memory: one that waits in a socket's queue belongs to no process
    /// and is seen by no sampling of processes.
    Counted,
    /// Such that can never be executed: in tier B code always comes from a file that Landlock has seen.
    NotExecutable,
    /// None, because no control group limits memory and nobody else can count them.
    None,
}

/// What a guest may give the set-group-id bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetGroupId {
    /// Directories, in which it means that files inherit the group. The filter sees a mode but not what it is for, so the sandbox's first process looks and
    /// does it.
    Directories,
    /// Nothing.
    Nothing,
}

/// A test of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Equal to the value.
    Equals(u32),
    /// Different from the value.
    Differs(u32),
    /// Equal to the value in the bits of the mask.
    Masked {
        /// Bits that count.
        mask: u32,
        /// Their value.
        value: u32,
    },
}

/// A test of the argument with this index, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Which argument.
    pub argument: u8,
    /// What must hold of its low 32 bits.
    pub test: Test,
}

/// A call, and the conditions (all of which must hold) under which the rule applies; none means always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRule {
    /// Name of the call.
    pub call: &'static str,
    /// When the rule applies.
    pub when: Vec<Condition>,
}

/// The lists of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Fail with "not permitted".
    pub denied: Vec<CallRule>,
    /// Fail with "not supported", which libraries take as a reason to do it in another way.
    pub unsupported: Vec<CallRule>,
    /// Made by the sandbox's first process on behalf of the caller, unless denied.
    pub supervised: Vec<CallRule>,
    /// Go through, unless denied; everything else fails with "no such call".
    pub allowed: Vec<CallRule>,
}

/// Flags of `clone` that make namespaces. `CLONE_NEWTIME` is absent: it shares a bit with the exit signal and works only in `unshare`.
const NAMESPACE_FLAGS: [u32; 7] =
    [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];
/// Terminal controls that type into another's terminal (`TIOCSTI`, `TIOCLINUX`) or rewire it (`TIOCCONS`, `TIOCSETD`).
const TERMINAL_CONTROLS: [u32; 4] = [0x5412, 0x541C, 0x541D, 0x5423];
/// Personalities that programs ask for: the ordinary one, 32 bits, no randomised addresses, and the query.
const PERSONALITIES: [u32; 6] = [0, 8, 0x0002_0000, 0x0002_0008, 0x0004_0000, 0xffff_ffff];
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const SOCK_STREAM: u32 = 1;
const SOCK_RAW: u32 = 3;
const TYPE_MASK: u32 = 0xf;
const IPPROTO_TCP: u32 = 6;
/// Sends data while connecting, past Landlock's check of `connect`.
const MSG_FASTOPEN: u32 = 0x2000_0000;
/// A memory file that can never be executed.
const MFD_NOEXEC_SEAL: u32 = 0x8;
/// A file with this bit runs with its group's rights, which are the workspace owner's on the host, for whoever executes it there.
const SET_GROUP_ID: u32 = 0o2000;
/// The same with its owner's or group's rights.
const BORROWED_RIGHTS: [u32; 2] = [0o4000, SET_GROUP_ID];
/// Calls that change the mode of something that exists, and which argument the mode is.
const MODE_CALLS: [(&str, u8); 4] = [("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2)];
/// Flags with which opening makes a file, so that the mode counts.
const MAKING_FLAGS: [u32; 2] = [0o100, 0o2000_0000];
/// `execveat` on a descriptor alone, which would execute what has no path.
const AT_EMPTY_PATH: u32 = 0x1000;

fn rule(call: &'static str, when: impl IntoIterator<Item = (u8, Test)>) -> CallRule {
    CallRule { call, when: when.into_iter().map(|(argument, test)| Condition { argument, test }).collect() }
}

fn bits(value: u32) -> Test {
    Test::Masked { mask: value, value }
}

/// Frees blocks and allocates none (`FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`).
const PUNCH_HOLE: u32 = 3;
/// `prctl` requests that hide a process from its own user, and with it what it uses.
const PR_SET_DUMPABLE: u32 = 4;

impl FilterProfile {
    /// Every profile that a plan can name.
    pub fn all() -> impl Iterator<Item = Self> {
        let kinds = [
            (MemoryFiles::Any, SetGroupId::Directories),
            (MemoryFiles::Any, SetGroupId::Nothing),
            (MemoryFiles::Counted, SetGroupId::Directories),
            (MemoryFiles::Counted, SetGroupId::Nothing),
            (MemoryFiles::None, SetGroupId::Nothing),
        ];
        let isolated = [Sockets::Isolated, Sockets::IsolatedWithoutUnix].into_iter().flat_map(move |sockets| {
            kinds.map(|(memory_files, set_group_id)| Self { sockets, memory_files, set_group_id })
        });
        let restricted = [Sockets::None, Sockets::Tcp].into_iter().flat_map(|sockets| {
            [MemoryFiles::NotExecutable, MemoryFiles::None].map(|memory_files| Self {
                sockets,
                memory_files,
                set_group_id: SetGroupId::Nothing,
            })
        });
        isolated.chain(restricted)
    }

    /// Whether the sandbox's first process makes some calls for the guest.
    #[must_use]
    pub fn is_supervised(self) -> bool {
        self.memory_files == MemoryFiles::Counted || self.set_group_id == SetGroupId::Directories
    }

    /// The profile to fall back to where nobody can make calls for the guest: what would have been supervised is refused.
    #[must_use]
    pub fn unsupervised(self) -> Self {
        let memory_files = match self.memory_files {
            MemoryFiles::Counted => MemoryFiles::None,
            kept @ (MemoryFiles::Any | MemoryFiles::NotExecutable | MemoryFiles::None) => kept,
        };
        Self { memory_files, set_group_id: SetGroupId::Nothing, ..self }
    }

    fn is_isolated(self) -> bool {
        matches!(self.sockets, Sockets::Isolated | Sockets::IsolatedWithoutUnix)
    }

    /// The lists.
    #[must_use]
    pub fn filter(self) -> Filter {
        let mut denied: Vec<CallRule> = DENIED.iter().map(|call| rule(call, [])).collect();
        denied.extend(NAMESPACE_FLAGS.map(|flag| rule("clone", [(0, bits(flag))])));
        denied.extend(TERMINAL_CONTROLS.map(|request| rule("ioctl", [(1, Test::Equals(request))])));
        denied.push(rule("personality", PERSONALITIES.map(|known| (0, Test::Differs(known)))));
        if matches!(self.memory_files, MemoryFiles::NotExecutable | MemoryFiles::None) {
            denied.push(rule("execveat", [(4, bits(AT_EMPTY_PATH))]));
        }
        if self.memory_files == MemoryFiles::NotExecutable {
            denied.push(rule("memfd_create", [(1, Test::Masked { mask: MFD_NOEXEC_SEAL, value: 0 })]));
        }
        borrowed_rights(&mut denied, self.set_group_id);
        denied.push(rule("socketpair", [(0, Test::Differs(AF_UNIX))]));
        match self.sockets {
            Sockets::Isolated => isolated_sockets(&mut denied),
            Sockets::IsolatedWithoutUnix => {
                isolated_sockets(&mut denied);
                denied.push(rule("socket", [(0, Test::Equals(AF_UNIX))]));
            }
            Sockets::None => {
                denied.push(rule("socket", []));
                denied.push(rule("listen", []));
            }
            Sockets::Tcp => tcp_sockets(&mut denied),
        }
        let queues = if self.is_isolated() { ALLOWED_IPC } else { &[] };
        let mut allowed = [ALLOWED, ALLOWED_LEGACY, ALLOWED_IN_PART, queues].concat();
        if self.memory_files == MemoryFiles::None {
            allowed.retain(|call| *call != "memfd_create");
        }
        if !self.is_isolated() {
            // Without a user namespace the supervisor could not read what such a process uses.
            denied.push(rule("prctl", [(0, Test::Equals(PR_SET_DUMPABLE))]));
            denied.extend(ALLOWED_IPC.iter().map(|call| rule(call, [])));
            // Other processes of the same user are in reach; a limit would starve the daemon.
            denied.push(rule("prlimit64", [(0, Test::Differs(0))]));
        }
        // Blocks that are allocated ahead count as written by nobody; libraries write zeros instead.
        let unsupported = vec![rule("fallocate", [(1, Test::Differs(PUNCH_HOLE))])];
        let mut supervised = Vec::new();
        if self.memory_files == MemoryFiles::Counted {
            supervised.push(rule("memfd_create", []));
        }
        if self.set_group_id == SetGroupId::Directories {
            supervised.extend(MODE_CALLS.map(|(call, argument)| rule(call, [(argument, bits(SET_GROUP_ID))])));
        }
        Filter { denied, unsupported, supervised, allowed: allowed.into_iter().map(|call| rule(call, [])).collect() }
    }

    /// What the profile does about sockets, in a few words.
    #[must_use]
    pub fn sockets(self) -> &'static str {
        match self.sockets {
            Sockets::Isolated => "unix, inet, inet6 and route netlink sockets, no raw ones",
            Sockets::IsolatedWithoutUnix => "inet, inet6 and route netlink sockets, no raw ones",
            Sockets::None => "no sockets",
            Sockets::Tcp => "TCP sockets only, no listening",
        }
    }
}

/// `openat2` is not permitted at all: its mode lies in memory.
fn borrowed_rights(denied: &mut Vec<CallRule>, set_group_id: SetGroupId) {
    for bit in BORROWED_RIGHTS {
        if bit != SET_GROUP_ID || set_group_id == SetGroupId::Nothing {
            denied.extend(MODE_CALLS.map(|(call, argument)| rule(call, [(argument, bits(bit))])));
        }
        let making = [("creat", 1), ("mknod", 1), ("mknodat", 2)];
        denied.extend(making.map(|(call, argument)| rule(call, [(argument, bits(bit))])));
        for making in MAKING_FLAGS {
            denied.push(rule("open", [(1, bits(making)), (2, bits(bit))]));
            denied.push(rule("openat", [(2, bits(making)), (3, bits(bit))]));
        }
    }
}

/// Vsock, Bluetooth and the like are not confined by a network namespace.
fn isolated_sockets(denied: &mut Vec<CallRule>) {
    denied.push(rule("socket", [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK].map(|family| (0, Test::Differs(family)))));
    denied.push(rule("socket", [(0, Test::Equals(AF_NETLINK)), (2, Test::Differs(0))]));
    for family in [AF_INET, AF_INET6] {
        let raw = Test::Masked { mask: TYPE_MASK, value: SOCK_RAW };
        denied.push(rule("socket", [(0, Test::Equals(family)), (1, raw)]));
    }
}

/// Landlock checks TCP alone: every other protocol, MPTCP included, would walk past it.
fn tcp_sockets(denied: &mut Vec<CallRule>) {
    denied.push(rule("socket", [AF_INET, AF_INET6].map(|family| (0, Test::Differs(family)))));
    for kind in (0..=TYPE_MASK).filter(|kind| *kind != SOCK_STREAM) {
        denied.push(rule("socket", [(1, Test::Masked { mask: TYPE_MASK, value: kind })]));
    }
    denied.push(rule("socket", [(2, Test::Differs(0)), (2, Test::Differs(IPPROTO_TCP))]));
    denied.push(rule("listen", []));
    denied.push(rule("sendto", [(3, bits(MSG_FASTOPEN))]));
    denied.push(rule("sendmsg", [(2, bits(MSG_FASTOPEN))]));
    denied.push(rule("sendmmsg", [(3, bits(MSG_FASTOPEN))]));
}

impl fmt::Display for CallRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.call)?;
        for (at, condition) in self.when.iter().enumerate() {
            f.write_str(if at == 0 { " if " } else { " and " })?;
            match condition.test {
                Test::Equals(value) => write!(f, "arg{} == {value:#x}", condition.argument)?,
                Test::Differs(value) => write!(f, "arg{} != {value:#x}", condition.argument)?,
                Test::Masked { mask, value } => write!(f, "arg{} & {mask:#x} == {value:#x}", condition.argument)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Filter {
    /// Conditional denials one per line, plain names as one list each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |rules: &[CallRule]| {
            let names: Vec<_> = rules.iter().filter(|rule| rule.when.is_empty()).map(|rule| rule.call).collect();
            names.join(" ")
        };
        writeln!(f, "not permitted: {}", plain(&self.denied))?;
        for rule in self.denied.iter().filter(|rule| !rule.when.is_empty()) {
            writeln!(f, "not permitted: {rule}")?;
        }
        for rule in &self.unsupported {
            writeln!(f, "not supported: {rule}")?;
        }
        for rule in &self.supervised {
            writeln!(f, "made by the first process: {rule}")?;
        }
        writeln!(f, "permitted: {}", plain(&self.allowed))?;
        f.write_str("no such call: everything else")
    }
}
