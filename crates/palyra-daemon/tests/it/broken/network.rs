//! The network is cut in the middle of a stream, briefly and for long.

use std::time::Duration;

use tokio::sync::mpsc;

use super::cable::{at_the_other_end, in_own_network};
use super::{Heard, Over, opened, recorded_beyond, talkative};
use crate::quic_support::credentials;

/// Both sides forget a connection of QUIC after this many seconds of silence; it is the least that can be configured.
const IDLE_SECONDS: u64 = 5;

#[test]
fn a_cut_network_costs_nothing_over_http() {
    in_own_network("broken::network::a_cut_network_costs_nothing_over_http", || cut(Over::Http));
}

#[test]
fn a_cut_network_costs_nothing_over_quic() {
    in_own_network("broken::network::a_cut_network_costs_nothing_over_quic", || cut(Over::Quic));
}

async fn cut(over: Over) {
    let place = talkative(20).with("PALYRA_QUIC_IDLE_TIMEOUT_SECONDS", &IDLE_SECONDS.to_string());
    let daemon = place.start().await;
    credentials(&daemon).await;
    let run = daemon.create("talk").await;
    let (tell, told) = mpsc::unbounded_channel();
    let (state_root, id) = (daemon.state_root.clone(), run.run_id);
    let (cable, client) = at_the_other_end(move || async move { over.follow(&state_root, id, 1, tell).await });
    let mut heard = Heard::new(told);

    // A short outage is survived by the connection; a longer one kills it, and nobody tells either side that it is dead.
    let shorter = Duration::from_millis(500);
    let longer = Duration::from_secs(IDLE_SECONDS + 1);
    for (at, outage) in [(20, shorter), (80, longer)] {
        heard.until(at).await;
        cable.pull();
        // What was under way when the cable was pulled has arrived by then.
        tokio::time::sleep(shorter / 2).await;
        let last = heard.drain();
        recorded_beyond(&daemon, id, last + 5).await;
        tokio::time::sleep(outage).await;
        assert_eq!(heard.drain(), last, "something came through although the cable was out");
        cable.plug();
    }
    heard.whole(&daemon, id).await;
    client.join().unwrap();
    assert!(opened(&daemon, over) >= 2, "the longer outage did not break the stream");
}
