//! Sockets of the host that lie in what a sandbox is given.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use palyra_common::SandboxTier;
use palyra_sandbox::{Place, Stdio};

use crate::world::{World, finish};

/// Connects to each path it is given and says what happened.
const CONNECT: &str = "import socket, sys\nfor path in sys.argv[1:]:\n    try:\n        socket.socket(socket.AF_UNIX).connect(path)\n        print('connected')\n    except OSError as error:\n        print(type(error).__name__)\n";

fn listen(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

#[test]
fn sockets_that_were_there_before_cannot_be_connected_to() {
    let world = World::new();
    let read_only = world.path("read-only");
    fs::create_dir_all(world.workspace.join("deep/er")).unwrap();
    fs::create_dir_all(&read_only).unwrap();
    let paths =
        [world.workspace.join("top.sock"), world.workspace.join("deep/er/inner.sock"), read_only.join("service.sock")];
    let listeners = paths.each_ref().map(|path| listen(path));
    fs::hard_link(&paths[0], world.workspace.join("again.sock")).unwrap();
    let mut grant = world.grant(SandboxTier::C);
    grant.read_only.push(Place::look(&read_only).unwrap());
    let again = world.workspace.join("again.sock");
    let tried = paths.iter().chain([&again]).map(|path| path.to_str().unwrap());
    let arguments: Vec<_> = ["-c", CONNECT].into_iter().chain(tried).collect();
    // The second start uses a room that was made ready before.
    for _ in 0..2 {
        let plan = world.plan(&grant, &world.invocation("/usr/bin/python3", &arguments));
        let child = world.sandbox.spawn_blocking(&plan, Stdio::pipes()).unwrap();
        let mut hidden = child.hidden_sockets.clone();
        let ran = finish(child, "");
        assert_eq!(ran.stdout, "PermissionError\n".repeat(4), "{ran:?}");
        hidden.paths.sort();
        let mut expected: Vec<_> = paths.iter().chain([&again]).cloned().collect();
        expected.sort();
        assert_eq!((hidden.paths, hidden.more, hidden.unix_sockets_refused), (expected, 0, false));
    }
    for listener in listeners {
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody connected");
    }
    assert!(paths.iter().all(|path| path.exists()), "the host's sockets are where they were");
}

#[test]
fn sockets_of_other_network_namespaces_are_found_in_the_workspace() {
    let world = World::new();
    // What a container does whose volume is the workspace; an ordinary user may not make the namespace and has nothing to show here.
    let script = format!(
        "import ctypes, os, socket, sys\nif ctypes.CDLL(None).unshare(0x40000000) != 0: sys.exit(3)\nos.chdir({:?})\ns = socket.socket(socket.AF_UNIX); s.bind('relative.sock'); s.listen()\nprint('ready', flush=True)\nsys.stdin.read()\n",
        world.workspace
    );
    let mut other = Command::new("/usr/bin/python3")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(other.stdout.take().unwrap()), &mut line).unwrap();
    if line == "ready\n" {
        let path = world.workspace.join("relative.sock");
        let ran = world.run(SandboxTier::C, "/usr/bin/python3", &["-c", CONNECT, path.to_str().unwrap()]);
        assert_eq!(ran.stdout, "PermissionError\n", "{ran:?}");
    }
    drop(other.stdin.take());
    let ended = other.wait().unwrap();
    assert_eq!(ended.success(), line == "ready\n", "{ended:?}");
}

#[test]
fn a_guest_uses_sockets_of_its_own() {
    let world = World::new();
    let script = "import os, socket\ns = socket.socket(socket.AF_UNIX); s.bind('own.sock'); s.listen()\nc = socket.socket(socket.AF_UNIX); c.connect('own.sock')\nprint('connected'); os.unlink('own.sock')\n";
    let ran = world.run(SandboxTier::C, "/usr/bin/python3", &["-c", script]);
    assert_eq!(ran.stdout, "connected\n", "{ran:?}");
}
