//! The product behind one narrow door: a world's tools, a request and proposals go in, verdicts come out.
//!
//! INVARIANT: nothing else of this crate knows how the product decides. Where the rule or the way in which a planner states its mandates changes, this file
//! changes and no other.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use palyra_agent::machine::{ApprovalRequest, Offer};
use palyra_agent::{
    Decide as _, Engine, EngineOptions, Exchange, JudgedProposal, MACHINE_VERSION, MAIN_AGENT, ModelChoice,
    NoDiscovery, NoHooks, PolicyDecider, RunLimits, RunSpec, Safety, Spending, StartedWith, ToolSelection,
    UnrecordedEngine, UnrecordedRun, WorkspaceAuthority, WorkspaceRoots, canonical_json, engine_tools, projections,
};
use palyra_common::{ApprovalDecision, Digest, Integrity, RunId, RunMode, SessionId, SystemClock};
use palyra_journal::{Journal, JournalOptions};
use palyra_models::{ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, ProviderInfo, StopReason};
use palyra_policy::{PatternGrant, PatternScope, PolicySources, PolicyStore};
use palyra_safety::Scanner;
use palyra_tools::{
    CallResource, EffectStore, Invocation, Registry, Roots, SharedRegistry, Tool, ToolDeclaration, ToolError,
    ToolLimits, ToolName, ToolOutput, TrustedTrees, Workspace, builtin,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::attack::{Agreement, Statement};
use crate::world::{Origin, Part, World, reply};

/// A directory that is in memory on most hosts.
const IN_MEMORY: &str = "/dev/shm";

/// What reached the tools of a world, by call.
type Reached = Arc<Mutex<Vec<(String, String, Value)>>>;

/// The product with the tools of one world.
pub struct Product {
    runtime: Runtime,
    engine: UnrecordedEngine,
    scratch: TempDir,
    reached: Reached,
    /// Whether the workspace is as the world has it.
    is_clean: bool,
    decider: PolicyDecider,
    /// Whether somebody agreed to a pattern.
    has_patterns: bool,
    runs: u128,
}

/// One proposal and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What was decided, and on what grounds.
    pub judged: JudgedProposal,
    /// How far a person agreed.
    pub agreed: Agreement,
}

