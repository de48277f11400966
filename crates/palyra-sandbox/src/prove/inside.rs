//! The side of the battery that runs inside a sandbox, after its last restriction.
//!
//! Each check attempts one thing. An attempt that succeeds is a hole; the error that stopped it is the evidence that it was denied.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr as InetAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Check;
use crate::sys;

/// What to try to reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Whether this is tier C.
    pub(crate) isolated: bool,
    /// Whether the kernel keeps signals and abstract sockets inside.
    pub(crate) scopes: bool,
    /// A file outside the workspace that every user may read.
    pub(crate) secret: PathBuf,
    /// A directory outside the workspace.
    pub(crate) outside: PathBuf,
    /// A TCP service of the host.
    pub(crate) port: u16,
    /// An abstract socket of the host.
    pub(crate) abstract_name: String,
    /// A process of the host.
    pub(crate) outsider: u32,
}

/// Runs every check and prints the outcomes; the exit code is 0 if they could be made.
pub(crate) fn run(arguments: &[String]) -> i32 {
    let Some(Ok(target)) = arguments.first().map(|text| serde_json::from_str::<Target>(text)) else { return 2 };
    let mut checks = Vec::new();
    files(&target, &mut checks);
    network(&target, &mut checks);
    processes(&target, &mut checks);
    calls(&mut checks);
    if !target.isolated {
        // Tier C may execute what it writes to `/tmp`, so a file in memory gives it nothing new.
        let name = c"file".as_ptr() as usize;
        call(&mut checks, "executable_memory_file", "memfd_create", [name, 0, 0, 0, 0, 0]);
    }
    state(&mut checks);
    if target.isolated {
        isolation(&mut checks);
    }
    let Ok(text) = serde_json::to_string(&checks) else { return 3 };
    i32::from(std::io::stdout().write_all(text.as_bytes()).is_err())
}

/// An attempt that must fail.
fn denied<T>(checks: &mut Vec<Check>, name: &str, result: Result<T, impl std::fmt::Display>) {
    let (held, detail) = match result {
        Ok(_) => (false, "it succeeded".to_owned()),
        Err(error) => (true, error.to_string()),
    };
    checks.push(Check { name: name.to_owned(), held, detail });
}

/// A fact that must be so.
fn is_so(checks: &mut Vec<Check>, name: &str, held: bool, detail: impl Into<String>) {
    checks.push(Check { name: name.to_owned(), held, detail: detail.into() });
}

fn files(target: &Target, checks: &mut Vec<Check>) {
    denied(checks, "read_outside", fs::read(&target.secret));
    let through_root = PathBuf::from(format!("/proc/self/root{}", target.secret.display()));
    denied(checks, "read_through_proc_root", fs::read(through_root));
    denied(checks, "list_outside", fs::read_dir(&target.outside));
    denied(checks, "write_outside", fs::write(target.outside.join("written"), "x"));
    denied(checks, "change_outside", OpenOptions::new().append(true).open(&target.secret));
    denied(checks, "remove_outside", fs::remove_file(&target.secret));
    denied(checks, "write_system", fs::write("/usr/palyra-prove", "x"));
    denied(checks, "read_password_hashes", fs::read("/etc/shadow"));
    denied(checks, "read_kernel_memory", fs::read("/proc/kcore"));
    denied(checks, "write_kernel_setting", OpenOptions::new().write(true).open("/proc/sys/kernel/hostname"));
    denied(checks, "write_core_pattern", OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern"));
    denied(checks, "press_system_key", OpenOptions::new().write(true).open("/proc/sysrq-trigger"));
    let link = std::path::Path::new("escape");
    let _ = std::os::unix::fs::symlink(&target.secret, link);
    denied(checks, "read_through_link", fs::read(link));
    let _ = fs::remove_file(link);
    denied(checks, "hard_link_outside", fs::hard_link(&target.secret, "stolen"));
}

fn network(target: &Target, checks: &mut Vec<Check>) {
    let brief = Duration::from_millis(500);
    let service = InetAddr::from((Ipv4Addr::LOCALHOST, target.port));
    denied(checks, "connect_to_host_service", TcpStream::connect_timeout(&service, brief));
    let metadata = InetAddr::from(([169, 254, 169, 254], 80));
    denied(checks, "connect_to_metadata_address", TcpStream::connect_timeout(&metadata, brief));
    let resolver = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| socket.send_to(b"\0\0\x01\0\0\x01\0\0\0\0\0\0", ("192.0.2.53", 53)));
    denied(checks, "ask_a_name_server", resolver);
    if target.isolated || target.scopes {
        let address = SocketAddr::from_abstract_name(&target.abstract_name);
        denied(checks, "connect_to_abstract_socket", address.and_then(|address| UnixStream::connect_addr(&address)));
    }
    for (name, family, kind) in
        [("raw_socket", 2, 3), ("packet_socket", 17, 3), ("vsock_socket", 40, 1), ("kernel_crypto_socket", 38, 5)]
    {
        call(checks, name, "socket", [family, kind, 0, 0, 0, 0]);
    }
}

fn processes(target: &Target, checks: &mut Vec<Check>) {
    let outsider = usize::try_from(target.outsider).unwrap_or(1);
    const ATTACH: usize = 16;
    call(checks, "trace_outsider", "ptrace", [ATTACH, outsider, 0, 0, 0, 0]);
    call(checks, "read_outsider_memory", "process_vm_readv", [outsider, 0, 0, 0, 0, 0]);
    if target.isolated || target.scopes {
        call(checks, "signal_outsider", "kill", [outsider, 0, 0, 0, 0, 0]);
    }
    denied(checks, "read_outsider_environment", fs::read(format!("/proc/{}/environ", target.outsider)));
    denied(checks, "look_through_outsider_root", fs::read_dir(format!("/proc/{}/root/", target.outsider)));
    denied(checks, "read_outsider_descriptors", fs::read_link(format!("/proc/{}/fd/0", target.outsider)));
}

