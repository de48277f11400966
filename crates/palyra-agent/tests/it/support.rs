//! An engine in a temporary directory, and tools that do what a test wants.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use palyra_agent::{
    Actor, Answer, AnswerProposal, Decide, Endorsement, Engine, EngineOptions, HookRunner, NewRun, NoDiscovery,
    NoHooks, PolicyDecider, Proposal, RunLimits, RunRow, Safety, Spending, StartedWith, ToolDiscovery, Verdict,
    engine_tools, projections,
};
use palyra_common::config::MandateClass;
use palyra_common::{
    ApprovalDecision, ApprovalScope, Clock, Digest, Label, RunId, RunLifecyclePhase, RunMode, RunStreamBody,
    RunStreamEvent, StableErrorEnvelope, SystemClock, ToolVerdict,
};
use palyra_journal::{FaultInjector, Journal, JournalError, JournalOptions};
use palyra_models::{ModelProvider, ScriptedProvider};
use palyra_policy::{PatternGrant, PolicySource, PolicySources, PolicyStore};
use palyra_safety::Scanner;
use palyra_tools::{
    CallResource, EffectScope, EffectStore, Invocation, Registry, SharedRegistry, Tool, ToolDeclaration, ToolError,
    ToolLimits, ToolName, ToolOutput, TrustedTrees, Workspace, builtin,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

/// How an engine is to be built.
pub(crate) struct Setup {
    pub(crate) script: String,
    pub(crate) provider: Option<Arc<dyn ModelProvider>>,
    pub(crate) limits: RunLimits,
    pub(crate) max_concurrent: usize,
    pub(crate) ask_before: Vec<String>,
    pub(crate) confirm_mandates: Vec<MandateClass>,
    pub(crate) faults: Option<Arc<dyn FaultInjector>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) mode: RunMode,
    /// Policies beside the shipped ones.
    pub(crate) policies: &'static str,
    pub(crate) spending: Spending,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) trusted: TrustedTrees,
    pub(crate) hooks: Arc<dyn HookRunner>,
    pub(crate) discovery: Arc<dyn ToolDiscovery>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Setup {
    pub(crate) fn script(script: &str) -> Self {
        Self {
            script: script.to_owned(),
            provider: None,
            limits: RunLimits::default(),
            max_concurrent: 8,
            ask_before: Vec::new(),
            confirm_mandates: Vec::new(),
            faults: None,
            tools: Vec::new(),
            mode: RunMode::Guarded,
            policies: "",
            spending: Spending::default(),
            max_output_tokens: None,
            trusted: TrustedTrees::default(),
            hooks: Arc::new(NoHooks),
            discovery: Arc::new(NoDiscovery),
            clock: Arc::new(SystemClock),
        }
    }

    pub(crate) async fn start(self) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        self.start_in(directory).await
    }

    /// Starts on a directory that an earlier engine used.
    pub(crate) async fn start_in(self, directory: TempDir) -> Bench {
        let mut options = JournalOptions::at(directory.path().join("state"));
        options.projections = projections();
        options.faults = self.faults;
        options.min_free_bytes = 0;
        options.clock = Arc::clone(&self.clock);
        let journal = open_when_free(options).await;
        let provider = self.provider.unwrap_or_else(|| Arc::new(ScriptedProvider::from_str(&self.script).unwrap()));
        let engine = Engine::start(EngineOptions {
            journal: journal.clone(),
            registry: SharedRegistry::new(
                Registry::builder()
                    .with_all(builtin())
                    .with_all(engine_tools().unwrap())
                    .with_all(self.tools)
                    .build()
                    .unwrap(),
            ),
            discovery: self.discovery,
            provider,
            decider: Arc::new(Permissive(
                PolicyDecider::new(policies(self.policies), self.ask_before).confirming(self.confirm_mandates),
            )),
            spending: Arc::new(self.spending),
            mode: self.mode,
            safety: Safety::new(Scanner::new(&[]).unwrap()),
            clock: self.clock,
            effects: Arc::new(EffectStore::open(directory.path().join("effects")).unwrap()),
            limits: self.limits,
            tool_limits: ToolLimits::default(),
            // Longer than any test: a tool that waits at a gate is not to give up on a busy machine.
            tool_timeout: Duration::from_secs(120),
            max_concurrent: self.max_concurrent,
            auxiliary_concurrent: 2,
            max_output_tokens: self.max_output_tokens,
            protected: vec![directory.path().join("work/.palyra")],
            workspaces: Arc::new(Everywhere),
            project_files: vec!["PALYRA.md".into()],
            trusted: self.trusted,
            programs_read: Vec::new(),
            hooks: self.hooks,
            run_ended: None,
        })
        .await
        .unwrap();
        Bench { engine, journal, directory }
    }
}

/// Lets one operation of the journal fail, a commit or a read: the n-th after it was armed.
#[derive(Debug, Default)]
pub(crate) struct FailsOnce {
    left: AtomicU64,
    has_failed: AtomicBool,
}

