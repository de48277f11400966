//! A network namespace for one test: the test starts itself once more inside it, with loopback up and all the addresses it needs.

use std::process::Command;
use std::sync::mpsc;

use rustix::thread::{Pid, UnshareFlags, gettid};

const INSIDE: &str = "PALYRA_EGRESS_TEST_NAMESPACE";

/// Addresses that the namespace has, so that a connection to any of them would really succeed and be counted.
const ADDRESSES: [&str; 35] = [
    super::OWN,
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.1.1",
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "fd00::1",
    "fc00::1",
    "fec0::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2a00:1450::5efe:7f00:1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "2001:db8::1",
    "2001:2::1",
    "100::1",
    "5f00::1",
];

/// Runs `body` inside a namespace of its own. `name` is the test's full path, as the test harness knows it.
pub(crate) fn in_own_network<F: Future<Output = ()>>(name: &str, body: impl FnOnce() -> F) {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(body());
        return;
    }
    let mut script = String::from("set -e; ip link set lo up; ");
    for address in ADDRESSES {
        let (family, length, flag) = if address.contains(':') { ("-6", 128, "nodad") } else { ("-4", 32, "") };
        // Some addresses cannot be assigned on some kernels; what cannot be assigned cannot be reached either.
        script.push_str(&format!("ip {family} addr add {address}/{length} dev lo {flag} 2>/dev/null || true; "));
    }
    // What has no address of its own still arrives here rather than nowhere.
    script.push_str("ip route add local 0.0.0.0/0 dev lo 2>/dev/null || true; ip -6 route add local ::/0 dev lo 2>/dev/null || true; ");
    script.push_str("exec \"$0\" \"$@\"");
    let output = Command::new("unshare")
        .args(["--map-root-user", "--net", "--", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .output()
        .expect("`unshare` and `ip` are needed to give the test a network of its own");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{stdout}");
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "the test was not run inside the namespace; is its name `{name}`?\n{stdout}");
}

/// Runs `script` with `$1` as the thread whose network it wires.
fn wire(script: &str, thread: Pid) {
    let thread = thread.as_raw_nonzero().to_string();
    let output = Command::new("sh").args(["-ec", script, "sh", &thread]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A thread in a network of its own, wired by `script` before `body` runs in it. It lives until the test ends.
fn thread_in_new_network<T: Send + 'static, F: Future<Output = T>>(
    script: &str,
    body: impl FnOnce() -> F + Send + 'static,
) -> T {
    let (tell_thread, thread) = mpsc::channel();
    let (tell_wired, wired) = mpsc::channel();
    let (tell_result, result) = mpsc::channel();
    std::thread::spawn(move || {
        #[expect(
            deprecated,
            reason = "only NEWNET is asked for, which concerns no other thread's memory or descriptors"
        )]
        rustix::thread::unshare(UnshareFlags::NEWNET).unwrap();
        tell_thread.send(gettid()).unwrap();
        wired.recv().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tell_result.send(runtime.block_on(body())).unwrap();
        runtime.block_on(std::future::pending::<()>());
    });
    wire(script, thread.recv().unwrap());
    tell_wired.send(()).unwrap();
    result.recv().unwrap()
}

/// The internet, as the tests have it: another network at the end of a cable, with the public address in it.
pub(crate) fn outside<T: Send + 'static, F: Future<Output = T>>(body: impl FnOnce() -> F + Send + 'static) -> T {
    let public = super::PUBLIC;
    let script = format!(
        "ip link add out type veth peer name in; ip link set in netns $1; \
         ip addr add 10.255.255.1/32 dev out; ip link set out up; ip route add {public}/32 dev out src 10.255.255.1; \
         nsenter -t $1 -n sh -ec 'ip link set lo up; ip addr add {public}/32 dev in; ip link set in up; ip route add default dev in'"
    );
    thread_in_new_network(&script, body)
}

/// A network with nothing in it but its own loopback, as a sandbox has it.
pub(crate) fn sandbox<T: Send + 'static, F: Future<Output = T>>(body: impl FnOnce() -> F + Send + 'static) -> T {
    thread_in_new_network("nsenter -t $1 -n ip link set lo up", body)
}
