//! The daemon is killed in the middle of a stream and started again.

use tokio::sync::mpsc;

use super::cable::in_own_network;
use super::{Heard, Over, talkative};
use crate::quic_support::credentials;

#[test]
fn a_killed_daemon_costs_nothing_over_http() {
    in_own_network("broken::daemon::a_killed_daemon_costs_nothing_over_http", || killed(Over::Http));
}

#[test]
fn a_killed_daemon_costs_nothing_over_quic() {
    in_own_network("broken::daemon::a_killed_daemon_costs_nothing_over_quic", || killed(Over::Quic));
}

/// In a network of its own a daemon that comes back has its ports again.
async fn killed(over: Over) {
    let place = talkative(16)
        .with("PALYRA_DAEMON_HTTP_BIND", "127.0.0.1:7142")
        .with("PALYRA_QUIC_BIND", "127.0.0.1:7444")
        .with("PALYRA_GRPC_BIND", "127.0.0.1:7443");
    let mut daemon = place.start().await;
    credentials(&daemon).await;
    let run = daemon.create("talk").await;
    let (tell, told) = mpsc::unbounded_channel();
    let (state_root, id) = (daemon.state_root.clone(), run.run_id);
    let follower = tokio::spawn(async move { over.follow(&state_root, id, 1, tell).await });
    let mut heard = Heard::new(told);
    // Over QUIC it takes until the next keep-alive to notice, up to five seconds each time; the run must still be under way then.
    for at in [15, 60] {
        heard.until(at).await;
        daemon.kill();
        let last = heard.drain();
        assert!(!heard.events.last().unwrap().is_terminal(), "it was over before it was killed, at {last}");
        daemon = place.start().await;
    }
    heard.whole(&daemon, id).await;
    follower.await.unwrap();
}
