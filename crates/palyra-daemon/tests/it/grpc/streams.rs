//! RunStream: events down without gaps, answers and messages up, slow readers, the daemon's end.

use palyra_client::api::AddAttachmentParams;
use palyra_common::{RunLifecyclePhase, RunStreamBody, RunStreamEvent};
use palyra_proto::contract_to_wire;
use palyra_proto::error_from_status;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::run_stream_request::Body as Up;
use palyra_proto::gateway::v1::run_stream_response::Body as Down;
use tonic::{Code, Request};

use super::support::{Grpc, PATIENCE, refused, spec};
use crate::support::Place;

const WRITES: &str = r#"
[[turn]]
text = ["Writing ", "it."]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "made.txt", content = "one\n" }
[[turn]]
text = "Done."
"#;

const SLOW: &str = r#"
[[turn]]
text = ["thinking", " for", " a", " long", " time"]
delay_ms = 20000
"#;

fn positions(events: &[RunStreamEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

fn allow(approval_id: &str) -> Up {
    Up::Approval(wire::AnswerApproval {
        approval_id: approval_id.to_owned(),
        decision: contract_to_wire(palyra_common::ApprovalDecision::Allow),
        scope: contract_to_wire(palyra_common::ApprovalScope::Once),
        minutes: None,
        reason: None,
    })
}

#[tokio::test]
async fn a_run_is_started_followed_and_read_again_from_anywhere() {
    let place = Place::new();
    place.write("notes.md", "hello\n");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut stream = grpc.start(&place, "list the files").await;
    let run_id = stream.run_id().await;
    let (events, _) = stream.rest().await;
    assert_eq!(positions(&events), (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.last().unwrap().is_terminal());
    // The same tape that HTTP gives, to the last field.
    assert_eq!(events, daemon.follow(run_id, 1).await);

    let id = run_id.to_string();
    for from in [0, 1, 2, events.len() as u64, events.len() as u64 + 1] {
        let (again, _) = grpc.resume(&id, from).await.rest().await;
        let expected = &events[usize::try_from(from.max(1)).unwrap() - 1..];
        assert_eq!(again, expected, "from {from}");
    }

    let tape = |from_seq, page_size| wire::GetRunTapeRequest { run_id: id.clone(), from_seq, page_size };
    let part = grpc.gateway.get_run_tape(tape(2, 2)).await.unwrap().into_inner();
    let read: Vec<RunStreamEvent> = part.events.into_iter().map(|event| event.try_into().unwrap()).collect();
    assert_eq!((read.as_slice(), part.next_seq), (&events[1..3], 4));
    let rest = grpc.gateway.get_run_tape(tape(4, 0)).await.unwrap().into_inner();
    assert_eq!((rest.events.len(), rest.next_seq), (events.len() - 3, 0));
}

#[tokio::test]
async fn a_question_is_answered_on_the_stream_and_a_wrong_answer_does_not_end_it() {
    let place = Place::new().with_script(WRITES).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut stream = grpc.start(&place, "write it").await;
    let asked = loop {
        if let RunStreamBody::ToolApprovalRequest(asked) = stream.event().await.body {
            break asked;
        }
    };
    assert!(!place.workspace().join("made.txt").exists());

    stream.say("wrong", allow("01JC0Q6F7Z8G9H0J1K2M3N4P5Q")).await;
    let receipt = stream.receipt().await;
    assert_eq!((receipt.request_id.as_str(), receipt.error.unwrap().code.as_str()), ("wrong", "approval_not_found"));
    stream.say("unreadable", allow("x")).await;
    assert_eq!(stream.receipt().await.error.unwrap().code, "proto_message_invalid");
    stream.say("start", Up::Start(wire::StartRun::default())).await;
    assert_eq!(stream.receipt().await.error.unwrap().code, "request_invalid");

    stream.say("right", allow(&asked.approval_id.to_string())).await;
    let (events, receipts) = stream.rest().await;
    assert_eq!(receipts.len(), 1);
    assert_eq!((receipts[0].request_id.as_str(), &receipts[0].error), ("right", &None));
    assert!(events.last().unwrap().is_terminal());
    assert_eq!(std::fs::read_to_string(place.workspace().join("made.txt")).unwrap(), "one\n");
}

#[tokio::test]
async fn an_answer_meant_for_another_run_is_refused() {
    let place = Place::new().with_script(WRITES).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut first = grpc.start(&place, "write it").await;
    let asked = loop {
        if let RunStreamBody::ToolApprovalRequest(asked) = first.event().await.body {
            break asked;
        }
    };
    let mut second = grpc.start(&place, "write it too").await;
    second.run_id().await;
    second.say("mixed up", allow(&asked.approval_id.to_string())).await;
    assert_eq!(second.receipt().await.error.unwrap().code, "approval_not_found");
    assert!(!place.workspace().join("made.txt").exists());
}

#[tokio::test]
async fn a_run_is_steered_and_stopped() {
    let place = Place::new().with_script(SLOW);
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut stream = grpc.start(&place, "think").await;
    let run_id = stream.run_id().await;
    let steer = wire::SteerRun { text: "and this".into(), mode: contract_to_wire(palyra_common::InputMode::FollowUp) };
    stream.say("steer", Up::Steer(steer)).await;
    assert_eq!(stream.receipt().await.error, None);
    stream.say("stop", Up::Abort(wire::StopRun { reason: Some("enough".into()) })).await;
    let (events, receipts) = stream.rest().await;
    assert_eq!((receipts[0].request_id.as_str(), &receipts[0].error), ("stop", &None));
    assert!(events.last().unwrap().is_terminal());
    let run = daemon.client.run(run_id).await.unwrap().run;
    assert_eq!(run.phase, RunLifecyclePhase::Aborted);
}

#[tokio::test]
async fn many_clients_see_the_same_tape() {
    let place = Place::new().with_script(WRITES);
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut first = grpc.start(&place, "write it").await;
    let id = first.run_id().await.to_string();
    let mut others = Vec::new();
    for _ in 0..8 {
        let mut client = Grpc::of(&daemon).await;
        others.push(client.resume(&id, 1).await);
    }
    let (tape, _) = first.rest().await;
    for other in others {
        assert_eq!(other.rest().await.0, tape);
    }
}

/// Far more than fits into the windows of a connection, so that a client that does not read really stops the stream.
fn long_script(pieces: usize) -> String {
    let piece = format!("{:?}", "a long answer ".repeat(1_000));
    format!("[[turn]]\ntext = [{}]\n", vec![piece; pieces].join(", "))
}

#[tokio::test]
async fn a_client_that_does_not_read_neither_stops_the_run_nor_loses_anything() {
    let place = Place::new().with_script(&long_script(200)).with("PALYRA_MODEL_CONTEXT_TOKENS", "100000000");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut stream = grpc.start(&place, "say a lot").await;
    let run_id = stream.run_id().await;
    // Another client follows to the end while this one reads nothing.
    let tape = daemon.follow(run_id, 1).await;
    assert!(tape.last().unwrap().is_terminal());
    assert_eq!(daemon.client.run(run_id).await.unwrap().run.phase, RunLifecyclePhase::Completed);
    let bytes: usize = tape.iter().map(|event| serde_json::to_vec(event).unwrap().len()).sum();
    assert!(bytes > 2 << 20, "{bytes} bytes could wait in buffers");
    let (events, _) = stream.rest().await;
    assert_eq!(events, tape);
}

#[tokio::test]
async fn an_event_that_fits_into_no_message_is_told_and_read_past() {
    let place = Place::new().with_script(&long_script(350));
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut stream = grpc.start(&place, "say far too much").await;
    let run_id = stream.run_id().await;
    let (mut seen, mut oversized) = (Vec::new(), Vec::new());
    while let Some(message) = stream.next().await.unwrap() {
        match message {
            Down::Event(event) => seen.push(event.seq),
            Down::Oversized(event) => {
                seen.push(event.seq);
                oversized.push(event);
            }
            Down::Receipt(_) => {}
        }
    }
    let tape = daemon.follow(run_id, 1).await;
    assert_eq!(seen, positions(&tape));
    assert!(!oversized.is_empty() && oversized.iter().all(|event| event.size_bytes > 4 << 20), "{oversized:?}");

    // In parts: every position once, and no part larger than a message.
    let (mut from_seq, mut parts, mut read) = (1, 0, Vec::new());
    while from_seq != 0 {
        let request = wire::GetRunTapeRequest { run_id: run_id.to_string(), from_seq, page_size: 2 };
        let part = grpc.gateway.get_run_tape(request).await.unwrap().into_inner();
        read.extend(part.events.iter().map(|event| event.seq).chain(part.oversized.iter().map(|event| event.seq)));
        from_seq = part.next_seq;
        parts += 1;
    }
    read.sort_unstable();
    assert_eq!(read, seen);
    assert!(parts > 1, "everything came at once");

    // An answer that cannot be made smaller is refused with its envelope.
    let whole = grpc.gateway.get_run(wire::GetRunRequest { run_id: run_id.to_string() }).await;
    assert_eq!(refused(whole), (Code::ResourceExhausted, "body_too_large".into()));
}

#[tokio::test]
async fn a_client_that_does_not_read_can_still_stop_its_run() {
    let place = Place::new().with_script(SLOW);
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut stream = grpc.start(&place, "think").await;
    let run_id = stream.run_id().await;
    stream.say("stop", Up::Abort(wire::StopRun { reason: None })).await;
    // Nothing is read from the stream here; the run ends all the same.
    let tape = daemon.follow(run_id, 1).await;
    assert!(tape.last().unwrap().is_terminal());
    drop(stream);
}

#[tokio::test]
async fn a_deadline_ends_the_stream_and_not_the_run() {
    let place = Place::new().with_script(SLOW);
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let start = wire::RunStreamRequest {
        request_id: String::new(),
        body: Some(Up::Start(wire::StartRun { run: Some(spec(&place, "think")), progress: false })),
    };
    let messages = tokio_stream::StreamExt::chain(tokio_stream::once(start), tokio_stream::pending());
    let mut request = Request::new(messages);
    request.metadata_mut().insert("grpc-timeout", "500m".parse().unwrap());
    let mut down = grpc.gateway.run_stream(request).await.unwrap().into_inner();
    let mut run_id = None;
    let ended = loop {
        match tokio::time::timeout(PATIENCE, down.message()).await.expect("the deadline is not kept") {
            Ok(Some(message)) => {
                if let Some(Down::Receipt(receipt)) = message.body {
                    run_id = Some(receipt.run_id);
                }
            }
            Ok(None) => panic!("the stream ended as if the run had"),
            Err(status) => break status,
        }
    };
    assert_eq!((ended.code(), error_from_status(&ended).code.as_str()), (Code::DeadlineExceeded, "deadline_exceeded"));
    let run = daemon.client.run(run_id.unwrap().parse().unwrap()).await.unwrap().run;
    assert!(!run.phase.is_terminal());
}

#[tokio::test]
async fn a_daemon_that_stops_says_so_and_the_stream_goes_on_after_its_restart() {
    let place = Place::new().with_script(WRITES).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut stream = grpc.start(&place, "write it").await;
    let mut seen = Vec::new();
    let asked = loop {
        let event = stream.event().await;
        seen.push(event.clone());
        if let RunStreamBody::ToolApprovalRequest(asked) = event.body {
            break asked;
        }
    };
    daemon.client.stop_daemon().await.unwrap();
    let ended = loop {
        match stream.next().await {
            Ok(Some(Down::Event(event))) => seen.push(event.try_into().unwrap()),
            Ok(Some(Down::Receipt(_) | Down::Oversized(_))) => {}
            Ok(None) => panic!("the stream ended as if the run had"),
            Err(status) => break status,
        }
    };
    assert_eq!((ended.code(), error_from_status(&ended).code.as_str()), (Code::Unavailable, "daemon_stopping"));
    daemon.ended().await;

    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let last = seen.last().unwrap().clone();
    let mut stream = grpc.resume(&last.run_id.to_string(), last.seq + 1).await;
    stream.run_id().await;
    stream.say("yes", allow(&asked.approval_id.to_string())).await;
    seen.extend(stream.rest().await.0);
    assert_eq!(seen, daemon.follow(last.run_id, 1).await);
}

#[tokio::test]
async fn the_first_message_must_begin_something() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let stop = Up::Abort(wire::StopRun::default());
    assert_eq!(refused(grpc.open(stop).await.map(drop)), (Code::InvalidArgument, "request_invalid".into()));
    let nothing = Up::Start(wire::StartRun::default());
    assert_eq!(refused(grpc.open(nothing).await.map(drop)), (Code::InvalidArgument, "proto_message_invalid".into()));
    let attempts = wire::RunSpec { max_attempts: Some(2), ..spec(&place, "think") };
    let attempts = Up::Start(wire::StartRun { run: Some(attempts), progress: false });
    let without_objective = refused(grpc.open(attempts).await.map(drop));
    assert_eq!(without_objective, (Code::InvalidArgument, "request_invalid".into()));
    let unknown =
        Up::Resume(wire::ResumeRun { run_id: palyra_common::RunId::generate().to_string(), ..Default::default() });
    assert_eq!(refused(grpc.open(unknown).await.map(drop)), (Code::NotFound, "run_not_found".into()));
}

#[tokio::test]
async fn a_task_comes_with_files_of_its_caller() {
    let place = Place::new().with_script("[[turn]]\necho = \"user\"");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let params = AddAttachmentParams { name: "note.txt".into(), data: "dGhlIGhlcm9uIGxhbmRlZA==".into() };
    let stored = daemon.client.add_attachment(&params).await.unwrap();
    let file = |artifact: String| wire::Attachment {
        name: stored.name.clone(),
        media_type: stored.media_type.clone(),
        artifact,
        size_bytes: stored.size_bytes,
    };
    let start = |file: wire::Attachment| {
        let run = wire::RunSpec { attachments: vec![file], ..spec(&place, "what does it say?") };
        Up::Start(wire::StartRun { run: Some(run), progress: false })
    };
    let mut stream = grpc.open(start(file(stored.artifact.to_string()))).await.unwrap();
    let run_id = stream.run_id().await;
    stream.rest().await;
    let answer = daemon.client.run(run_id).await.unwrap().answer.unwrap();
    assert!(answer.contains("the heron landed"), "{answer}");
    let unknown = start(file(format!("sha256:{}", "00".repeat(32))));
    assert_eq!(refused(grpc.open(unknown).await.map(drop)), (Code::InvalidArgument, "request_invalid".into()));
    let no_digest = start(file("file:///etc/passwd".into()));
    assert_eq!(refused(grpc.open(no_digest).await.map(drop)), (Code::InvalidArgument, "proto_message_invalid".into()));
}
