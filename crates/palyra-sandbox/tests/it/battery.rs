//! The escape battery: each hostile guest, in tier B and tier C, as root and as an ordinary user.
//!
//! The outer test lays out a piece of host with things worth stealing, compiles the guests and executes this very program again, once with its
//! own rights and once as a user without any; the inner one starts the sandboxes. What got through, and what the table says, is compared here.
//!
//! INVARIANT: each attempt of the table either ran or is named with the reason why it was left out; see [`attempts`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use palyra_common::SandboxTier;
use palyra_sandbox::{
    Access, Exit, Grant, HostFacts, Invocation, LauncherOptions, Limits, Place, Sandbox, Share, Stdio, plan,
};

use crate::guests::{self, Expected};
use crate::world::{finish, launcher};

const USER: u32 = 65_534;
const BASE: &str = "PALYRA_SANDBOX_TEST_BASE";

/// With whose rights sandboxes are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rights {
    Root,
    User,
}

impl Rights {
    fn own() -> Self {
        if fs::metadata("/proc/self").unwrap().uid() == 0 { Self::Root } else { Self::User }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
        }
    }

    /// Why a battery that runs with these rights cannot make an attempt with the `wanted` ones; `None` if it can.
    const fn reason_to_leave_out(self, wanted: Self) -> Option<&'static str> {
        match (self, wanted) {
            (Self::User, Self::Root) => Some("the tests do not run as root"),
            (Self::Root, Self::Root | Self::User) | (Self::User, Self::User) => None,
        }
    }
}

/// One line per attempt, as the inner test prints it before the outcome.
fn attempt_name(guest: &str, tier: SandboxTier, rights: Rights) -> String {
    format!("guest {guest} tier {} as {}", tier.as_str(), rights.as_str())
}

/// Every attempt that the table asks for, with the reason for each that cannot be made with the rights of this process.
fn attempts() -> BTreeMap<String, Option<&'static str>> {
    let mut attempts = BTreeMap::new();
    for rights in [Rights::Root, Rights::User] {
        for guest in guests::table().keys() {
            for tier in [SandboxTier::B, SandboxTier::C] {
                attempts.insert(attempt_name(guest, tier, rights), Rights::own().reason_to_leave_out(rights));
            }
        }
    }
    attempts
}

#[test]
fn no_guest_gets_out() {
    let own_rights = rights();
    let halves = match Rights::own() {
        Rights::Root => vec![None, Some(USER)],
        Rights::User => vec![None],
    };
    let mut made = BTreeSet::new();
    for user in halves {
        for line in half(user) {
            println!("{line}");
            let (attempt, _) = line.split_once(": ").unwrap();
            assert!(made.insert(attempt.to_owned()), "made twice: {attempt}");
        }
    }
    let attempts = attempts();
    for (attempt, reason) in &attempts {
        if let Some(reason) = reason {
            println!("left out: {attempt}: {reason}");
        }
    }
    let possible: BTreeSet<_> =
        attempts.iter().filter(|(_, reason)| reason.is_none()).map(|(attempt, _)| attempt.clone()).collect();
    println!("escape.tried {}\nescape.passed 0\nescape.left_out {}", made.len(), attempts.len() - possible.len());
    let missing: Vec<_> = possible.difference(&made).collect();
    let unknown: Vec<_> = made.difference(&possible).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "not made: {missing:#?}; not in the table: {unknown:#?}");
    assert_eq!(rights(), own_rights, "the rights of whoever starts sandboxes stay as they were");
}

/// What this process may do, as the kernel tells it.
fn rights() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let kept = ["Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp", "Umask"];
    let lines = status.lines().filter(|line| kept.iter().any(|name| line.starts_with(name)));
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let namespaces = fs::read_dir("/proc/self/ns").unwrap().map(|entry| fs::read_link(entry.unwrap().path()).unwrap());
    let mut namespaces: Vec<_> = namespaces.map(|path| path.display().to_string()).collect();
    namespaces.sort();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    format!("{}\n{limits}\n{namespaces:?}\n{mounts}", lines.collect::<Vec<_>>().join("\n"))
}

/// Runs the battery with the rights of a user, or with ours; returns one line per attempt.
fn half(user: Option<u32>) -> Vec<String> {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
    guests::publish(&base.path().join("guests"));
    lay_out(base.path(), user);
    let program = base.path().join("test-program");
    let copy = base.path().join("launcher");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::copy(launcher(), &copy).unwrap();
    let mut command = Command::new(&program);
    command
        .args(["--exact", "battery::inner", "--ignored", "--nocapture"])
        .env(BASE, base.path())
        .env("PALYRA_SANDBOX_TEST_LAUNCHER", &copy)
        .env("PALYRA_SECRET", "a secret of the daemon's");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text.lines().filter(|line| line.starts_with("guest ")).map(str::to_owned).collect()
}

/// A piece of host: a home with keys, a daemon's state, a workspace.
fn lay_out(base: &Path, user: Option<u32>) {
    let files = ["host/home/.ssh/id_ed25519", "host/home/.config/token", "host/state/journal.db", "host/secret"];
    for file in files {
        let path = base.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "worth stealing").unwrap();
        // Everyone on the host may read it: only the sandbox stands in between.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::create_dir(base.join("host/workspace")).unwrap();
    for directory in ["host", "host/home", "host/home/.ssh", "host/home/.config", "host/state", "host/workspace"] {
        chown(base.join(directory), user, user).unwrap();
    }
    for file in files {
        chown(base.join(file), user, user).unwrap();
    }
    let borrowed = base.join("host/workspace/setuid-id");
    fs::copy(base.join("guests/helper_setuid_id"), &borrowed).unwrap();
    fs::set_permissions(&borrowed, fs::Permissions::from_mode(0o6755)).unwrap();
}

