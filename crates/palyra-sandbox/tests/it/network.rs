//! The one way out: the proxy's sockets.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use palyra_common::SandboxTier;
use palyra_sandbox::{Exit, Network, ProxyPorts, Stdio};

use crate::world::{World, finish};

/// Speaks to a port of the loopback from a guest.
const SPEAK: &str = r#"
import socket, sys
for port in sys.argv[1:]:
    try:
        with socket.create_connection(("127.0.0.1", int(port)), timeout=5) as connection:
            connection.sendall(b"hello\n")
            print(port, connection.recv(64).decode())
    except OSError as error:
        print(port, "refused", type(error).__name__)
"#;

fn answer(listener: TcpListener, word: &'static str) {
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let mut question = [0; 6];
            if connection.read_exact(&mut question).is_ok() && &question == b"hello\n" {
                let _ = connection.write_all(word.as_bytes());
            }
        }
    });
}

#[test]
fn in_tier_c_the_daemon_accepts_inside_the_private_network() {
    let world = World::new();
    let host_service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host_service.local_addr().unwrap().port().to_string();
    answer(host_service, "the host");
    let mut grant = world.grant(SandboxTier::C);
    grant.network = Network::Proxy(ProxyPorts { http: 3128, socks: 1080 });
    let invocation = world.invocation("/usr/bin/python3", &["-c", SPEAK, "3128", "1080", &port]);
    let plan = world.plan(&grant, &invocation);
    let mut child = world.sandbox.spawn_blocking(&plan, Stdio::pipes()).unwrap();
    let mut listeners = std::mem::take(&mut child.proxy_listeners).into_iter();
    answer(TcpListener::from(listeners.next().unwrap()), "http proxy");
    answer(TcpListener::from(listeners.next().unwrap()), "socks proxy");
    assert!(listeners.next().is_none());
    let ran = finish(child, "");
    assert_eq!(
        ran.stdout,
        format!("3128 http proxy\n1080 socks proxy\n{port} refused ConnectionRefusedError\n"),
        "{ran:?}"
    );
    let variables = world.run_with(&grant, &world.invocation("env", &[]), "").unwrap().stdout;
    for expected in [
        "HTTP_PROXY=http://127.0.0.1:3128",
        "https_proxy=http://127.0.0.1:3128",
        "ALL_PROXY=socks5h://127.0.0.1:1080",
        "NO_PROXY=\n",
    ] {
        assert!(variables.contains(expected), "{expected} is missing from {variables}");
    }
}

#[test]
fn in_tier_b_only_the_proxys_ports_can_be_reached() {
    let world = World::new();
    let (proxy, socks, other) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let ports = ProxyPorts { http: port(&proxy), socks: port(&socks) };
    let other_port = port(&other).to_string();
    answer(proxy, "http proxy");
    answer(socks, "socks proxy");
    answer(other, "the host");
    let mut grant = world.grant(SandboxTier::B);
    grant.network = Network::Proxy(ports);
    let (http, socks) = (ports.http.to_string(), ports.socks.to_string());
    let invocation = world.invocation("/usr/bin/python3", &["-c", SPEAK, &http, &socks, &other_port]);
    let ran = world.run_with(&grant, &invocation, "").unwrap();
    assert_eq!(
        ran.stdout,
        format!("{http} http proxy\n{socks} socks proxy\n{other_port} refused PermissionError\n"),
        "{ran:?}"
    );
    // Nothing but TCP, no waiting for others, no way around the check.
    for guest in [
        "mptcp_service",
        "fast_open",
        "loopback_datagram",
        "dns_tunnel",
        "raw_socket",
        "listen_for_others",
        "abstract_socket",
        "path_socket",
        "vsock_socket",
        "loopback_service",
    ] {
        let outside = world.directory.path().to_str().unwrap();
        let ran = world.run_guest(grant.clone(), guest, &[outside, &other_port, "name", "1"]);
        assert_eq!(ran.report.exit, Exit::Code(1), "{guest}: {ran:?}");
    }
}

#[test]
fn without_network_there_is_only_a_loopback_of_its_own() {
    let world = World::new();
    let script = "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('own loopback')";
    let ran = world.run(SandboxTier::C, "/usr/bin/python3", &["-c", script]);
    assert_eq!(ran.stdout, "own loopback\n", "{ran:?}");
    let ran = world.run(SandboxTier::B, "/usr/bin/python3", &["-c", script]);
    assert!(ran.stderr.contains("PermissionError"), "{ran:?}");
}
