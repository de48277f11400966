//! A client that leaves at each moment at which its request could be dropped: after every number of polls, both while what was begun goes on and when it is just done.
//!
//! The same is done with a daemon that dies at any moment, and with a journal that fails at any moment.
//!
//! Every command of the catalogue that changes something is tried. Whoever gives it again under its key gets an outcome, and what is on the journal is what one
//! undisturbed execution leaves there. At the end a daemon that knows the journal alone answers what this one answers from memory.

#[path = "to_the_end_cases.rs"]
mod cases;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use palyra_client::command::{self, Command};
use palyra_common::config::{self, LoadedConfig};
use palyra_common::{AcpCommand, CommandEffect, Environment, RequestId, SystemClock, paths};
use palyra_journal::FaultInjector;
use palyra_telemetry::InheritedSockets;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::auth::{Access, Peer, Shown};
use crate::bootstrap::open;
use crate::composition::Composition;
use crate::dispatch::after_crash::Traces;
use crate::dispatch::facts::facts;
use crate::dispatch::{Asked, Caller, Transport, perform};
use crate::http::Front;
use crate::state::StateRoot;
use crate::telemetry;

/// Longer than anything here takes, so that a hang fails instead of blocking.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is read from memory, and has to be what a daemon reads that starts on the same journal.
const KEPT: [AcpCommand; 9] = [
    AcpCommand::TokenList,
    AcpCommand::WorkspaceList,
    AcpCommand::SkillList,
    AcpCommand::PublisherList,
    AcpCommand::AgentList,
    AcpCommand::BindingList,
    AcpCommand::DeviceList,
    AcpCommand::PatternList,
    AcpCommand::HookList,
];

/// When a request is dropped that is not ready yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// As soon as it waits: what it waits for is still under way.
    Waiting,
    /// When it would be asked again: what it waited for is done, and nothing that follows it.
    Woken,
}

/// A daemon in this process, whose only client is the test.
struct Daemon {
    app: Arc<App>,
    front: Front,
}

impl Daemon {
    async fn open(environment: &Environment, root: &StateRoot, loaded: &LoadedConfig) -> Self {
        Self::compose(Composition::new(environment.clone()), environment, root, loaded).await
    }

    async fn compose(
        composition: Composition,
        environment: &Environment,
        root: &StateRoot,
        loaded: &LoadedConfig,
    ) -> Self {
        let inherited = InheritedSockets::take(environment).unwrap();
        let metrics = telemetry::metrics(&SystemClock);
        let (parts, _) = tokio::task::block_in_place(|| composition.parts(root, loaded, metrics, inherited)).unwrap();
        let app = open(parts, CancellationToken::new()).await.unwrap().app;
        Self { front: Front::new(Arc::clone(&app)), app }
    }

    /// A request as it comes in over the Unix socket; its body is not there at once.
    fn request(&self, command: AcpCommand, params: &Value, key: Option<&str>) -> Pin<Box<dyn Future<Output = Value>>> {
        let mut envelope = json!({"request_id": RequestId::generate(), "command": command, "params": params});
        if let Some(key) = key {
            envelope["idempotency_key"] = json!(key);
        }
        self.post("/acp/v1/command", None, envelope.to_string())
    }

    /// A request to the interface of OpenAI.
    fn openai(&self, path: &str, body: &Value, key: &str) -> Pin<Box<dyn Future<Output = Value>>> {
        self.post(path, Some(key), body.to_string())
    }

    fn post(&self, path: &str, key: Option<&str>, text: String) -> Pin<Box<dyn Future<Output = Value>>> {
        let body = Body::from_stream(futures::stream::once(async move {
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(text)
        }));
        let mut request = http::Request::post(path);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(Peer::Unix { uid: rustix::process::geteuid().as_raw() });
        let front = self.front.clone();
        Box::pin(async move {
            let answer: Response = front.routed(request).await;
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            serde_json::from_slice(&bytes).unwrap()
        })
    }

    /// Gives a command that has to succeed.
    async fn done(&self, command: AcpCommand, params: Value) -> Value {
        let answer = self.request(command, &params, None).await;
        assert!(answer.get("error").is_none_or(Value::is_null), "{command} {params}: {answer}");
        answer["result"].clone()
    }

