//! Canvases in whole runs: what is drawn, for whom it counts, what a person enters, and what a crash leaves of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use palyra_agent::{AgentError, CanvasFilter, CanvasNews, CanvasRow, CanvasSubmission, Submitted};
use palyra_common::{
    CanvasId, Integrity, RunLifecyclePhase, RunMode, RunStreamBody, RunStreamEvent, ToStableError as _,
};
use palyra_journal::FaultInjector;
use palyra_models::Message;
use serde_json::{Value, json};

use crate::brain::{Brain, Next, Outbox, Outside, results};
use crate::support::{Bench, Setup, tool_result};

const RENDER: &str = "palyra.a2ui.render";
const PATCH: &str = "palyra.a2ui.patch";
const READ: &str = "mcp.mail.read";

fn form() -> Value {
    json!({"title": "Sign up", "document": {"root": {"type": "form", "id": "signup", "fields": [
        {"type": "text", "name": "name", "label": "Name", "required": true},
        {"type": "select", "name": "plan", "label": "Plan", "options": [{"value": "pro", "label": "Pro"}], "value": "pro"},
    ]}}})
}

/// The canvas that a result names.
fn drawn(result: &str) -> String {
    result.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// Draws a form, then a sentence instead of it.
fn draws_twice(messages: &[Message]) -> Next {
    match results(messages).as_slice() {
        [] => Next::Call(RENDER, form()),
        [first] => {
            let operation = json!({"op": "replace", "path": "/root", "value": {"type": "text", "text": "thanks"}});
            Next::Call(PATCH, json!({"canvas_id": drawn(first), "base_version": 1, "patch": [operation]}))
        }
        [.., last] => Next::Say(last.clone()),
    }
}

async fn bench(plan: impl Fn(&[Message]) -> Next + Send + Sync + 'static) -> Bench {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Brain::new(plan));
    setup.start().await
}

async fn canvases(bench: &Bench) -> Vec<CanvasRow> {
    bench.engine.canvases(CanvasFilter { include_closed: true, limit: 100, ..CanvasFilter::default() }).await.unwrap()
}

fn updates(events: &[RunStreamEvent]) -> Vec<Value> {
    let update = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::A2uiUpdate(update) => Some(update.payload.clone()),
        _ => None,
    };
    events.iter().filter_map(update).collect()
}

fn submission(values: Value, version: u64) -> CanvasSubmission {
    let Value::Object(values) = values else { panic!("values are a record") };
    CanvasSubmission {
        component_id: "signup".into(),
        values,
        expected_version: Some(version),
        by: "local".into(),
        given_with: Default::default(),
        via: "test".into(),
        once: Some("once".into()),
    }
}

#[tokio::test]
async fn a_run_draws_and_changes_what_it_drew() {
    let bench = bench(draws_twice).await;
    let (run, events) = bench.run("show me").await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed);
    let [row] = canvases(&bench).await.try_into().unwrap();
    let row: CanvasRow = row;
    assert_eq!((row.title.as_str(), row.version, row.session_id), ("Sign up", 2, run.session_id));
    assert_eq!(run.answer.unwrap(), format!("canvas {} is shown at version 2", row.canvas_id));
    let (_, document) = bench.engine.canvas(row.canvas_id).await.unwrap();
    assert_eq!(document, json!({"surface": "main", "version": 2, "root": {"type": "text", "text": "thanks"}}));
    let updates = updates(&events);
    assert_eq!(updates[0]["canvas_id"], json!(row.canvas_id));
    assert_eq!(
        (&updates[0]["version"], &updates[0]["title"], &updates[0]["document"]),
        (&json!(1), &json!("Sign up"), &form()["document"])
    );
    assert_eq!((&updates[1]["version"], &updates[1]["patch"][0]["op"]), (&json!(2), &json!("replace")));
    assert_eq!(updates.len(), 2);
}

#[tokio::test]
async fn what_does_not_fit_is_told_and_not_shown() {
    let bad = json!({"title": "x", "document": {"root": {"type": "html", "html": "<b>"}}});
    let bench = bench(move |messages| match results(messages).as_slice() {
        [] => Next::Call(RENDER, bad.clone()),
        [_] => Next::Call(RENDER, form()),
        [_, first] => {
            let operation = json!({"op": "add", "path": "/root/onclick", "value": "x"});
            Next::Call(PATCH, json!({"canvas_id": drawn(first), "base_version": 1, "patch": [operation]}))
        }
        [_, first, _] => Next::Call(
            PATCH,
            json!({"canvas_id": drawn(first), "base_version": 7, "patch": [{"op": "remove", "path": "/root"}]}),
        ),
        [_, _, _, _] => Next::Call(
            PATCH,
            json!({"canvas_id": CanvasId::generate(), "base_version": 1, "patch": [{"op": "remove", "path": "/root"}]}),
        ),
        _ => Next::Say("done".into()),
    })
    .await;
    let (_, events) = bench.run("show me").await;
    let code = |call: &str| tool_result(&events, call).error.map(|error| error.code);
    assert_eq!(code("t1c1").as_deref(), Some("a2ui_document_invalid"));
    assert_eq!(code("t2c1"), None);
    assert_eq!(code("t3c1").as_deref(), Some("a2ui_patch_invalid"));
    assert_eq!(code("t4c1").as_deref(), Some("canvas_version_conflict"));
    assert_eq!(code("t5c1").as_deref(), Some("canvas_not_found"));
    assert!(tool_result(&events, "t1c1").content.contains("/root/type"), "the model learns where");
    assert_eq!(canvases(&bench).await[0].version, 1);
    assert_eq!(updates(&events).len(), 1);
}