/// Calls that must not be answered at all.
fn calls(checks: &mut Vec<Check>) {
    const NEW_USER: usize = 0x1000_0000;
    let buffer = [0_u8; 256];
    let pointer = buffer.as_ptr() as usize;
    let path = c"/".as_ptr() as usize;
    let forbidden: [(&str, &str, [usize; 6]); 18] = [
        ("new_user_namespace", "unshare", [NEW_USER, 0, 0, 0, 0, 0]),
        ("new_mount_namespace", "unshare", [0x0002_0000, 0, 0, 0, 0, 0]),
        ("clone_into_namespace", "clone", [NEW_USER | 17, 0, 0, 0, 0, 0]),
        ("mount", "mount", [path, path, 0, 4096, 0, 0]),
        ("unmount", "umount2", [path, 2, 0, 0, 0, 0]),
        ("open_tree", "open_tree", [usize::MAX - 99, path, 1, 0, 0, 0]),
        ("change_root", "chroot", [path, 0, 0, 0, 0, 0]),
        ("pivot_root", "pivot_root", [path, path, 0, 0, 0, 0]),
        ("io_uring", "io_uring_setup", [1, pointer, 0, 0, 0, 0]),
        ("bpf", "bpf", [0, pointer, 48, 0, 0, 0]),
        ("kernel_keys", "keyctl", [0, usize::MAX - 2, 0, 0, 0, 0]),
        ("add_key", "add_key", [path, path, 0, 0, usize::MAX - 2, 0]),
        ("performance_events", "perf_event_open", [pointer, 0, usize::MAX, usize::MAX, 0, 0]),
        ("user_fault_handling", "userfaultfd", [1, 0, 0, 0, 0, 0]),
        ("open_by_handle", "open_by_handle_at", [usize::MAX - 99, pointer, 0, 0, 0, 0]),
        ("set_clock", "clock_settime", [0, pointer, 0, 0, 0, 0]),
        ("set_host_name", "sethostname", [path, 1, 0, 0, 0, 0]),
        ("load_module", "init_module", [pointer, 0, path, 0, 0, 0]),
    ];
    for (name, call_name, arguments) in forbidden {
        call(checks, name, call_name, arguments);
    }
}

/// A call that must fail because it is not permitted or does not exist, and not for a reason of its own.
fn call(checks: &mut Vec<Check>, name: &str, call: &str, arguments: [usize; 6]) {
    const NOT_PERMITTED: i32 = 1;
    const NO_SUCH_PROCESS: i32 = 3;
    const NO_SUCH_CALL: i32 = 38;
    let Some(number) = sys::number(call) else {
        is_so(checks, name, true, "this machine has no such call");
        return;
    };
    match sys::attempt(number, arguments) {
        // The other side of a fork that should not have been possible.
        Ok(0) if call == "clone" => sys::exit(0),
        Ok(_) => is_so(checks, name, false, "it succeeded"),
        Err(error @ (NOT_PERMITTED | NO_SUCH_CALL)) => is_so(checks, name, true, format!("error {error}")),
        Err(NO_SUCH_PROCESS) if call == "kill" => is_so(checks, name, true, "no such process here"),
        Err(error) => is_so(checks, name, false, format!("it failed only with error {error}")),
    }
}

/// What the process is and holds.
fn state(checks: &mut Vec<Check>) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("unknown", str::trim).to_owned();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        let value = field(set);
        is_so(
            checks,
            &format!("no_{}", set.trim_end_matches(':').to_lowercase()),
            value.bytes().all(|b| b == b'0'),
            value,
        );
    }
    let value = field("NoNewPrivs:");
    is_so(checks, "no_new_privileges", value == "1", value);
    let value = field("Seccomp:");
    is_so(checks, "filter_in_force", value == "2", value);
    // The listing itself holds one descriptor.
    let open = fs::read_dir("/proc/self/fd").map(Iterator::count).unwrap_or(usize::MAX);
    is_so(checks, "no_inherited_descriptors", open <= 4, format!("{open} open"));
    let variables = std::env::vars_os().count();
    is_so(checks, "no_inherited_environment", variables == 0, format!("{variables} variables"));
}

/// What only tier C promises.
fn isolation(checks: &mut Vec<Check>) {
    let processes = fs::read_dir("/proc")
        .map(|entries| {
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()).count()
        })
        .unwrap_or(usize::MAX);
    is_so(checks, "own_processes_only", processes == 2, format!("{processes} processes visible"));
    let interfaces = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let others = interfaces.lines().skip(2).filter(|line| !line.trim_start().starts_with("lo:")).count();
    is_so(
        checks,
        "no_network_interface",
        others == 0 && !interfaces.is_empty(),
        format!("{others} interfaces besides loopback"),
    );
    denied(checks, "write_root", fs::write("/written", "x"));
    denied(checks, "read_resolver_settings", fs::read("/etc/resolv.conf"));
    denied(checks, "see_hardware", fs::read_dir("/sys"));
    let bound = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bound = bound.lines().find_map(|line| line.strip_prefix("CapBnd:")).map_or("unknown", str::trim).to_owned();
    is_so(checks, "no_capbnd", bound.bytes().all(|b| b == b'0'), bound);
}