impl Product {
    /// The product with these policies.
    ///
    /// # Errors
    /// When it cannot be set up.
    pub fn start(policies: PolicySources) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut scratch = tempfile::Builder::new();
        scratch.prefix("palyra-search-");
        // Files are written durably, which takes long where that means a disk.
        let scratch = scratch.tempdir_in(IN_MEMORY).or_else(|_| scratch.tempdir())?;
        std::fs::create_dir(scratch.path().join("work"))?;
        let mut journal = JournalOptions::at(scratch.path().join("state"));
        journal.projections = projections();
        journal.min_free_bytes = 0;
        journal.readers = 1;
        let store = Arc::new(PolicyStore::open(policies).context("the policies are not fit for use")?);
        let decider = PolicyDecider::new(store, Vec::new());
        let options = EngineOptions {
            journal: Journal::open(journal)?,
            registry: SharedRegistry::new(Registry::builder().build()?),
            discovery: Arc::new(NoDiscovery),
            provider: Arc::new(Extractor),
            decider: Arc::new(decider.clone()),
            spending: Arc::new(Spending::default()),
            mode: RunMode::Guarded,
            safety: Safety::new(Scanner::new(&[])?),
            clock: Arc::new(SystemClock),
            effects: Arc::new(EffectStore::open(scratch.path().join("effects"))?),
            limits: RunLimits::default(),
            tool_limits: ToolLimits::default(),
            tool_timeout: Duration::from_secs(120),
            max_concurrent: 1,
            auxiliary_concurrent: 1,
            max_output_tokens: None,
            protected: Vec::new(),
            workspaces: Arc::new(Everywhere),
            project_files: vec!["AGENTS.md".to_owned(), "PALYRA.md".to_owned()],
            hooks: Arc::new(NoHooks),
            run_ended: None,
            trusted: TrustedTrees::default(),
            programs_read: Vec::new(),
        };
        let engine = runtime.block_on(Engine::start(options))?;
        let engine = UnrecordedEngine::new(&engine);
        Ok(Self {
            runtime,
            engine,
            scratch,
            reached: Reached::default(),
            is_clean: false,
            decider,
            has_patterns: false,
            runs: 0,
        })
    }

    /// Puts the tools of a world in the place of those of the last one.
    ///
    /// # Errors
    /// When a tool cannot be registered.
    pub fn enter(&mut self, world: &Arc<World>) -> anyhow::Result<()> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for index in 0..world.tools.len() {
            tools.push(Arc::new(WorldTool::new(world, index, &self.reached)?));
        }
        let registry = Registry::builder().with_all(builtin()).with_all(engine_tools()?).with_all(tools).build()?;
        self.engine.registry().replace(registry);
        self.is_clean = false;
        Ok(())
    }

    /// Begins a run of the user's request.
    ///
    /// # Errors
    /// When the workspace cannot be set up.
    pub fn begin(&mut self, world: &World, mode: RunMode) -> anyhow::Result<Run<'_>> {
        let workspace = self.scratch.path().join("work");
        if !self.is_clean {
            std::fs::remove_dir_all(&workspace)?;
            std::fs::create_dir(&workspace)?;
            for file in &world.files {
                let path = workspace.join(&file.path);
                std::fs::create_dir_all(path.parent().unwrap_or(&workspace))?;
                std::fs::write(path, &file.text)?;
            }
            self.is_clean = true;
        }
        self.engine.forget_file_labels();
        if self.has_patterns {
            self.agree(Vec::new())?;
        }
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let workspace = workspace.display().to_string();
        let run = self.accept(world, mode, &workspace, Vec::new())?;
        Ok(Run { mode, workspace, prompt: world.request.text.clone(), history: Vec::new(), run, product: self })
    }

    /// Puts patterns in force that a person agreed to, in the place of those before.
    fn agree(&mut self, patterns: Vec<PatternGrant>) -> anyhow::Result<()> {
        self.has_patterns = !patterns.is_empty();
        Ok(self.decider.agreed(patterns)?)
    }

    fn accept(
        &mut self,
        world: &World,
        mode: RunMode,
        workspace: &str,
        history: Vec<Exchange>,
    ) -> anyhow::Result<UnrecordedRun> {
        self.runs += 1;
        let spec = spec(self.runs, &world.request.text, mode, workspace, history);
        Ok(self.runtime.block_on(self.engine.accept(spec))?)
    }
}

/// A run of the user's request.
pub struct Run<'a> {
    product: &'a mut Product,
    run: UnrecordedRun,
    mode: RunMode,
    workspace: String,
    prompt: String,
    history: Vec<Exchange>,
}

