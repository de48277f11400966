//! The service manager's socket, played by a real datagram socket.

use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use palyra_common::Environment;
use palyra_telemetry::Notify;

struct Manager {
    socket: UnixDatagram,
    _directory: tempfile::TempDir,
    environment: Environment,
}

impl Manager {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let environment = Environment::from_pairs([("NOTIFY_SOCKET", path.as_os_str())]);
        Self { socket, _directory: directory, environment }
    }

    fn next(&self) -> String {
        let mut buffer = [0; 1024];
        let length = self.socket.recv(&mut buffer).expect("a message comes");
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    /// Reads away what came so far.
    fn forget(&self) {
        self.socket.set_nonblocking(true).unwrap();
        while self.socket.recv(&mut [0; 1024]).is_ok() {}
        self.socket.set_nonblocking(false).unwrap();
    }
}

#[test]
fn the_manager_hears_of_the_beginning_and_the_end() {
    let manager = Manager::new();
    let notify = Notify::from_environment(&manager.environment);
    notify.ready("2 unfinished runs\nWATCHDOG=1");
    notify.status("busy");
    notify.clone().stopping("told to");
    assert_eq!(manager.next(), "READY=1\nSTATUS=2 unfinished runs WATCHDOG=1");
    assert_eq!(manager.next(), "STATUS=busy");
    assert_eq!(manager.next(), "STOPPING=1\nSTATUS=told to");
}

#[cfg(target_os = "linux")]
#[test]
fn an_abstract_socket_will_do() {
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("palyra-notify-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    Notify::from_environment(&Environment::from_pairs([("NOTIFY_SOCKET", format!("@{name}"))])).ready("");
    let mut buffer = [0; 64];
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"READY=1\nSTATUS=");
}

#[test]
fn a_manager_that_is_gone_or_does_not_read_stops_nobody() {
    let manager = Manager::new();
    let notify = Notify::from_environment(&manager.environment);
    for _ in 0..10_000 {
        notify.status("does not fit any buffer at some point");
    }
    drop(manager);
    notify.stopping("");
}

#[tokio::test]
async fn a_sign_of_life_needs_somebody_alive() {
    let manager = Arc::new(Manager::new());
    let environment =
        manager.environment.clone().with("WATCHDOG_USEC", "40000").with("WATCHDOG_PID", std::process::id().to_string());
    let notify = Notify::from_environment(&environment);
    assert_eq!(notify.watchdog_period(), Some(Duration::from_millis(40)));
    let alive = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&alive);
    let keeping = tokio::spawn(notify.keep_alive(move || {
        let alive = asked.load(Ordering::SeqCst);
        async move { alive }
    }));
    let next = |manager: &Arc<Manager>| {
        let manager = Arc::clone(manager);
        tokio::task::spawn_blocking(move || manager.next())
    };
    for _ in 0..3 {
        assert_eq!(next(&manager).await.unwrap(), "WATCHDOG=1");
    }
    alive.store(false, Ordering::SeqCst);
    // One sign may have been on its way.
    tokio::time::sleep(Duration::from_millis(200)).await;
    manager.forget();
    manager.socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let silent = Arc::clone(&manager);
    let heard = tokio::task::spawn_blocking(move || silent.socket.recv(&mut [0; 64])).await.unwrap();
    assert!(heard.is_err(), "a daemon that is not alive says nothing");
    manager.socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    alive.store(true, Ordering::SeqCst);
    assert_eq!(next(&manager).await.unwrap(), "WATCHDOG=1");
    keeping.abort();
}

#[tokio::test]
async fn a_probe_that_hangs_gives_no_sign() {
    let manager = Manager::new();
    let environment = manager.environment.clone().with("WATCHDOG_USEC", "20000");
    let keeping = tokio::spawn(Notify::from_environment(&environment).keep_alive(std::future::pending::<bool>));
    tokio::time::sleep(Duration::from_millis(200)).await;
    keeping.abort();
    manager.socket.set_nonblocking(true).unwrap();
    assert!(manager.socket.recv(&mut [0; 64]).is_err());
}

#[tokio::test]
async fn nobody_watching_ends_the_watch() {
    let manager = Manager::new();
    Notify::from_environment(&manager.environment).keep_alive(|| async { true }).await;
}