    /// Whoever is at the other end of the Unix socket.
    fn owner(&self) -> Caller {
        let peer = Peer::Unix { uid: rustix::process::geteuid().as_raw() };
        let (uri, headers) = (http::Uri::from_static("/"), http::HeaderMap::new());
        let method = &http::Method::POST;
        let shown = Shown { peer: Some(&peer), connection: None, method, uri: &uri, headers: &headers };
        Caller::new(self.app.gate.admit(&shown, Access::Known).unwrap().unwrap(), Transport::Http)
    }

    async fn last_seq(&self) -> u64 {
        self.app.journal.read(|reader| Ok(reader.head()?.count)).await.unwrap()
    }

    /// What stands on the journal after a position, by kind: without the tapes of runs, and what is noted about keys apart.
    async fn left_since(&self, seq: u64) -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
        let mut left = (BTreeMap::new(), BTreeMap::new());
        for record in self.app.journal.read(move |reader| reader.range(seq + 1, 10_000)).await.unwrap() {
            let about_keys = record.kind.starts_with("command.");
            if record.run_id.is_none() {
                let counts = if about_keys { &mut left.1 } else { &mut left.0 };
                *counts.entry(record.kind.into_owned()).or_default() += 1;
            }
        }
        left
    }

    /// How often the first commit of a command was made, by its key.
    async fn effects_since(&self, seq: u64) -> BTreeMap<String, usize> {
        let mut effects = BTreeMap::new();
        for record in self.app.journal.read(move |reader| reader.range(seq + 1, 10_000)).await.unwrap() {
            if record.kind == "command.effect" {
                let effect: Value = serde_json::from_slice(&record.payload).unwrap();
                *effects.entry(effect["key"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
        effects
    }

    /// Waits until the journal can be written, whatever kept it from that.
    async fn can_record(&self) {
        let recovered = async {
            while self.app.journal.admission().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, recovered).await.expect("the journal does not recover");
    }

    /// Waits until nothing is carried out any more.
    async fn settle(&self) {
        let settled = async {
            while !self.app.work.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, settled).await.expect("a command does not come to its end");
    }
}

/// Polls a request so often, then drops it; its answer if it was ready by then.
async fn cut_after<T>(polls: usize, moment: Moment, mut request: Pin<Box<dyn Future<Output = T> + '_>>) -> Option<T> {
    let mut polled = 0;
    poll_fn(move |context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        match request.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if polled == polls && moment == Moment::Waiting => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// The code of a refusal, or nothing.
fn code(answer: &Value) -> Option<&str> {
    answer["error"]["code"].as_str()
}

fn changing_commands() -> impl Iterator<Item = AcpCommand> {
    AcpCommand::ALL.iter().copied().filter(|command| {
        let changes = command::spec(*command).is_some_and(|spec| spec.effect != CommandEffect::Read);
        let streams = command::STREAM_COMMANDS.iter().any(|spec| spec.name == *command);
        // Stopping leaves nobody to ask, and no provider here could be asked what it offers.
        changes && !streams && !matches!(command, AcpCommand::DaemonStop | AcpCommand::ModelsOffered)
    })
}

fn environment(directory: &Path) -> Environment {
    let workspace = directory.join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(directory.join("script.toml"), cases::SCRIPT).unwrap();
    let (off, home) = ("false".to_owned(), directory.display().to_string());
    Environment::from_pairs([
        ("HOME", home),
        ("PALYRA_STATE_ROOT", directory.join("state").display().to_string()),
        ("PALYRA_MODEL_PROVIDER", "scripted".to_owned()),
        ("PALYRA_MODEL_SCRIPT", directory.join("script.toml").display().to_string()),
        ("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write".to_owned()),
        ("PALYRA_RUN_MAX_CONCURRENT", "10000".to_owned()),
        ("PALYRA_RATE_BURST", "100000".to_owned()),
        ("PALYRA_DAEMON_HTTP_ENABLED", off.clone()),
        ("PALYRA_GRPC_ENABLED", off.clone()),
        ("PALYRA_QUIC_ENABLED", off),
    ])
}

#[test]
fn a_client_that_leaves_at_any_moment_finds_one_execution_and_its_outcome() {
    let directory = tempfile::tempdir().unwrap();
    let environment = environment(directory.path());
    let loaded = config::load(&environment).unwrap();
    let root = StateRoot::claim(paths::state_root(&environment).unwrap()).unwrap();
    let before = lives(async {
        let daemon = Daemon::open(&environment, &root, &loaded).await;
        let mut cases = cases::Cases::new(&daemon, &directory.path().join("workspace")).await;
        let mut failed = Vec::new();
        for command in changing_commands() {
            let tried = AssertUnwindSafe(leave_at_every_moment(&daemon, &mut cases, command)).catch_unwind().await;
            failed.extend(tried.err().map(|_| command));
        }
        assert!(failed.is_empty(), "{failed:?}");
        let kept = kept(&daemon).await;
        daemon.app.engine.stop(Duration::from_secs(5)).await;
        daemon.app.journal.clone().close().await.unwrap();
        kept
    });
    let after = lives(async { kept(&Daemon::open(&environment, &root, &loaded).await).await });
    for (before, after) in before.into_iter().zip(after) {
        assert_eq!(before, after, "memory said something else than the journal");
    }
}

/// The same over `/v1`, where one request is several commands: a conversation that begins, and results of the client's own tools.
#[test]
fn a_client_of_openai_that_leaves_at_any_moment_finds_one_run_and_its_answer() {
    let directory = tempfile::tempdir().unwrap();
    let environment = environment(directory.path());
    let loaded = config::load(&environment).unwrap();
    let root = StateRoot::claim(paths::state_root(&environment).unwrap()).unwrap();
    lives(async {
        let daemon = Daemon::open(&environment, &root, &loaded).await;
        for moment in [Moment::Waiting, Moment::Woken] {
            for polls in 0.. {
                let at = format!("left {moment:?} after {polls} polls");
                let asked = json!([{ "role": "user", "content": "say it" }]);
                let began = converse(&daemon, moment, polls, &at, asked, ("said", 1)).await;
                let mut messages = vec![json!({ "role": "user", "content": "look it up" })];
                let handed_back = daemon.openai(CHAT, &chat(&json!(messages)), &format!("{at}, a call")).await;
                let message = handed_back["choices"][0]["message"].clone();
                let call = message["tool_calls"][0]["id"].clone();
                assert!(call.is_string(), "{at}: {handed_back}");
                messages.extend([message, json!({ "role": "tool", "tool_call_id": call, "content": "found" })]);
                let at = format!("{at}, its result");
                let delivered = converse(&daemon, moment, polls, &at, json!(messages), ("looked up", 0)).await;
                if began && delivered {
                    break;
                }
            }
        }
        daemon.app.engine.stop(Duration::from_secs(5)).await;
        daemon.app.journal.clone().close().await.unwrap();
    });
}

const CHAT: &str = "/v1/chat/completions";

fn chat(messages: &Value) -> Value {
    let look_up = json!({ "name": "look_up", "parameters": { "type": "object" } });
    json!({ "model": "palyra", "messages": messages, "tools": [{ "type": "function", "function": look_up }] })
}

/// Leaves during a request and makes it again; it has this answer and begins so many runs. Whether it was answered the first time.
async fn converse(
    daemon: &Daemon,
    moment: Moment,
    polls: usize,
    at: &str,
    messages: Value,
    (answer, begins): (&str, usize),
) -> bool {
    let (body, begun) = (chat(&messages), daemon.last_seq().await);
    let answered = cut_after(polls, moment, daemon.openai(CHAT, &body, at)).await;
    for _ in 0..2 {
        let again = daemon.openai(CHAT, &body, at).await;
        assert_eq!(again["choices"][0]["message"]["content"], answer, "{at}: {again}");
    }
    daemon.settle().await;
    let since = daemon.app.journal.read(move |reader| reader.range(begun + 1, 10_000)).await.unwrap();
    assert_eq!(since.iter().filter(|record| record.kind == "run.accepted").count(), begins, "{at}");
    let results = since.iter().filter(|record| record.kind == "tool.finished").count();
    assert_eq!(results, 1 - begins, "{at}");
    answered.is_some()
}

/// Does work on a runtime of its own, whose tasks all end with it.
fn lives<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(PATIENCE);
    done
}

/// A command that its daemon did not live to answer.
struct Unanswered {
    command: AcpCommand,
    params: Value,
    key: String,
    /// What a daemon that knows nothing of it has to be handed over again.
    upload: Option<Value>,
    /// It was answered after all, and nobody heard it.
    was_carried_out: bool,
}

/// As above, but the daemon dies: what it was doing is dropped wherever it stands, with all that it had in memory, and another one starts on the same journal. Each
/// daemon is given all commands that none before it has carried out yet, and each of them is dropped after as many polls.
#[test]
fn a_daemon_that_died_at_any_moment_leaves_commands_whose_outcome_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let environment = environment(directory.path());
    let loaded = config::load(&environment).unwrap();
    let root = StateRoot::claim(paths::state_root(&environment).unwrap()).unwrap();
    let mut cases = None;
    let mut left: Vec<AcpCommand> = changing_commands().collect();
    for polls in 0.. {
        let (begun, died) = lives(async {
            let daemon = Daemon::open(&environment, &root, &loaded).await;
            if cases.is_none() {
                cases = Some(cases::Cases::new(&daemon, &directory.path().join("workspace")).await);
            }
            let begun = daemon.last_seq().await;
            let died = die_after(polls, &daemon, cases.as_mut().unwrap(), &left).await;
            daemon.app.journal.clone().close().await.unwrap();
            (begun, died)
        });
        lives(async {
            let daemon = Daemon::open(&environment, &root, &loaded).await;
            for unanswered in &died {
                give_again(&daemon, unanswered).await;
            }
            let effects = daemon.effects_since(begun).await;
            for Unanswered { command, params, key, .. } in &died {
                let journaled =
                    matches!(facts(&read(*command, params)).traces, Traces::Journaled(_) | Traces::Removed(_));
                // None for those that find nothing to change.
                let done = effects.get(key).copied().unwrap_or_default();
                assert!(!journaled || done <= 1, "{key}: done {done} times");
            }
            daemon.app.journal.clone().close().await.unwrap();
        });
        left = died.iter().filter(|given| !given.was_carried_out).map(|given| given.command).collect();
        if left.is_empty() {
            break;
        }
    }
}

/// Gives commands under keys, and drops each after so many polls.
async fn die_after(
    polls: usize,
    daemon: &Daemon,
    cases: &mut cases::Cases,
    commands: &[AcpCommand],
) -> Vec<Unanswered> {
    let mut given = Vec::new();
    for command in commands.iter().copied() {
        let params = cases.prepare(daemon, command).await;
        // An answer with a secret is not kept under a key.
        if matches!(facts(&read(command, &params)).traces, Traces::Secret) {
            continue;
        }
        let key = format!("{command} dropped after {polls} polls");
        given.push(Unanswered { command, params, key, upload: cases.uploaded(), was_carried_out: false });
    }
    let caller = daemon.owner();
    for given in &mut given {
        let asked = Asked {
            command: read(given.command, &given.params),
            idempotency_key: Some(given.key.clone()),
            expected_version: None,
        };
        let working = perform(&daemon.app, &caller, asked);
        let answer = cut_after(polls, Moment::Woken, Box::pin(working)).await;
        let refused = answer.as_ref().and_then(|answer| answer.as_ref().err()).map(|refusal| &refusal.envelope().code);
        assert!(
            refused.is_none_or(|code| Some(code.as_str()) == cases::refusal(given.command)),
            "{}: {refused:?}",
            given.key
        );
        given.was_carried_out = answer.is_some();
    }
    given
}

/// Gives a command again to a daemon that knows the journal alone.
async fn give_again(daemon: &Daemon, unanswered: &Unanswered) {
    let Unanswered { command, params, key, upload, .. } = unanswered;
    if let Some(upload) = upload {
        daemon.done(AcpCommand::SkillUpload, upload.clone()).await;
    }
    let again = daemon.request(*command, params, Some(key)).await;
    if matches!(command, AcpCommand::JournalBackup | AcpCommand::SkillCall) && code(&again).is_some() {
        // What these do beside the journal may have happened or not, and the answer says so. Of any other command it can be known.
        assert_eq!(code(&again), Some("command_outcome_unknown"), "{key}: {again}");
        return;
    }
    assert_eq!(code(&again), cases::refusal(*command), "{key}: {again}");
    let third = daemon.request(*command, params, Some(key)).await;
    if *command != AcpCommand::RunCreate {
        assert_eq!(third["result"], again["result"], "{key}");
    }
    match command {
        AcpCommand::SkillInstall => assert_eq!(again["result"]["status"], "enabled", "{key}: {again}"),
        AcpCommand::PublisherImport => assert!(again["result"]["new_key"].is_string(), "{key}: {again}"),
        AcpCommand::PublisherRevokeKey => assert_eq!(again["result"]["key_id"], params["key_id"], "{key}: {again}"),
        AcpCommand::SessionCompactApply => {
            let summarised = again["result"]["summarised"].as_array().map(Vec::len);
            assert_eq!((summarised, &again["result"]["applied"]), (Some(2), &json!(true)), "{key}: {again}");
        }
        AcpCommand::FileEndorse => assert_eq!(again["result"]["path"], params["path"], "{key}: {again}"),
        _ => {}
    }
}

fn read(command: AcpCommand, params: &Value) -> Command {
    Command::from_value(command, params.clone()).unwrap().unwrap()
}

async fn kept(daemon: &Daemon) -> Vec<Value> {
    let mut kept = Vec::new();
    for command in KEPT {
        kept.push(daemon.done(command, json!({})).await);
    }
    kept
}

/// What a command comes to if nothing happens meanwhile, and what it leaves on the journal.
async fn undisturbed(
    daemon: &Daemon,
    cases: &mut cases::Cases,
    command: AcpCommand,
) -> (Value, BTreeMap<String, usize>) {
    let mut outcome = None;
    // The first time may make what is made once.
    for _ in 0..2 {
        let params = cases.prepare(daemon, command).await;
        let begun = daemon.last_seq().await;
        let answer = daemon.request(command, &params, None).await;
        daemon.settle().await;
        outcome = Some((answer, daemon.left_since(begun).await.0));
    }
    let (answer, left) = outcome.unwrap();
    assert_eq!(code(&answer), cases::refusal(command), "{command}: {answer}");
    (answer, left)
}

/// Leaves during one command at every moment, each time on things of its own.
async fn leave_at_every_moment(daemon: &Daemon, cases: &mut cases::Cases, command: AcpCommand) {
    let (undisturbed, expected) = undisturbed(daemon, cases, command).await;
    for moment in [Moment::Waiting, Moment::Woken] {
        for polls in 0.. {
            let at = format!("{command} left {moment:?} after {polls} polls");
            let params = cases.prepare(daemon, command).await;
            let begun = daemon.last_seq().await;
            // An answer with a secret is not kept under a key.
            let secret = matches!(facts(&read(command, &params)).traces, Traces::Secret);
            let key = (!secret).then(|| at.clone());
            let answered = cut_after(polls, moment, daemon.request(command, &params, key.as_deref())).await;
            if secret {
                daemon.settle().await;
                let (left, _) = daemon.left_since(begun).await;
                assert!(left == expected || left.is_empty(), "{at}: {left:?} instead of {expected:?}");
            } else {
                let again = daemon.request(command, &params, key.as_deref()).await;
                assert_eq!(code(&again), code(&undisturbed), "{at}: {again}");
                let (left, about_key) = daemon.left_since(begun).await;
                assert_eq!(left, expected, "{at}");
                let effects = about_key.get("command.effect").copied().unwrap_or_default();
                assert!(effects <= 1, "{at}: {about_key:?}");
                let third = daemon.request(command, &params, key.as_deref()).await;
                if code(&again).is_none() && command != AcpCommand::RunCreate {
                    assert_eq!(third["result"], again["result"], "{at}");
                }
                assert_eq!(daemon.left_since(begun).await.0, expected, "{at}: given a third time");
            }
            if answered.is_some() {
                break;
            }
        }
    }
}

/// Lets one operation of the journal fail, a commit or a read: the n-th after it was armed.
#[derive(Debug, Default)]
struct FailsOnce {
    left: AtomicU64,
    has_failed: AtomicBool,
}

impl FailsOnce {
    fn arm(&self, at: u64) {
        self.left.store(at, Ordering::SeqCst);
    }

    /// Nothing fails from now on. Whether something did.
    fn disarm(&self) -> bool {
        self.left.store(0, Ordering::SeqCst);
        self.has_failed.swap(false, Ordering::SeqCst)
    }

    fn operation(&self, failure: io::ErrorKind) -> io::Result<()> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left != Ok(1) {
            return Ok(());
        }
        self.has_failed.store(true, Ordering::SeqCst);
        Err(failure.into())
    }
}

impl FaultInjector for FailsOnce {
    fn before_commit(&self, _commit: u64) -> io::Result<()> {
        // Reported at once; what may pass is tried again by the journal itself, and nobody hears of it.
        self.operation(io::ErrorKind::StorageFull)
    }

    fn before_read(&self) -> io::Result<()> {
        self.operation(io::ErrorKind::Other)
    }
}

/// As above, but it is the journal that fails, once, at each commit and each read that the command causes. The failure may be all that the client hears; whoever
/// gives the command again under its key gets the outcome, and it took place once.
#[test]
fn a_journal_that_fails_at_any_moment_leaves_commands_whose_outcome_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let environment = environment(directory.path());
    let loaded = config::load(&environment).unwrap();
    let root = StateRoot::claim(paths::state_root(&environment).unwrap()).unwrap();
    let before = lives(async {
        let faults = Arc::new(FailsOnce::default());
        let composition = Composition::new(environment.clone()).with_faults(Arc::<FailsOnce>::clone(&faults));
        let daemon = Daemon::compose(composition, &environment, &root, &loaded).await;
        let mut cases = cases::Cases::new(&daemon, &directory.path().join("workspace")).await;
        let mut failed = Vec::new();
        for command in changing_commands() {
            let tried = AssertUnwindSafe(fail_at_every_moment(&daemon, &faults, &mut cases, command)).catch_unwind();
            failed.extend(tried.await.err().map(|_| command));
            faults.disarm();
        }
        assert!(failed.is_empty(), "{failed:?}");
        let kept = kept(&daemon).await;
        daemon.app.engine.stop(Duration::from_secs(5)).await;
        daemon.app.journal.clone().close().await.unwrap();
        kept
    });
    let after = lives(async { kept(&Daemon::open(&environment, &root, &loaded).await).await });
    for (before, after) in before.into_iter().zip(after) {
        assert_eq!(before, after, "memory said something else than the journal");
    }
}

/// Lets the journal fail during one command at every moment, each time on things of its own.
async fn fail_at_every_moment(daemon: &Daemon, faults: &FailsOnce, cases: &mut cases::Cases, command: AcpCommand) {
    let (undisturbed, expected) = undisturbed(daemon, cases, command).await;
    for at in 1.. {
        let what = format!("{command} whose operation {at} failed");
        let params = cases.prepare(daemon, command).await;
        let command_given = read(command, &params);
        let traces = facts(&command_given).traces;
        // An answer with a secret is not kept under a key.
        let key = (!matches!(traces, Traces::Secret)).then_some(what.as_str());
        let begun = daemon.last_seq().await;
        faults.arm(at);
        let answer = daemon.request(command, &params, key).await;
        let has_failed = faults.disarm();
        daemon.can_record().await;
        let refused = code(&answer);
        let is_honest = has_failed && matches!(refused, Some("storage_failed" | "disk_full"));
        assert!(is_honest || refused == code(&undisturbed), "{what}: {answer}");
        if key.is_some() {
            let again = daemon.request(command, &params, key).await;
            assert_eq!(code(&again), code(&undisturbed), "{what}: {again}");
            let (left, _) = daemon.left_since(begun).await;
            assert!(took_place_once(command, traces, &left, &expected), "{what}: {left:?} instead of {expected:?}");
            let third = daemon.request(command, &params, key).await;
            if code(&again).is_none() && command != AcpCommand::RunCreate {
                assert_eq!(third["result"], again["result"], "{what}");
            }
            assert_eq!(daemon.left_since(begun).await.0, left, "{what}: given a third time");
        }
        if !has_failed {
            break;
        }
    }
}

/// Whether a command that was given until it was answered left what it leaves when it is given once.
fn took_place_once(
    command: AcpCommand,
    traces: Traces<'_>,
    left: &BTreeMap<String, usize>,
    expected: &BTreeMap<String, usize>,
) -> bool {
    match (traces, command) {
        // A question to a model is on record each time that it was asked.
        (Traces::Repeatable | Traces::Summary(_), AcpCommand::AuxiliaryRun | AcpCommand::SessionCompactApply) => true,
        _ => left == expected,
    }
}
