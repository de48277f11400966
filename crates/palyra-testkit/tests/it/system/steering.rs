//! Steering a run at work: cancel, pause and resume, follow up, interrupt. A tool that waits for its receiver keeps the run busy.

use palyra_client::api::{AbortRunParams, ResumeRunParams, RunInputParams};
use palyra_common::InputMode;
use palyra_common::{RunLifecyclePhase, TerminationReason};
use serde_json::json;

use super::{Probed, call, finish, names, position, wait_for_phase};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_stops_a_tool_under_way_and_records_its_outcome() {
    let probed =
        Probed::start(json!({ "turn": [call("probe.once", json!({ "n": 1 })), { "text": "never said" }] })).await;
    probed.receiver.hold();
    let run = probed.create("take long").await;
    probed.wait_for_effects(1);
    let client = probed.daemon.client();
    client.abort_run(run.run_id, &AbortRunParams { reason: Some("enough".to_owned()) }).await.unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Aborted);
    assert_eq!(detail.run.reason, Some(TerminationReason::Cancellation));
    let names = names(&events);
    // The receiver never answered: the tool was stopped, not waited for, and its outcome still came before the end.
    assert!(position(&names, "run.cancel") < position(&names, "tool.stop"), "{names:#?}");
    assert!(position(&names, "tool.stop") < position(&names, "result tool_cancelled"), "{names:#?}");
    assert_eq!(names.last().unwrap(), "status aborted");
    assert_eq!(names.iter().filter(|name| *name == "model.call").count(), 1, "{names:#?}");
    let late = client.abort_run(run.run_id, &AbortRunParams::default()).await.unwrap_err();
    assert!(late.to_string().contains("it is over"), "{late}");
    probed.receiver.release();
    probed.daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_run_begins_nothing_until_it_is_resumed() {
    let probed = Probed::start(json!({ "turn": [
        call("probe.repeatable", json!({ "n": 1 })),
        call("probe.repeatable", json!({ "n": 2 })),
        { "text": "done" },
    ] }))
    .await;
    probed.receiver.hold();
    let run = probed.create("two steps").await;
    probed.wait_for_effects(1);
    let client = probed.daemon.client();
    client.pause_run(run.run_id).await.unwrap();
    probed.receiver.release();
    wait_for_phase(&client, run.run_id, RunLifecyclePhase::Paused).await;
    // The outcome of the tool arrives while the run is held; it is recorded, and nothing follows from it yet.
    client.resume_run(run.run_id, &ResumeRunParams::default()).await.unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    assert_eq!((detail.run.phase, detail.answer.as_deref()), (RunLifecyclePhase::Completed, Some("done")));
    let names = names(&events);
    let (paused, resumed) = (position(&names, "status paused"), position(&names, "run.resume"));
    let between = &names[paused..resumed];
    assert!(!between.iter().any(|name| name == "model.call" || name == "tool.intent"), "{names:#?}");
    assert_eq!(probed.receiver.deliveries().len(), 2);
    probed.daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pending_pause_survives_a_crash() {
    let probed =
        Probed::start(json!({ "turn": [call("probe.repeatable", json!({ "n": 1 })), { "text": "done" }] })).await;
    let Probed { mut daemon, receiver, workspace } = probed;
    receiver.hold();
    let client = daemon.client();
    let run = client.create_run(&super::task("one step", workspace.path())).await.unwrap();
    assert!(receiver.wait_for(1, super::PATIENCE));
    client.pause_run(run.run_id).await.unwrap();
    daemon.kill9().unwrap();
    receiver.release();
    daemon.restart().await.unwrap();
    assert_eq!(client.run(run.run_id).await.unwrap().run.phase, RunLifecyclePhase::Paused);
    client.resume_run(run.run_id, &ResumeRunParams::default()).await.unwrap();
    let (detail, _) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed);
    let deliveries = receiver.deliveries();
    assert!(deliveries.iter().all(|one| one.effect_id == deliveries[0].effect_id), "{deliveries:?}");
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_waits_for_the_turn_and_an_interruption_does_not() {
    let script = json!({ "script": [
        { "when": "follow me up", "turn": [{ "text": "answered the follow-up" }] },
        { "when": "stop that", "turn": [{ "text": "answered the interruption" }] },
        { "turn": [call("probe.once", json!({ "n": 1 })), { "text": "answered the task" }] },
    ] });
    let probed = Probed::start(script).await;
    let client = probed.daemon.client();
    for (mode, text, answer, result) in [
        (InputMode::FollowUp, "follow me up", "answered the follow-up", "result ok"),
        (InputMode::Interrupt, "stop that", "answered the interruption", "result tool_cancelled"),
    ] {
        let before = probed.receiver.deliveries().len();
        probed.receiver.hold();
        let run = probed.create("a task").await;
        probed.wait_for_effects(before + 1);
        client.send_input(run.run_id, &RunInputParams { text: text.to_owned(), mode }).await.unwrap();
        if mode == InputMode::FollowUp {
            probed.receiver.release();
        }
        let (detail, events) = finish(&client, run.run_id).await;
        let names = names(&events);
        assert_eq!(detail.answer.as_deref(), Some(answer), "{names:#?}");
        assert!(position(&names, "run.user_message") < position(&names, result), "{names:#?}");
        probed.receiver.release();
    }
    probed.daemon.finish().await.unwrap();
}
