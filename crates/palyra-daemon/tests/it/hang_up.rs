//! Clients that hang up while their command is carried out: what was begun goes to its end, and whoever asks again learns what came of it.
//!
//! The daemon is stopped while the request is written and the connection closed, so that it finds both at once and begins a command whose client is gone.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use palyra_client::command;
use palyra_common::{AcpCommand, CommandEffect, RequestId};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::raw::{loopback_json, unix};
use crate::support::Daemon;
use crate::things::{self, Things, token};

/// How long a command may take that nobody waits for.
const PATIENCE: Duration = Duration::from_secs(2);

fn signal(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Sends a request and hangs up before the daemon can answer.
fn send_and_leave(daemon: &Daemon, request_line: &str, body: &str) {
    signal(daemon, Signal::STOP);
    let mut stream = UnixStream::connect(daemon.state_root.join("palyrad.sock")).unwrap();
    let length = body.len();
    write!(stream, "{request_line} HTTP/1.1\r\nHost: palyrad\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    drop(stream);
    signal(daemon, Signal::CONT);
}

fn envelope(command: AcpCommand, params: &Value, key: &str) -> String {
    let request_id = RequestId::generate();
    json!({"request_id": request_id, "command": command, "params": params, "idempotency_key": key}).to_string()
}

#[tokio::test]
async fn a_token_is_revoked_although_its_owner_hangs_up_and_the_daemon_starts_again() {
    let place = things::place();
    let daemon = place.start().await;
    let mut carried_out = 0;
    for round in 0..20 {
        let (secret, id) = token(&daemon, &json!({"name": format!("t{round}"), "role": "viewer"}));
        let works = || loopback_json(&daemon, "GET /api/v1/sessions", Some(&secret), "").status == 200;
        send_and_leave(&daemon, &format!("POST /api/v1/tokens/{id}/revoke"), "");
        let left = Instant::now();
        while works() && left.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // A request whose end was noticed before it was read has not begun at all; what has begun is done.
        let again = unix(&daemon, &format!("POST /api/v1/tokens/{id}/revoke"), b"");
        assert!(again.status == 200 || again.code() == "token_revoked", "{again:?}");
        carried_out += usize::from(again.status != 200);
        assert!(!works(), "round {round}");
    }
    assert!(carried_out > 0, "no round began its command");
    daemon.kill();
    place.start().await;
}

#[tokio::test]
async fn every_command_that_changes_something_can_be_asked_about_again() {
    let place = things::place();
    let daemon = place.start().await;
    let things = Things::of(&place, &daemon).await;
    let mut unknown = Vec::new();
    for command in AcpCommand::ALL.iter().copied() {
        let Some(spec) = command::spec(command) else { continue };
        let streams = command::STREAM_COMMANDS.iter().any(|spec| spec.name == command);
        // Stopping is looked at elsewhere: there is nobody left to ask.
        if spec.effect == CommandEffect::Read || streams || command == AcpCommand::DaemonStop {
            continue;
        }
        let params = things.params(command);
        for round in 0..3 {
            let key = format!("{}-{round}", command.as_str());
            send_and_leave(&daemon, "POST /acp/v1/command", &envelope(command, &params, &key));
            let answer = unix(&daemon, "POST /acp/v1/command", envelope(command, &params, &key).as_bytes()).json();
            if answer["error"]["code"] == "command_outcome_unknown" {
                unknown.push(key);
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:?}");
    daemon.kill();
    place.start().await;
}