impl FailsOnce {
    pub(crate) fn arm(&self, at: u64) {
        self.left.store(at, Ordering::SeqCst);
    }

    /// Nothing fails from now on. Whether something did.
    pub(crate) fn disarm(&self) -> bool {
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

/// What a crash left behind is free once the last thread of the engine before has gone.
async fn open_when_free(options: JournalOptions) -> Journal {
    for _ in 0..500 {
        match Journal::open(options.clone()) {
            Err(JournalError::StateInUse { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => return opened.unwrap(),
        }
    }
    Journal::open(options).unwrap()
}

/// A running engine.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) journal: Journal,
    pub(crate) directory: TempDir,
}

impl Bench {
    /// Waits until no run is at work and the journal can be written, without reading it.
    pub(crate) async fn settle(&self) {
        let settled = async {
            while self.engine.unfinished() > 0 || self.journal.admission().is_err() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), settled).await.expect("something stays under way");
    }

    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join("work").join(name)
    }

    /// Writes a file and takes a person's word for it.
    pub(crate) async fn endorsed(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
        let endorsement = Endorsement {
            workspace: self.task("").workspace,
            path: name.into(),
            digest: Digest::of(text.as_bytes()),
            by: "local".into(),
            with: StartedWith::default(),
            via: None,
        };
        self.engine.endorse_file(endorsement).await.unwrap();
    }

    pub(crate) fn task(&self, prompt: &str) -> NewRun {
        NewRun {
            prompt: prompt.into(),
            workspace: self.directory.path().join("work").display().to_string(),
            ..NewRun::default()
        }
    }

    pub(crate) async fn run(&self, prompt: &str) -> (RunRow, Vec<RunStreamEvent>) {
        let run = self.engine.create_run(self.task(prompt)).await.unwrap();
        self.finish(run.run_id).await
    }

    /// Follows a run to its end and checks what must hold for every run: gapless, terminal, replayable.
    pub(crate) async fn finish(&self, run_id: RunId) -> (RunRow, Vec<RunStreamEvent>) {
        let events = self.follow_until(run_id, |event| event.is_terminal()).await;
        let row = loop {
            // The terminal event is published once it is durable, so the projection has it too.
            let row = self.engine.run(run_id).await.unwrap();
            if row.phase.is_terminal() {
                break row;
            }
        };
        let replayed = self.engine.replay(run_id).await.unwrap();
        assert_eq!(replayed.difference, None);
        assert_eq!(replayed.machine.phase(), row.phase);
        (row, events)
    }

    pub(crate) async fn follow_until(
        &self,
        run_id: RunId,
        wanted: impl Fn(&RunStreamEvent) -> bool,
    ) -> Vec<RunStreamEvent> {
        let follow = async {
            let mut follower = self.engine.follow(run_id, 1).await.unwrap();
            let mut events: Vec<RunStreamEvent> = Vec::new();
            while let Some(batch) = follower.next().await.unwrap() {
                events.extend(batch.iter().map(|event| (**event).clone()));
                if events.iter().any(&wanted) {
                    break;
                }
            }
            events
        };
        let events = tokio::time::timeout(Duration::from_secs(20), follow).await.expect("the run goes on");
        for (expected, event) in (1..).zip(&events) {
            assert_eq!(event.seq, expected, "the tape has no gaps");
        }
        assert!(events.iter().any(&wanted), "{events:#?}");
        events
    }

    /// Ends the engine as a crash would: drivers are dropped where they are.
    pub(crate) fn crash(self, runtime: tokio::runtime::Runtime) -> TempDir {
        let Self { engine, journal, directory } = self;
        drop(engine);
        runtime.shutdown_timeout(Duration::from_millis(200));
        drop(journal);
        directory
    }
}

/// The answer of the person whose runs these are, for one call.
pub(crate) fn answer(decision: ApprovalDecision) -> Answer {
    Answer {
        decision,
        scope: ApprovalScope::Once,
        until: None,
        by: "local".into(),
        program: None,
        via: None,
        reason: None,
    }
}

/// Asks and permits like the product, and lets the tools of the tests pass.
struct Permissive(PolicyDecider);

fn policies(more: &str) -> Arc<PolicyStore> {
    let sources = PolicySources::shipped().with_text(PolicySource::new("own.cedar", more));
    Arc::new(PolicyStore::open(sources).unwrap())
}

#[async_trait]
impl Decide for Permissive {
    async fn decide(&self, proposal: Proposal<'_>) -> Result<Verdict, StableErrorEnvelope> {
        match proposal.tool.name.as_str() {
            "test.once" | "test.slow" => Ok(Verdict {
                verdict: ToolVerdict::Permit,
                reasons: vec![],
                told: vec![],
                policies: vec!["test".into()],
                asking: [].into(),
                requests: vec![],
            }),
            "test.broken_policy" => Err(StableErrorEnvelope::new(
                "policy_unreadable",
                palyra_common::ErrorCategory::Internal,
                "the policy cannot be read",
            )),
            _ => self.0.decide(proposal).await,
        }
    }

