//! Sessions: beginning and finding them, changing them, listing them.

use palyra_agent::{
    ArchiveState, Archived, Engine, NewRun, NewSession, Resolved, RunFilter, RunSpec, SessionFilter, SessionSettings,
};
use palyra_common::{RunId, RunMode, SessionId, SystemClock, ToStableError as _};
use palyra_journal::{Journal, JournalOptions, NewRecord};
use serde_json::json;

use crate::support::{Bench, Setup};

const OK: &str = "[[turn]]\ntext = \"ok\"";

fn owned(owner: &str, key: Option<&str>) -> NewSession {
    NewSession { owner: owner.into(), key: key.map(str::to_owned), ..NewSession::default() }
}

async fn listed(engine: &Engine, filter: SessionFilter) -> Vec<String> {
    engine.sessions(filter).await.unwrap().into_iter().map(|row| row.title).collect()
}

async fn spec_of(bench: &Bench, run: RunId) -> RunSpec {
    bench.finish(run).await;
    bench.engine.replay(run).await.unwrap().machine.spec().clone()
}

#[tokio::test]
async fn a_chosen_id_gives_the_same_session_or_a_conflict() {
    let bench = Setup::script(OK).start().await;
    let id = SessionId::generate();
    let new = || NewSession { session_id: Some(id), title: Some("plans".into()), ..owned("ada", Some("k")) };
    let first = bench.engine.create_session(new()).await.unwrap();
    assert_eq!((first.session_id, first.owner.as_str(), first.version), (id, "ada", 1));
    bench.engine.rename_session(id, "other plans".into(), "ada", None).await.unwrap();
    let again = bench.engine.create_session(new()).await.unwrap();
    assert_eq!(
        (again.title.as_str(), again.version),
        ("other plans", 2),
        "the request is the same, whatever came later"
    );
    let other = NewSession { title: Some("something else".into()), ..new() };
    assert_eq!(bench.engine.create_session(other).await.unwrap_err().to_stable().code, "session_exists");
    let taken = bench.engine.create_session(owned("ada", Some("k"))).await.unwrap_err();
    assert_eq!(taken.to_stable().code, "session_key_taken");
    for title in ["", "two\nlines", &"x".repeat(201)] {
        let wrong = NewSession { title: Some(title.into()), ..owned("ada", None) };
        assert_eq!(bench.engine.create_session(wrong).await.unwrap_err().to_stable().code, "session_field_invalid");
    }
}

