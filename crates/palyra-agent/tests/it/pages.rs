//! What a follower is handed at once: a reader that stops reading holds no more than that.

use std::sync::Arc;

use palyra_common::RunStreamEvent;

use crate::support::{Bench, Gate, Hang, Setup, TestTool};

/// Pages have 256 KiB of records; an event says a little more than its record.
const MOST: usize = 300_000;

/// A run that has said a lot and waits for its last tool.
async fn talkative() -> (Bench, Gate) {
    let words = "x".repeat(90_000);
    let turn = |n| format!("[[turn]]\ntext = \"{n} {words}\"\n[[turn.call]]\ntool = \"test.once\"\narguments = {{}}\n");
    let turns: String = (0..4).map(turn).collect();
    let last = "[[turn]]\n[[turn.call]]\ntool = \"test.slow\"\narguments = {}\n[[turn]]\ntext = \"finished\"\n";
    let gate = Gate::reading("test.slow");
    let mut setup = Setup::script(&(turns + last));
    setup.tools = vec![Arc::new(TestTool::reading("test.once", Hang::No)), Arc::new(gate.clone())];
    (setup.start().await, gate)
}

fn check(pages: &[Vec<RunStreamEvent>]) -> Vec<RunStreamEvent> {
    for page in pages {
        let bytes: usize = page.iter().map(|event| serde_json::to_vec(event).unwrap().len()).sum();
        assert!(bytes <= MOST || page.len() == 1, "a page of {} events has {bytes} bytes", page.len());
    }
    let events: Vec<RunStreamEvent> = pages.concat();
    for (expected, event) in (1..).zip(&events) {
        assert_eq!(event.seq, expected, "pages have no gaps between them");
    }
    assert!(serde_json::to_vec(&events).unwrap().len() > 2 * MOST, "there was too little to say");
    events
}

#[tokio::test]
async fn pages_are_bounded_in_bytes_while_a_run_works_and_afterwards() {
    let (bench, gate) = talkative().await;
    let run = bench.engine.create_run(bench.task("work")).await.unwrap();
    gate.reached(1).await;
    // From here on everything is in memory, and nothing of it has been read.
    let mut follower = bench.engine.follow(run.run_id, 1).await.unwrap();
    gate.open();
    let mut pages: Vec<Vec<RunStreamEvent>> = Vec::new();
    while let Some(page) = follower.next().await.unwrap() {
        pages.push(page.iter().map(|event| (**event).clone()).collect());
    }
    let followed = check(&pages);

    let mut pages: Vec<Vec<RunStreamEvent>> = Vec::new();
    let mut next = 1;
    loop {
        let page = bench.engine.tape(run.run_id, next, 256).await.unwrap();
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        pages.push(page);
    }
    assert_eq!(check(&pages), followed);
    assert_eq!(bench.engine.tape(run.run_id, 1, 3).await.unwrap().len(), 3);
    assert_eq!(bench.engine.tape(run.run_id, 2, 7).await.unwrap(), followed[1..8]);
}
