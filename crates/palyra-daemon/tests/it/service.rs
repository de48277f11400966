//! The daemon under a service manager: what it tells, and sockets that were open before it.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use palyra_client::{Client, Endpoint};

use crate::support::Place;

fn manager(place: &Place) -> (UnixDatagram, String) {
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    (socket, path.display().to_string())
}

fn next(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 1024];
    let length = socket.recv(&mut buffer).expect("the daemon says something");
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

#[tokio::test]
async fn the_service_manager_is_kept_informed() {
    let place = Place::new();
    let (socket, path) = manager(&place);
    let place = place.with("NOTIFY_SOCKET", &path).with("WATCHDOG_USEC", "100000");
    let daemon = place.start().await;
    let ready = next(&socket);
    assert!(ready.starts_with("READY=1\nSTATUS=serving"), "{ready}");
    for _ in 0..3 {
        assert_eq!(next(&socket), "WATCHDOG=1");
    }
    let pid = daemon.pid().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let told = std::iter::repeat_with(|| next(&socket)).find(|message| message != "WATCHDOG=1").unwrap();
    assert!(told.starts_with("STOPPING=1\n"), "{told}");
    assert!(daemon.ended().await.success());
}

/// A daemon that a service manager started; killed when dropped.
struct Activated(Child);

impl Drop for Activated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the daemon as a service manager does: sockets from descriptor 3 on, its own process id in the environment.
fn activated(place: &Place, sockets: [OwnedFd; 2], names: &str) -> Activated {
    let [first, second] = sockets;
    let script = format!(
        "exec 3<&0 4>&1 </dev/null >&2; LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES={names} exec \"$0\" 2>>\"$LOG\""
    );
    let daemon = place.command();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &script]).arg(daemon.get_program()).env_clear();
    for (name, value) in daemon.get_envs() {
        shell.env(name, value.unwrap());
    }
    let child = shell
        .env("LOG", place.path().join("activated.log"))
        .stdin(Stdio::from(first))
        .stdout(Stdio::from(second))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Activated(child)
}

fn said(place: &Place) -> String {
    std::fs::read_to_string(place.path().join("activated.log")).unwrap_or_default()
}

fn wait(child: &mut Activated, place: &Place) -> std::process::ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            return status;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "the daemon does not end\n{}", said(place));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn sockets_of_the_service_manager_outlive_the_daemon() {
    let place = Place::new();
    std::fs::create_dir(place.state_root()).unwrap();
    std::fs::set_permissions(place.state_root(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = place.state_root().join("palyrad.sock");
    let (unix, tcp) = (UnixListener::bind(&path).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = tcp.local_addr().unwrap();
    for _ in 0..2 {
        let passed = [unix.try_clone().unwrap().into(), tcp.try_clone().unwrap().into()];
        // Whoever knocks before the daemon is there waits and is answered.
        let asking = tokio::spawn({
            let client = Client::new(Endpoint::unix(place.state_root()));
            async move { client.health().await }
        });
        let mut child = activated(&place, passed, "unix:http");
        let answered = tokio::time::timeout(Duration::from_secs(30), asking).await;
        let health = answered.unwrap_or_else(|_| panic!("nobody answers\n{}", said(&place))).unwrap().unwrap();
        assert_eq!(health.pid, child.0.id());
        let noted = std::fs::read_to_string(place.state_root().join("http.addr")).unwrap();
        assert_eq!(noted.trim(), address.to_string());
        Client::new(Endpoint::unix(place.state_root())).stop_daemon().await.unwrap();
        assert!(wait(&mut child, &place).success(), "{}", said(&place));
        assert!(path.exists(), "the socket is not the daemon's to remove");
    }
}

#[tokio::test]
async fn sockets_that_must_not_be_served_are_refused() {
    for (where_from, names, told) in [
        ("0.0.0.0:0", "unix:http", "the configuration does not name"),
        ("127.0.0.1:0", "http:unix", "is no listener"),
        ("127.0.0.1:0", "unix", "names"),
    ] {
        let place = Place::new();
        std::fs::create_dir(place.state_root()).unwrap();
        std::fs::set_permissions(place.state_root(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let unix = UnixListener::bind(place.state_root().join("palyrad.sock")).unwrap();
        let tcp = TcpListener::bind(where_from).unwrap();
        let mut child = activated(&place, [unix.into(), tcp.into()], names);
        if told == "is no listener" {
            // A name with a socket of the other kind is nobody's; the daemon opens its own doors and says so.
            let client = Client::new(Endpoint::unix(place.state_root()));
            let began = Instant::now();
            while client.stop_daemon().await.is_err() {
                assert!(began.elapsed() < Duration::from_secs(30), "{}", said(&place));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert!(wait(&mut child, &place).success());
            assert!(said(&place).contains("a socket that is not used"), "{}", said(&place));
            continue;
        }
        assert_eq!(wait(&mut child, &place).code(), Some(2), "{}", said(&place));
        assert!(said(&place).contains("[inherited_socket_invalid]") && said(&place).contains(told), "{}", said(&place));
    }
}

#[tokio::test]
async fn a_socket_that_stands_elsewhere_is_refused() {
    let place = Place::new();
    let unix = UnixListener::bind(place.path().join("elsewhere.sock")).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = activated(&place, [unix.into(), tcp.into()], "unix:http");
    assert_eq!(wait(&mut child, &place).code(), Some(2), "{}", said(&place));
    assert!(said(&place).contains("where clients expect it"), "{}", said(&place));
}