#[tokio::test]
async fn keys_belong_to_their_owners() {
    let bench = Setup::script(OK).start().await;
    let (ada, how) = bench.engine.resolve_session("ada", "work", None).await.unwrap();
    assert_eq!(how, Resolved::Created);
    let (bob, _) = bench.engine.resolve_session("bob", "work", Some("Bob's".into())).await.unwrap();
    assert_ne!(ada.session_id, bob.session_id);
    let (again, how) = bench.engine.resolve_session("ada", "work", Some("ignored".into())).await.unwrap();
    assert_eq!((again, how), (ada.clone(), Resolved::Found));
    let run = |owner: &str| NewRun {
        session_key: Some("work".into()),
        owner: Some(owner.into()),
        idempotency_key: Some("same".into()),
        ..bench.task("x")
    };
    let adas = bench.engine.create_run(run("ada")).await.unwrap();
    let bobs = bench.engine.create_run(run("bob")).await.unwrap();
    assert_eq!((adas.session_id, bobs.session_id), (ada.session_id, bob.session_id));
    assert_eq!((adas.owner.as_str(), bobs.owner.as_str()), ("ada", "bob"));
    let filter = RunFilter { owner: Some("bob".into()), limit: 10, ..RunFilter::default() };
    let of_bob: Vec<_> = bench.engine.runs(filter).await.unwrap().into_iter().map(|run| run.run_id).collect();
    assert_eq!(of_bob, [bobs.run_id]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_come_at_once_get_one_session_and_one_of_them_changes_it() {
    let bench = Setup::script(OK).start().await;
    let resolved = futures::future::join_all((0..8).map(|_| bench.engine.resolve_session("ada", "k", None))).await;
    let created = resolved.iter().filter(|result| result.as_ref().unwrap().1 == Resolved::Created).count();
    assert_eq!(created, 1);
    let id = resolved[0].as_ref().unwrap().0.session_id;
    let renames = (0..8).map(|n| bench.engine.rename_session(id, format!("title {n}"), "ada", Some(1)));
    let renamed = futures::future::join_all(renames).await;
    assert_eq!(renamed.iter().filter(|result| result.is_ok()).count(), 1);
    let keyed = || NewRun { session_key: Some("new".into()), idempotency_key: Some("i".into()), ..bench.task("x") };
    let runs = futures::future::join_all((0..4).map(|_| bench.engine.create_run(keyed()))).await;
    let first = runs[0].as_ref().unwrap().run_id;
    assert!(runs.iter().all(|run| run.as_ref().unwrap().run_id == first), "{runs:?}");
}

#[tokio::test]
async fn a_change_is_made_to_the_session_that_was_seen() {
    let bench = Setup::script(OK).start().await;
    let session = bench.engine.create_session(owned("local", None)).await.unwrap();
    let id = session.session_id;
    let renamed = bench.engine.rename_session(id, "one".into(), "me", Some(1)).await.unwrap();
    assert_eq!((renamed.title.as_str(), renamed.version), ("one", 2));
    let error = bench.engine.rename_session(id, "two".into(), "me", Some(1)).await.unwrap_err().to_stable();
    assert_eq!(error.code, "version_conflict");
    assert_eq!(*error.details.unwrap(), json!({ "expected": 1, "actual": 2 }));
    let run = bench.engine.create_run(NewRun { session_id: Some(id), ..bench.task("x") }).await.unwrap();
    bench.finish(run.run_id).await;
    assert_eq!(bench.engine.session(id).await.unwrap().version, 3, "a run counts");
    let late = NewRun { session_id: Some(id), expected_version: Some(2), ..bench.task("x") };
    assert_eq!(bench.engine.create_run(late).await.unwrap_err().to_stable().code, "version_conflict");
    let same = bench.engine.rename_session(id, "one".into(), "me", Some(3)).await.unwrap();
    assert_eq!(same.version, 3, "what changes nothing is no change");
    let missing = bench.engine.rename_session(SessionId::generate(), "x".into(), "me", None).await.unwrap_err();
    assert_eq!(missing.to_stable().code, "session_not_found");
}

#[tokio::test]
async fn an_archived_session_takes_no_runs_until_it_is_taken_out() {
    let bench = Setup::script(OK).start().await;
    let id = bench.engine.create_session(owned("local", None)).await.unwrap().session_id;
    let archived = bench.engine.archive_session(id, ArchiveState::Archived, "me", None).await.unwrap();
    assert!(archived.archived_at.is_some());
    let run = || NewRun { session_id: Some(id), ..bench.task("x") };
    assert_eq!(bench.engine.create_run(run()).await.unwrap_err().to_stable().code, "session_archived");
    let back = bench.engine.archive_session(id, ArchiveState::Active, "me", Some(2)).await.unwrap();
    assert_eq!((back.archived_at, back.version), (None, 3));
    bench.engine.create_run(run()).await.unwrap();
}

#[tokio::test]
async fn runs_take_from_their_session_what_they_are_not_told() {
    let bench = Setup::script(OK).start().await;
    let id = bench.engine.create_session(owned("local", None)).await.unwrap().session_id;
    let bare = || NewRun { session_id: Some(id), workspace: String::new(), ..bench.task("x") };
    assert_eq!(bench.engine.create_run(bare()).await.unwrap_err().to_stable().code, "workspace_missing");
    let workspace = bench.directory.path().join("work").display().to_string();
    let settings = SessionSettings { model: Some("special".into()), workspace: Some(workspace.clone()), agent: None };
    bench.engine.set_session_settings(id, settings.clone(), "me", None).await.unwrap();
    let row = bench.engine.set_session_mode(id, Some(RunMode::Strict), "me", None).await.unwrap();
    assert_eq!((row.mode, row.settings), (Some(RunMode::Strict), settings));
    let run = bench.engine.create_run(bare()).await.unwrap();
    assert!(run.model.ends_with("/special") && run.workspace.ends_with("work"), "{run:?}");
    assert_eq!(spec_of(&bench, run.run_id).await.mode, RunMode::Strict);
    let told = NewRun { mode: Some(RunMode::Open), model: Some("mine".into()), ..bare() };
    let told = bench.engine.create_run(told).await.unwrap();
    assert!(told.model.ends_with("/mine"));
    assert_eq!(spec_of(&bench, told.run_id).await.mode, RunMode::Open);
}

#[tokio::test]
async fn lists_are_by_newest_activity_and_go_on_where_a_page_ended() {
    let bench = Setup::script(OK).start().await;
    let mut ids = Vec::new();
    for (title, owner) in [("a", "ada"), ("b", "bob"), ("c", "ada"), ("d", "ada")] {
        let new = NewSession { title: Some(title.into()), ..owned(owner, None) };
        ids.push(bench.engine.create_session(new).await.unwrap().session_id);
    }
    let run = NewRun { session_id: Some(ids[0]), ..bench.task("x") };
    bench.engine.create_run(run).await.unwrap();
    bench.engine.archive_session(ids[2], ArchiveState::Archived, "ada", None).await.unwrap();
    let filter = |archived| SessionFilter { archived, limit: 10, ..SessionFilter::default() };
    assert_eq!(listed(&bench.engine, filter(Archived::Include)).await, ["c", "a", "d", "b"]);
    assert_eq!(listed(&bench.engine, filter(Archived::Hide)).await, ["a", "d", "b"]);
    assert_eq!(listed(&bench.engine, filter(Archived::Only)).await, ["c"]);
    let adas = SessionFilter { owner: Some("ada".into()), ..filter(Archived::Hide) };
    assert_eq!(listed(&bench.engine, adas.clone()).await, ["a", "d"]);
    let page = bench.engine.sessions(SessionFilter { limit: 1, ..adas.clone() }).await.unwrap();
    let next = SessionFilter { before: Some(page[0].activity), ..adas };
    assert_eq!(listed(&bench.engine, next).await, ["d"]);
}

#[tokio::test]
async fn older_journals_are_read_again_with_the_local_user_as_owner() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("work")).unwrap();
    let id = SessionId::generate();
    {
        let mut options = JournalOptions::at(directory.path().join("state"));
        options.min_free_bytes = 0;
        let journal = Journal::open(options).unwrap();
        let payload = json!({ "session_id": id, "key": "old", "title": "from before" }).to_string();
        let at = palyra_common::Clock::now(&SystemClock);
        journal.append(vec![NewRecord::new("session.created", at, payload.into()).in_session(id)]).await.unwrap();
        journal.close().await.unwrap();
    }
    let bench = Setup::script(OK).start_in(directory).await;
    let (row, how) = bench.engine.resolve_session("local", "old", None).await.unwrap();
    assert_eq!((row.session_id, row.owner.as_str(), how), (id, "local", Resolved::Found));
    let run = NewRun { session_key: Some("old".into()), ..bench.task("x") };
    assert_eq!(bench.engine.create_run(run).await.unwrap().session_id, id);
}