    async fn decide_answer(&self, answer: AnswerProposal<'_>) -> Result<Verdict, StableErrorEnvelope> {
        self.0.decide_answer(answer).await
    }

    fn agreed(&self, patterns: Vec<PatternGrant>) -> Result<(), StableErrorEnvelope> {
        self.0.agreed(patterns)
    }
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A tool that counts its calls and may hang until it is cancelled, or for ever.
pub(crate) struct TestTool {
    declaration: ToolDeclaration,
    pub(crate) calls: Arc<AtomicU32>,
    pub(crate) begun: Arc<AtomicU32>,
    hang: Hang,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hang {
    No,
    UntilCancelled,
    ForEver,
    /// For ever, before it reports that its effect begins.
    BeforeItBegins,
}

impl TestTool {
    pub(crate) fn new(name: &str, hang: Hang) -> Self {
        let declaration = ToolDeclaration::of::<Nothing>(ToolName::new(name).unwrap(), "test", "test");
        Self { declaration, calls: Arc::default(), begun: Arc::default(), hang }
    }

    /// A tool that says when its effect begins.
    pub(crate) fn reporting(name: &str, hang: Hang) -> Self {
        let mut tool = Self::new(name, hang);
        tool.declaration = tool.declaration.reporting_begin();
        tool
    }

    pub(crate) fn reading(name: &str, hang: Hang) -> Self {
        let mut tool = Self::new(name, hang);
        tool.declaration = tool.declaration.reads(EffectScope::Pure);
        tool
    }
}

#[async_trait]
impl Tool for TestTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }
    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("test"))
    }
    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if self.hang == Hang::BeforeItBegins {
            std::future::pending::<()>().await;
        }
        invocation.begin.record().await?;
        self.begun.fetch_add(1, Ordering::SeqCst);
        match self.hang {
            Hang::No | Hang::BeforeItBegins => {}
            Hang::UntilCancelled => {
                invocation.cancel.cancelled().await;
                return Err(ToolError::Cancelled);
            }
            Hang::ForEver => std::future::pending().await,
        }
        Ok(ToolOutput::text(format!("call {calls}"), Label::system()))
    }
}

/// A tool that waits until it may go on.
#[derive(Clone)]
pub(crate) struct Gate {
    declaration: ToolDeclaration,
    calls: tokio::sync::watch::Sender<u32>,
    open: tokio::sync::watch::Sender<bool>,
}

impl Gate {
    pub(crate) fn reading(name: &str) -> Self {
        let declaration = ToolDeclaration::of::<Nothing>(ToolName::new(name).unwrap(), "gate", "gate");
        let (calls, open) = (tokio::sync::watch::Sender::new(0), tokio::sync::watch::Sender::new(false));
        Self { declaration: declaration.reads(EffectScope::Pure), calls, open }
    }

    /// Lets everybody go on, now and later.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until so many calls have come.
    pub(crate) async fn reached(&self, count: u32) {
        let mut calls = self.calls.subscribe();
        let arrived = calls.wait_for(|calls| *calls >= count);
        tokio::time::timeout(Duration::from_secs(20), arrived).await.expect("the tool is called").unwrap();
    }
}

#[async_trait]
impl Tool for Gate {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }
    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("gate"))
    }
    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        self.calls.send_modify(|calls| *calls += 1);
        let mut open = self.open.subscribe();
        tokio::select! {
            () = invocation.cancel.cancelled() => Err(ToolError::Cancelled),
            _ = open.wait_for(|open| *open) => Ok(ToolOutput::text("passed".to_owned(), Label::system())),
        }
    }
}

pub(crate) fn is_phase(phase: RunLifecyclePhase) -> impl Fn(&RunStreamEvent) -> bool {
    move |event| matches!(&event.body, RunStreamBody::Status(status) if status.phase == phase)
}

pub(crate) fn tool_result(events: &[RunStreamEvent], call_id: &str) -> palyra_common::ToolResult {
    events
        .iter()
        .find_map(|event| match &event.body {
            RunStreamBody::ToolResult(result) if result.call_id == call_id => Some(result.clone()),
            _ => None,
        })
        .unwrap()
}

/// Every directory is a workspace for everybody.
struct Everywhere;

impl palyra_agent::WorkspaceRoots for Everywhere {
    fn roots(&self, _: &str, _: palyra_agent::WorkspaceAuthority) -> palyra_tools::Roots {
        palyra_tools::Roots::Anywhere { except: Vec::new(), granted: Vec::new() }
    }
}

/// Somebody at work with the credential that the runs of these tests start with.
pub(crate) fn actor(by: &str) -> Actor {
    Actor { by: by.to_owned(), with: StartedWith::default() }
}

/// The same person with a credential that a program holds.
pub(crate) fn program(by: &str, name: &str) -> Actor {
    Actor { by: by.to_owned(), with: StartedWith { program: Some(name.to_owned()), ..StartedWith::default() } }
}
