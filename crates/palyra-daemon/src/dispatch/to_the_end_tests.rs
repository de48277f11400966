//! A client that leaves at each moment at which its request could be dropped: after every number of polls, both while what was begun goes on and when it is just done.
//!
//! Every command of the catalogue that changes something is tried. Whoever gives it again under its key gets an outcome, and what is on the journal is what one
//! undisturbed execution leaves there. At the end a daemon that knows the journal alone answers what this one answers from memory.

#[path = "to_the_end_cases.rs"]
mod cases;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use palyra_client::command::{self, Command};
use palyra_common::config::{self, LoadedConfig};
use palyra_common::{AcpCommand, CommandEffect, Environment, RequestId, SystemClock, paths};
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
        let inherited = InheritedSockets::take(environment).unwrap();
        let metrics = telemetry::metrics(&SystemClock);
        let composition = Composition::new(environment.clone());
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
        let text = envelope.to_string();
        let body = Body::from_stream(futures::stream::once(async move {
            tokio::task::yield_now().await;
            Ok::<_, Infallible>(text)
        }));
        let mut request = http::Request::post("/acp/v1/command").body(body).unwrap();
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

/// Leaves during one command at every moment, each time on things of its own.
async fn leave_at_every_moment(daemon: &Daemon, cases: &mut cases::Cases, command: AcpCommand) {
    // What it comes to if nobody leaves. The first time may make what is made once.
    let undisturbed = async |cases: &mut cases::Cases| {
        let params = cases.prepare(daemon, command).await;
        let begun = daemon.last_seq().await;
        let answer = daemon.request(command, &params, None).await;
        daemon.settle().await;
        (answer, daemon.left_since(begun).await.0)
    };
    undisturbed(cases).await;
    let (undisturbed, expected) = undisturbed(cases).await;
    assert_eq!(code(&undisturbed), cases::refusal(command), "{command}: {undisturbed}");
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