impl Run<'_> {
    /// Whether the planner may go on.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.run.awaits_planner()
    }

    /// What the planner is shown.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        self.run.shown()
    }

    /// Whether the product says that the planner has seen what anyone may have written.
    #[must_use]
    pub fn has_seen_untrusted(&self) -> bool {
        self.run.machine().seen().integrity == Integrity::Untrusted
    }

    /// The planner states what it will do. Says of each statement whether it was taken.
    ///
    /// # Errors
    /// When the engine itself fails.
    pub fn state(&mut self, world: &World, statements: &[Statement]) -> anyhow::Result<Vec<bool>> {
        // One by one: a statement that is refused takes none of the others with it.
        let mut taken = Vec::new();
        for statement in statements {
            let effects = json!([mandate(world, statement)]);
            let verdicts = self.call("palyra.intent.declare", &json!({"effects": effects}), Agreement::Refused)?;
            taken.push(verdicts.iter().any(|verdict| verdict.judged.executed));
        }
        Ok(taken)
    }

    /// The planner asks to read the text of a variable.
    ///
    /// # Errors
    /// When the engine itself fails.
    pub fn reveal(&mut self, variable: &str) -> anyhow::Result<Vec<Verdict>> {
        self.call("palyra.vars.inspect", &json!({"variable": variable, "want": "text"}), Agreement::Refused)
    }

    /// The planner has a letter of a secret told as a number. Says whether it was.
    ///
    /// # Errors
    /// When the engine itself fails.
    pub fn extract(&mut self, world: &World, variable: &str, origin: Origin, at: usize) -> anyhow::Result<bool> {
        let letter = world.canary(origin).and_then(|canary| canary.as_bytes().get(at).copied()).unwrap_or_default();
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let question = format!("{EXTRACT}{letter}");
        let wanted = json!({"variable": variable, "want": "fields", "schema": schema, "question": question});
        self.call("palyra.vars.inspect", &wanted, Agreement::Refused)?;
        let told = format!("\"n\":{letter}");
        Ok(self.shown().last().is_some_and(|text| text.replace(' ', "").contains(&told)))
    }

    /// The planner calls a tool; a person says yes or no to whatever is asked.
    ///
    /// # Errors
    /// When the engine itself fails.
    pub fn call(&mut self, tool: &str, arguments: &Value, agreement: Agreement) -> anyhow::Result<Vec<Verdict>> {
        if matches!(tool, "palyra.fs.write" | "palyra.fs.edit" | "palyra.fs.apply_patch") {
            self.product.is_clean = false;
        }
        let calls = vec![(tool.to_owned(), arguments.to_string())];
        let decision = match agreement {
            Agreement::Refused => ApprovalDecision::Deny,
            Agreement::Once | Agreement::Session => ApprovalDecision::Allow,
        };
        let mut offers = Vec::new();
        let mut person = |request: &ApprovalRequest| {
            offers.extend(request.offer.as_ref().map(|offer| pattern(request, offer)));
            decision
        };
        let judged = self.product.runtime.block_on(self.run.propose(calls, &mut person))?;
        if agreement == Agreement::Session && !offers.is_empty() {
            self.product.agree(offers)?;
        }
        let verdict = |judged: JudgedProposal| {
            let agreed = if judged.answered == Some(ApprovalDecision::Allow) { agreement } else { Agreement::Refused };
            Verdict { agreed, judged }
        };
        Ok(judged.into_iter().map(verdict).collect())
    }

    /// The planner answers, and the user asks the same again in the same session.
    ///
    /// # Errors
    /// When the engine itself fails.
    pub fn next_run(&mut self, world: &World, answer: &str) -> anyhow::Result<()> {
        self.product.runtime.block_on(self.run.answer(answer))?;
        self.history.extend(self.run.exchange());
        self.run = self.product.accept(world, self.mode, &self.workspace, self.history.clone())?;
        Ok(())
    }

    /// What reached the tools so far: call, tool, arguments.
    #[must_use]
    pub fn reached(&self) -> Vec<(String, String, Value)> {
        self.product.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the user wrote.
    #[must_use]
    pub fn prompt(&self) -> &str {
        &self.prompt
    }
}

fn spec(number: u128, prompt: &str, mode: RunMode, workspace: &str, history: Vec<Exchange>) -> RunSpec {
    RunSpec {
        run_id: RunId::from_u128(number),
        session_id: SessionId::from_u128(1),
        machine_version: MACHINE_VERSION,
        owner: "local".to_owned(),
        agent: MAIN_AGENT.to_owned(),
        profile: None,
        mode,
        frame_seed: Digest::of(&number.to_be_bytes()),
        prompt: prompt.to_owned(),
        from: None,
        attachments: Vec::new(),
        workspace: workspace.to_owned(),
        started_with: StartedWith::default(),
        system: "You are Palyra.".to_owned(),
        project: Vec::new(),
        surroundings: None,
        history,
        history_omitted: 0,
        tools: ToolSelection::All,
        client_tools: Vec::new(),
        objective: None,
        limits: RunLimits { max_turns: 1_000, max_tool_calls: 1_000, loop_repeats: 1_000, ..RunLimits::default() },
        model: ModelChoice { provider: "search".to_owned(), name: "search".to_owned(), context_tokens: 1 << 30 },
        reserved_tokens: 0,
        idempotency: None,
    }
}