/// Services of the host that a guest would like to reach.
struct Services {
    port: u16,
    abstract_name: String,
    _path: UnixListener,
    _stream: UnixListener,
    _datagram: UnixDatagram,
    stop: Arc<AtomicBool>,
}

impl Services {
    fn start(base: &Path) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        thread::spawn(move || {
            for mut connection in tcp.incoming().flatten() {
                let _ = connection.write_all(b"hello");
                let _ = connection.read(&mut [0]);
            }
        });
        thread::spawn(move || {
            while let Ok((length, from)) = udp.recv_from(&mut [0; 64]) {
                let _ = udp.send_to(&[b'x'; 64][..length], from);
            }
        });
        let abstract_name = format!("palyra-battery-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || {
            // Whoever listens here for the host gets its connection.
            while !stopped.load(Ordering::Relaxed) {
                let _ = TcpStream::connect("127.0.0.1:47811");
                thread::sleep(Duration::from_millis(20));
            }
        });
        Self {
            port,
            _path: UnixListener::bind(base.join("host/service.sock")).unwrap(),
            _stream: UnixListener::bind_addr(&address).unwrap(),
            _datagram: UnixDatagram::bind_addr(&address).unwrap(),
            abstract_name,
            stop,
        }
    }
}

struct Battery {
    base: PathBuf,
    sandbox: Sandbox,
    host: HostFacts,
    services: Services,
    outsider: std::process::Child,
}

#[test]
#[ignore = "started by `no_guest_gets_out`, with other rights"]
fn inner() {
    let base = PathBuf::from(std::env::var_os(BASE).expect("started by the outer test"));
    let sandbox = Sandbox::start(LauncherOptions { binary: launcher() }).unwrap();
    let host = sandbox.host_facts().unwrap();
    let services = Services::start(&base);
    let outsider = Command::new("sleep").arg("1000").env("PALYRA_SECRET", "x").spawn().unwrap();
    let mut battery = Battery { base, sandbox, host, services, outsider };
    let rights = Rights::own();
    let before = battery.snapshot();
    let mut holes = Vec::new();
    for (guest, (in_b, in_c)) in guests::table() {
        for (tier, expected) in [(SandboxTier::B, in_b), (SandboxTier::C, in_c)] {
            let (through, detail) = battery.attempt(&guest, tier);
            println!("{}: {detail}", attempt_name(&guest, tier, rights));
            let excused = match expected {
                Expected::Denied => false,
                Expected::ByDesign => true,
                Expected::ByDesignAsUser => rights == Rights::User,
            };
            if through && !excused {
                holes.push(format!("{guest} in tier {}: {detail}", tier.as_str()));
            }
        }
    }
    battery.services.stop.store(true, Ordering::Relaxed);
    let alive = battery.outsider.try_wait().unwrap().is_none();
    battery.outsider.kill().unwrap();
    battery.outsider.wait().unwrap();
    assert!(holes.is_empty(), "{}", holes.join("\n"));
    assert!(alive, "the process of the host was killed");
    assert_eq!(battery.snapshot(), before, "the host's files changed");
}

impl Battery {
    /// Whether a guest got through, and what happened.
    fn attempt(&self, guest: &str, tier: SandboxTier) -> (bool, String) {
        let outside = self.base.join("host");
        let workspace = outside.join("workspace");
        let mut grant = Grant::new(tier, Share { place: Place::look(&workspace).unwrap(), access: Access::ReadWrite });
        grant.read_only.push(Place::look(&self.base.join("guests")).unwrap());
        grant.scratch_root = std::env::temp_dir();
        grant.limits = Limits { wall: Duration::from_secs(20), ..Limits::default() };
        let program = self.base.join("guests").join(guest);
        let id = format!("battery-{}-{guest}-{}", std::process::id(), tier.as_str());
        let host_name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let invocation = Invocation::new(id, program.to_str().unwrap(), &workspace).arguments([
            outside.to_str().unwrap(),
            &self.services.port.to_string(),
            &self.services.abstract_name,
            &self.outsider.id().to_string(),
            host_name.trim(),
        ]);
        let plan = plan(&grant, &self.host, &invocation).unwrap();
        let ran = finish(self.sandbox.spawn_blocking(&plan, Stdio::pipes()).unwrap(), "");
        let through = ran.report.exit == Exit::Code(0);
        let odd = matches!(ran.report.exit, Exit::Code(2..));
        assert!(!odd, "{guest} did not even try: {ran:?}");
        (through, format!("{:?} {}", ran.report.exit, ran.stdout.trim()))
    }

    /// Everything outside the workspace, but for modes and times, which tier B leaves to the file's owner.
    fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut ahead = vec![self.base.join("host")];
        while let Some(directory) = ahead.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() && entry.file_name() != "workspace" {
                    ahead.push(entry.path());
                }
                let content = if kind.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
                found.push((entry.path(), content));
            }
        }
        found.sort();
        found
    }
}