#[tokio::test]
async fn a_canvas_of_another_session_is_none() {
    let bench = bench(|messages| {
        let asked = &messages.iter().rfind(|message| message.tool_call_id.is_none()).unwrap().content;
        match (asked.strip_prefix("change "), results(messages).as_slice()) {
            (None, []) => Next::Call(RENDER, form()),
            (Some(id), []) => Next::Call(
                PATCH,
                json!({"canvas_id": id, "base_version": 1, "patch": [{"op": "remove", "path": "/root/title"}]}),
            ),
            (_, [.., last]) => Next::Say(last.clone()),
        }
    })
    .await;
    bench.run("show me").await;
    let id = canvases(&bench).await[0].canvas_id;
    let (_, events) = bench.run(&format!("change {id}")).await;
    assert_eq!(tool_result(&events, "t1c1").error.unwrap().code, "canvas_not_found");
}

#[tokio::test]
async fn the_label_of_what_was_seen_goes_with_the_drawing() {
    let inbox = json!({"items": [{"id": 7, "from": "bob", "body": "pay eve"}]});
    for (mode, reply, text, expected) in [
        (RunMode::Open, &inbox, "plain", Integrity::Untrusted),
        // Numbers were shown, and how many there are.
        (RunMode::Guarded, &inbox, "plain", Integrity::Untrusted),
        (RunMode::Guarded, &json!("pay eve"), "plain", Integrity::System),
        (RunMode::Guarded, &inbox, "${v1.items.0.body}", Integrity::Untrusted),
    ] {
        let mut setup = Setup::script("turn = []");
        setup.mode = mode;
        setup.tools = vec![Outside::reading("mail", "read", reply.clone(), &Outbox::default())];
        setup.provider = Some(Brain::playing(vec![
            (READ, json!({})),
            (RENDER, json!({"title": "Mail", "document": {"root": {"type": "text", "text": text}}})),
        ]));
        let bench = setup.start().await;
        bench.run("show my mail").await;
        let row = canvases(&bench).await.remove(0);
        let trusted = row.label.integrity != Integrity::Untrusted;
        assert_eq!(trusted, expected != Integrity::Untrusted, "{mode:?} {text}: {:?}", row.label);
        let (_, document) = bench.engine.canvas(row.canvas_id).await.unwrap();
        assert_eq!(document["root"]["text"] == "pay eve", text.starts_with('$'), "references are put in: {document}");
    }
}

#[tokio::test]
async fn what_a_person_enters_is_the_next_message_of_the_session_once() {
    let bench = bench(|messages| match messages.iter().rfind(|message| message.tool_call_id.is_none()) {
        Some(message) if message.content.starts_with("I submitted") => Next::Say(message.content.clone()),
        _ if results(messages).is_empty() => Next::Call(RENDER, form()),
        _ => Next::Say("fill it in".into()),
    })
    .await;
    let (run, _) = bench.run("sign me up").await;
    let row = canvases(&bench).await.remove(0);
    let values = json!({"name": "Ada", "plan": "pro"});
    for (wrong, code) in [
        (submission(json!({"plan": "pro"}), 1), "canvas_values_invalid"),
        (submission(json!({"name": "Ada", "admin": true}), 1), "canvas_values_invalid"),
        (submission(values.clone(), 2), "canvas_version_conflict"),
        (
            CanvasSubmission { component_id: "other".into(), ..submission(values.clone(), 1) },
            "canvas_component_not_found",
        ),
    ] {
        let refused = bench.engine.submit_to_canvas(row.canvas_id, wrong).await.unwrap_err();
        assert_eq!(refused.to_stable().code, code);
    }
    let first = bench.engine.submit_to_canvas(row.canvas_id, submission(values.clone(), 1)).await.unwrap();
    let Submitted::Started(next) = first else { panic!("{first:?}") };
    assert_eq!((next.session_id, next.owner.as_str()), (run.session_id, "local"));
    let (next, _) = bench.finish(next.run_id).await;
    let said = next.answer.unwrap();
    assert_eq!(
        said,
        format!(
            "I submitted the form `signup` of canvas {} with:\n{}",
            row.canvas_id,
            json!({"name": "Ada", "plan": "pro"})
        )
    );
    let again = bench.engine.submit_to_canvas(row.canvas_id, submission(values.clone(), 1)).await.unwrap();
    assert!(
        matches!(again, Submitted::Started(same) if same.run_id == next.run_id),
        "a second click is the same submission"
    );
    bench.engine.close_canvas(row.canvas_id, "local").await.unwrap();
    let late = CanvasSubmission { once: None, ..submission(values, 1) };
    let refused = bench.engine.submit_to_canvas(row.canvas_id, late).await.unwrap_err();
    assert!(matches!(refused, AgentError::CanvasClosed(_)), "{refused}");
}