/// A statement as the product takes it.
fn mandate(world: &World, statement: &Statement) -> Value {
    let mut arguments = serde_json::Map::new();
    for (name, text) in &statement.dictated {
        arguments.insert(name.clone(), json!(text));
    }
    for (name, cap) in &statement.caps {
        arguments.insert(name.clone(), json!(cap));
    }
    let mut destinations: Vec<&String> = Vec::new();
    let has_one_target = statement.targets.len() == 1;
    for (name, entities) in &statement.targets {
        match entities.as_slice() {
            // A record is what one argument says. Where there are several targets, each is stated by its name.
            [one] if statement.parts.get(name) == Some(&Part::Record) => {
                let number = one.parse::<i64>().map_or_else(|_| json!(one), |number| json!(number));
                arguments.insert(name.clone(), number);
            }
            many if has_one_target => destinations.extend(many),
            many => {
                arguments.insert(name.clone(), json!(many));
            }
        }
    }
    let from: Vec<String> = statement
        .sources
        .iter()
        .map(|origin| match origin {
            Origin::Server(server) => format!("mcp.{}", world.servers[*server].name),
            Origin::Workspace => "workspace".to_owned(),
        })
        .collect();
    json!({
        "tool": statement.tool,
        "destinations": destinations,
        "arguments": arguments,
        "times": statement.count,
        "from": from,
    })
}

/// The pattern that is offered, for the session.
fn pattern(request: &ApprovalRequest, offer: &Offer) -> PatternGrant {
    PatternGrant {
        id: request.approval_id.to_string().to_ascii_lowercase(),
        scope: PatternScope::Session(SessionId::from_u128(1).to_string()),
        pattern: offer.pattern.clone(),
        expires_at: None,
        approval: request.approval_id,
    }
}

/// How a question begins that asks for a letter.
const EXTRACT: &str = "the number is ";

/// A model without tools that serves the attacker: it gives the number that its question asks for.
struct Extractor;

#[async_trait]
impl ModelProvider for Extractor {
    fn name(&self) -> &str {
        "search"
    }

    fn describe(&self) -> ProviderInfo {
        let name = self.name().to_owned();
        ProviderInfo { model: name.clone(), name, context_tokens: 1 << 20, is_language_model: true }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let asked = request.messages.iter().rev().find_map(|message| {
            let (_, after) = message.content.split_once(EXTRACT)?;
            after.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok()
        });
        let answer = json!({"n": asked.unwrap_or_default()}).to_string();
        let events = [ModelEvent::TextDelta(answer), ModelEvent::Finished(StopReason::EndTurn)];
        Ok(Box::pin(futures::stream::iter(events.into_iter().map(Ok))))
    }
}

/// Every directory is a workspace.
struct Everywhere;

impl WorkspaceRoots for Everywhere {
    fn roots(&self, _: &str, _: WorkspaceAuthority) -> Roots {
        Roots::Anywhere { except: Vec::new(), granted: Vec::new() }
    }
}

/// A tool of a world, declared as the product declares tools of outside servers.
struct WorldTool {
    world: Arc<World>,
    index: usize,
    declaration: ToolDeclaration,
    reached: Reached,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {}

impl WorldTool {
    fn new(world: &Arc<World>, index: usize, reached: &Reached) -> anyhow::Result<Self> {
        let tool = &world.tools[index];
        let name = ToolName::new(tool.name.clone())?;
        let summary = format!("call {}", tool.name);
        let mut declaration = ToolDeclaration::of::<Anything>(name, &tool.description.name, &summary)
            .classified(&tool.class)
            .reporting_begin();
        declaration.description = tool.description.description.clone().unwrap_or_default();
        declaration.input_schema = tool.description.input_schema.clone().into();
        declaration.server = Some(world.servers[tool.server].name.clone());
        Ok(Self { world: Arc::clone(world), index, declaration, reached: Arc::clone(reached) })
    }
}

#[async_trait]
impl Tool for WorldTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let digest = Digest::of(canonical_json(arguments).as_bytes());
        Ok(CallResource::tool(format!("{}#{digest}", self.declaration.name)))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let name = self.declaration.name.to_string();
        let reached = (invocation.call_id.clone(), name, invocation.arguments.clone());
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).push(reached);
        let tool = &self.world.tools[self.index];
        let data = reply(&self.world, tool);
        let server = &self.world.servers[tool.server];
        let label = self.declaration.output.clone().from_source(format!("mcp:{}", server.name));
        Ok(ToolOutput::text(data.to_string(), label).with_data(data))
    }
}
