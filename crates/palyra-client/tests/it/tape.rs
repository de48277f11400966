//! A tape arrives whole and in order, whatever the connection does.

use std::time::Duration;

use palyra_client::{Client, ClientError, Follow, Reconnect};
use palyra_common::RunId;

use crate::support::{Ending, FakeDaemon, RUN, finished_tape, from_seq, json, lines, raw, run_detail, stream};

const QUICK: Reconnect =
    Reconnect { attempts: 4, first_wait: Duration::from_millis(1), longest_wait: Duration::from_millis(2) };

async fn read_all(client: &Client, from: u64, follow: Follow) -> Result<Vec<u64>, ClientError> {
    let mut tape = client.tape(RunId::from_u128(RUN), from, follow).reconnecting(QUICK);
    let mut seen = Vec::new();
    while let Some(event) = tape.next().await? {
        seen.push(event.seq);
    }
    assert!(tape.next().await?.is_none(), "an ended tape stays ended");
    Ok(seen)
}

#[tokio::test]
async fn cuts_at_any_byte_leave_no_gap_and_no_repetition() {
    const LENGTH: u64 = 40;
    let one_line = lines(&finished_tape(2)[..1]).len();
    // Each connection is cut a little later within a line than the one before, and each brings at least one whole line.
    for shift in (0..2 * one_line).step_by(11) {
        let daemon = FakeDaemon::start(move |number, request| {
            let from = usize::try_from(from_seq(request)).unwrap();
            let rest = &finished_tape(LENGTH)[from - 1..];
            stream(&lines(rest), &Ending::CutAfter(3 * one_line + (shift + 5 * number) % (2 * one_line)))
        });
        let seen = read_all(&daemon.client(), 1, Follow::UntilEnd).await.unwrap();
        assert_eq!(seen, (1..=LENGTH).collect::<Vec<_>>(), "shift {shift}");
        assert!(daemon.received().len() > 5, "it was really cut");
    }
}

#[tokio::test]
async fn repeated_events_and_heartbeats_are_skipped() {
    let daemon = FakeDaemon::start(|number, _| {
        // The second answer starts from the beginning although it was asked for the middle.
        let tape = finished_tape(9);
        let body = lines(&tape).replace('\n', "\n\n\n");
        stream(&body, &if number == 0 { Ending::CutAfter(500) } else { Ending::Proper })
    });
    let seen = read_all(&daemon.client(), 1, Follow::UntilEnd).await.unwrap();
    assert_eq!(seen, (1..=9).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_jump_is_asked_for_again_and_then_reported() {
    let daemon = FakeDaemon::start(|_, _| {
        let mut tape = finished_tape(9);
        tape.remove(4);
        stream(&lines(&tape), &Ending::Proper)
    });
    let error = read_all(&daemon.client(), 1, Follow::UntilEnd).await.unwrap_err();
    assert!(matches!(error, ClientError::TapeGap { expected: 5, found: 6, .. }), "{error}");
    assert_eq!(daemon.received().len(), 4);
    assert_eq!(from_seq(&daemon.received()[3]), 5, "it asked for the missing one");
}

#[tokio::test]
async fn a_stream_that_ends_before_the_run_is_taken_up_again() {
    let daemon = FakeDaemon::start(|number, request| {
        if !request.line.contains("/tape") {
            return json("200 OK", &run_detail("running", 3));
        }
        let from = usize::try_from(from_seq(request)).unwrap();
        let until = if number == 0 { 3 } else { 6 };
        stream(&lines(&finished_tape(6)[from - 1..until]), &Ending::Proper)
    });
    let seen = read_all(&daemon.client(), 1, Follow::UntilEnd).await.unwrap();
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn following_past_the_end_of_a_finished_run_ends() {
    let daemon = FakeDaemon::start(|_, request| match request.line.contains("/tape") {
        true => stream("", &Ending::Proper),
        false => json("200 OK", &run_detail("completed", 6)),
    });
    assert_eq!(read_all(&daemon.client(), 7, Follow::UntilEnd).await.unwrap(), Vec::<u64>::new());
}

#[tokio::test]
async fn without_following_the_end_of_the_stream_is_the_end() {
    let daemon = FakeDaemon::start(|_, _| stream(&lines(&finished_tape(6)[2..4]), &Ending::Proper));
    assert_eq!(read_all(&daemon.client(), 3, Follow::No).await.unwrap(), [3, 4]);
    assert!(daemon.received()[0].line.contains("follow=false"));
}

#[tokio::test]
async fn a_daemon_that_is_gone_is_given_up_after_a_bounded_number_of_tries() {
    let daemon = FakeDaemon::start(|_, _| stream(&lines(&finished_tape(6)), &Ending::CutAfter(10)));
    let error = read_all(&daemon.client(), 1, Follow::UntilEnd).await.unwrap_err();
    assert!(matches!(error, ClientError::Disconnected { .. }), "{error}");
    assert_eq!(daemon.received().len(), 4);
}

#[tokio::test]
async fn a_refusal_ends_the_stream_at_once() {
    let refusal = r#"{"error":{"code":"run_not_found","message":"no run","category":"not_found","retryable":false}}"#;
    let daemon = FakeDaemon::start(move |_, _| raw("404 Not Found", "application/json", refusal));
    let error = read_all(&daemon.client(), 1, Follow::UntilEnd).await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(envelope) if envelope.code == "run_not_found"), "{error}");
    assert_eq!(daemon.received().len(), 1);

    let late = lines(&finished_tape(6)[..2]) + refusal + "\n";
    let daemon = FakeDaemon::start(move |_, _| stream(&late, &Ending::Proper));
    let mut tape = daemon.client().tape(RunId::from_u128(RUN), 1, Follow::UntilEnd);
    assert!(tape.next().await.unwrap().is_some());
    assert!(tape.next().await.unwrap().is_some());
    assert!(matches!(tape.next().await, Err(ClientError::Refused(_))));
}

#[tokio::test]
async fn an_event_of_another_run_is_not_passed_on() {
    let daemon = FakeDaemon::start(|_, _| {
        let mut tape = finished_tape(3);
        tape[1].run_id = RunId::from_u128(RUN + 1);
        stream(&lines(&tape), &Ending::Proper)
    });
    let error = read_all(&daemon.client(), 1, Follow::UntilEnd).await.unwrap_err();
    assert!(matches!(error, ClientError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn what_has_arrived_survives_a_cancelled_read() {
    let daemon = FakeDaemon::start(|_, request| {
        let from = usize::try_from(from_seq(request)).unwrap();
        stream(&lines(&finished_tape(30)[from - 1..]), &Ending::CutAfter(400))
    });
    let mut tape = daemon.client().tape(RunId::from_u128(RUN), 1, Follow::UntilEnd).reconnecting(QUICK);
    let mut seen = Vec::new();
    loop {
        // Every read is first polled once and dropped, as a select loop does when another branch is quicker.
        let dropped = tokio::select! {
            biased;
            read = tape.next() => Some(read),
            () = std::future::ready(()) => None,
        };
        let read = match dropped {
            Some(read) => read,
            None => tape.next().await,
        };
        match read.unwrap() {
            Some(event) => seen.push(event.seq),
            None => break,
        }
    }
    assert_eq!(seen, (1..=30).collect::<Vec<_>>());
}