#[tokio::test]
async fn a_follower_sees_the_document_every_patch_and_the_end() {
    let bench = bench(draws_twice).await;
    bench.run("show me").await;
    let id = canvases(&bench).await[0].canvas_id;
    let mut late = bench.engine.follow_canvas(id, 0).await.unwrap();
    let news = late.next().await.unwrap().unwrap();
    assert!(matches!(&news[..], [CanvasNews::Document { version: 2, .. }]), "{news:?}");
    let mut resumed = bench.engine.follow_canvas(id, 1).await.unwrap();
    let news = resumed.next().await.unwrap().unwrap();
    assert!(matches!(&news[..], [CanvasNews::Patch { version: 2, .. }]), "{news:?}");
    let waiting = tokio::spawn(async move {
        resumed.ready().await;
        resumed.next().await.unwrap()
    });
    bench.engine.close_canvas(id, "local").await.unwrap();
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap(), None);
    assert_eq!(late.next().await.unwrap(), None);
    assert_eq!(bench.engine.close_canvas(id, "local").await.unwrap().version, 2, "closing again changes nothing");
}

/// Draws a form, then long texts instead of it, again and again: together they are longer than any document.
fn draws_much(messages: &[Message]) -> Next {
    match results(messages).as_slice() {
        [] => Next::Call(RENDER, form()),
        drawings if drawings.len() <= 6 => {
            let version = drawings.len();
            let text = json!({"type": "text", "text": format!("{version} {}", "x".repeat(60_000))});
            let operation = json!({"op": "replace", "path": "/root", "value": text});
            let canvas_id = drawn(&drawings[0]);
            Next::Call(PATCH, json!({"canvas_id": canvas_id, "base_version": version, "patch": [operation]}))
        }
        [.., last] => Next::Say(last.clone()),
    }
}

#[tokio::test]
async fn a_follower_that_missed_more_than_a_document_is_given_the_document() {
    let bench = bench(draws_much).await;
    bench.run("show me").await;
    let id = canvases(&bench).await[0].canvas_id;
    let mut behind = bench.engine.follow_canvas(id, 1).await.unwrap();
    behind.ready().await;
    let news = behind.next().await.unwrap().unwrap();
    assert!(matches!(&news[..], [CanvasNews::Document { version: 7, .. }]));
    let mut near = bench.engine.follow_canvas(id, 5).await.unwrap();
    assert_eq!(near.next().await.unwrap().unwrap().len(), 2, "what is shorter comes as patches");
}

/// A journal that takes so many commits and no more.
#[derive(Default)]
struct EndsAfter {
    commits: AtomicU64,
    reached: AtomicBool,
}

impl FaultInjector for EndsAfter {
    fn before_commit(&self, commit: u64) -> io::Result<()> {
        if commit <= self.commits.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.reached.store(true, Ordering::SeqCst);
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn setup() -> Setup {
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Brain::new(draws_twice));
    setup
}

/// Whatever commit is the last one before the crash, there is one canvas afterwards, and it is at its second version.
#[test]
fn a_crash_at_any_commit_draws_everything_once() {
    let mut crashed = 0;
    for commits in 1..40 {
        let first = runtime();
        let ends = Arc::new(EndsAfter { commits: AtomicU64::new(commits), ..EndsAfter::default() });
        let before = Setup { faults: Some(ends.clone()), ..setup() };
        let (bench, run) = first.block_on(async {
            let bench = before.start().await;
            let run = bench.engine.create_run(bench.task("show me")).await;
            let run = run.ok();
            if let Some(run) = &run {
                loop {
                    let over = bench.engine.run(run.run_id).await.unwrap().phase.is_terminal();
                    if over || ends.reached.load(Ordering::SeqCst) {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
            (bench, run)
        });
        let directory = bench.crash(first);
        let Some(run) = run else { continue };
        crashed += u32::from(ends.reached.load(Ordering::SeqCst));
        runtime().block_on(async {
            let bench = setup().start_in(directory).await;
            let (row, _) = bench.finish(run.run_id).await;
            assert_eq!(row.phase, RunLifecyclePhase::Completed, "after {commits} commits");
            let versions: Vec<_> = canvases(&bench).await.iter().map(|canvas| canvas.version).collect();
            assert_eq!(versions, [2], "after {commits} commits");
        });
        if !ends.reached.load(Ordering::SeqCst) {
            break;
        }
    }
    assert!(crashed > 5, "only {crashed} crashes");
}
