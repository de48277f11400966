//! Sockets passed to a real child process, as a service manager does it: as descriptors from 3 on, with its own process id in the environment.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use palyra_common::{Environment, ToStableError as _};
use palyra_telemetry::InheritedSockets;

/// Set for the child that plays the daemon.
const CHILD: &str = "PALYRA_TEST_INHERITS";

/// Starts this test again as a child that finds two descriptors at 3 and 4.
fn child(sockets: [OwnedFd; 2], count: &str, names: &str, pid: &str) -> (bool, String) {
    let [first, second] = sockets;
    // Descriptors travel as standard input and output and are moved by the shell, which also knows the process id to be.
    let script = format!(
        "exec 3<&0 4>&1 </dev/null >&2; LISTEN_PID={pid} LISTEN_FDS={count} LISTEN_FDNAMES={names} exec \"$0\" --exact \
         sockets::plays_the_daemon --nocapture"
    );
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, "1")
        .stdin(Stdio::from(first))
        .stdout(Stdio::from(second))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The child: takes what it was given, answers one caller on each socket and says what it found.
#[test]
fn plays_the_daemon() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut sockets = match InheritedSockets::take(&Environment::of_process()) {
        Ok(sockets) => sockets,
        Err(error) => {
            eprintln!("refused: {} {error}", error.to_stable().code);
            std::process::exit(3);
        }
    };
    assert!(std::env::var_os("LISTEN_FDS").is_none() || sockets.left().is_empty(), "children learn of no descriptors");
    eprintln!("names: {:?}", sockets.left());
    assert!(sockets.tcp("palyrad.sock").is_none(), "a name alone is not enough: the kind has to fit");
    if let Some(unix) = sockets.unix("palyrad.sock") {
        assert!(rustix::io::fcntl_getfd(&unix).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        unix.set_nonblocking(false).unwrap();
        unix.accept().unwrap().0.write_all(b"unix").unwrap();
    }
    if let Some(tcp) = sockets.tcp("http") {
        tcp.accept().expect("somebody already waits, so a call that does not block answers");
    }
    if let Some(udp) = sockets.udp("quic") {
        eprintln!("udp at {}", udp.local_addr().unwrap());
    }
    eprintln!("left: {:?}", sockets.left());
}

#[test]
fn listeners_are_served_by_the_child() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let (unix, tcp) = (UnixListener::bind(&path).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    // Both wait in the backlog until the child serves them: that is what socket activation is for.
    let mut caller = UnixStream::connect(&path).unwrap();
    let waiting = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
    let (fine, said) = child([unix.into(), tcp.into()], "2", "palyrad.sock:http", "$$");
    assert!(fine, "{said}");
    assert!(said.contains("left: []"), "{said}");
    let mut answer = String::new();
    caller.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "unix");
    drop(waiting);
}

#[test]
fn what_is_meant_for_another_process_is_left_alone() {
    let pair =
        || [OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap()), UdpSocket::bind("127.0.0.1:0").unwrap().into()];
    for pid in ["1", "''", "x"] {
        let (fine, said) = child(pair(), "2", "quic:quic", pid);
        assert!(fine && said.contains("names: []"), "{pid}: {said}");
    }
    let (fine, said) = child(pair(), "1", "quic", "$$");
    assert!(fine && said.contains("udp at 127.0.0.1"), "{said}");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = || OwnedFd::from(std::fs::File::create(directory.path().join("file")).unwrap());
    let listener = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let connection = || OwnedFd::from(UnixStream::pair().unwrap().0);
    let table = [
        ([file(), listener()], "2", "a:b"),
        ([connection(), listener()], "2", "a:b"),
        ([listener(), listener()], "2", "a"),
        ([listener(), listener()], "2", "a:b:c"),
        ([listener(), listener()], "1000000000", "a"),
        ([listener(), listener()], "-1", "a"),
        ([listener(), listener()], "40", "''"),
    ];
    for (place, (sockets, count, names)) in table.into_iter().enumerate() {
        let (fine, said) = child(sockets, count, names, "$$");
        assert!(!fine && said.contains("refused: inherited_socket_invalid"), "case {place}: {said}");
    }
}
