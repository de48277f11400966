//! Two networks and a cable between them: the daemon's, in which the test runs, and the client's, in which one thread does. The cable can be pulled out.
//!
//! The client's network has no loopback of its own; 127.0.0.1 lies at the other end of the cable. So a client that only speaks to loopback addresses, as ours over HTTP
//! does, speaks over a network that can fail.

use std::process::Command;
use std::sync::mpsc;
use std::thread::JoinHandle;

use rustix::thread::{Pid, UnshareFlags, gettid};

const INSIDE: &str = "PALYRA_TEST_NETWORK";

/// Runs `body` in a network of its own. `name` is the test's full path, as the test harness knows it.
pub(super) fn in_own_network<F: Future<Output = ()>>(name: &str, body: impl FnOnce() -> F) {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(body());
        return;
    }
    let output = Command::new("unshare")
        .args(["--map-root-user", "--net", "--", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .output()
        .expect("`unshare` and `ip` are needed to give the test a network of its own");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{stdout}");
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "the test was not run in its own network; is its name `{name}`?\n{stdout}");
}

/// The cable between the two networks.
pub(super) struct Cable;

impl Cable {
    /// Takes the cable out of the daemon's side. No packet passes, and nobody is told.
    pub(super) fn pull(&self) {
        shell("ip link set far down", None);
    }

    /// Puts it back.
    pub(super) fn plug(&self) {
        shell("ip link set far up", None);
    }
}

/// Starts a thread in a network of its own at the other end of a cable, and runs `body` in it.
pub(super) fn at_the_other_end<F: Future<Output = ()>>(
    body: impl FnOnce() -> F + Send + 'static,
) -> (Cable, JoinHandle<()>) {
    let (tell_thread, thread) = mpsc::channel();
    let (tell_wired, wired) = mpsc::channel();
    let client = std::thread::spawn(move || {
        #[expect(
            deprecated,
            reason = "only NEWNET is asked for, which concerns no other thread's memory or descriptors"
        )]
        rustix::thread::unshare(UnshareFlags::NEWNET).unwrap();
        tell_thread.send(gettid()).unwrap();
        wired.recv().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(body());
    });
    let wire = "ip link add name far type veth peer name near; ip link set near netns $1; \
         echo 1 >/proc/sys/net/ipv4/conf/far/route_localnet; ip addr add 10.77.0.1/24 dev far; ip link set far up; \
         nsenter -t $1 -n sh -ec 'echo 1 >/proc/sys/net/ipv4/conf/near/route_localnet; ip addr add 10.77.0.2/24 dev near; \
         ip link set near up; ip route add 127.0.0.1/32 dev near src 10.77.0.2'";
    shell(wire, Some(thread.recv().unwrap()));
    tell_wired.send(()).unwrap();
    (Cable, client)
}

/// Runs a script with `$1` as the thread whose network it wires.
fn shell(script: &str, thread: Option<Pid>) {
    let thread = thread.map_or_else(String::new, |thread| thread.as_raw_nonzero().to_string());
    let output = Command::new("sh").args(["-ec", script, "sh", &thread]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
