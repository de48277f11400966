//! One point: a run whose daemon is killed at one place, and the judgement over what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use palyra_client::api::CreateRunParams;
use palyra_client::{Client, ClientError, Follow};
use palyra_common::{RunId, RunLifecyclePhase, RunStreamEvent, TerminationReason};
use palyra_testkit::{
    Answers, Binary, DaemonOptions, Delivery, Exit, Followed, Kill, Model, Person, Receiver, TestDaemon, Tree,
    assert_all_runs_replay, copy_tree, probe,
};
use tempfile::TempDir;

use super::SIGKILL;
use super::scenario::Scenario;

/// What one point gave.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// How often the daemon was killed: less often than ordered if the run has fewer places.
    pub(super) deaths: usize,
    /// Acknowledged events that are gone or different.
    pub(super) lost: usize,
    /// Effects that happened more often than they may.
    pub(super) twice: usize,
    /// What else is wrong.
    pub(super) failure: Option<String>,
}

/// Kills one run at one place, or at several one after the other.
pub(super) async fn try_point(scenario: &Scenario, kills: &[Kill], answers: Answers) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(error) = attempt(scenario, kills, answers, &mut outcome).await {
        outcome.failure = Some(format!("{error:#}"));
    }
    outcome
}

async fn attempt(scenario: &Scenario, kills: &[Kill], answers: Answers, outcome: &mut Outcome) -> Result<()> {
    let directory = TempDir::with_prefix("palyra-crash-")?;
    let workspace = directory.path().join("workspace");
    let state_root = directory.path().join("state");
    write_files(&workspace, scenario.before)?;
    match &scenario.template {
        Some((_, template)) => copy_tree(template, &state_root)?,
        None => std::fs::create_dir(&state_root)?,
    }
    let receiver = Receiver::start()?;
    let (first, _) = kills.split_first().context("a point has a kill")?;
    let options = DaemonOptions::new(Model::Scripted(scenario.script.clone()))
        .binary(Binary::PalyradProbe)
        .state_root(&state_root)
        .env(probe::SOCKET_VARIABLE, receiver.socket());
    let mut life = Life { daemon: options.killed_at(first.clone()).spawn()?, kills };
    let work = async {
        let seen = life.drive(&workspace, answers, outcome).await?;
        // The kill may still be to come, while we look.
        while let Err(error) = judge(scenario, &life.daemon, &workspace, &receiver, &seen, outcome).await {
            if !broken_off(&error) {
                return Err(error);
            }
            life.buried(outcome).await.context(error)?;
            while life.daemon.wait_healthy().await.is_err() {
                life.buried(outcome).await?;
            }
        }
        life.stop_and_verify(outcome).await
    }
    .await;
    work.with_context(|| life.daemon.log())
}

/// A daemon and the deaths it is to die.
struct Life<'a> {
    daemon: TestDaemon,
    kills: &'a [Kill],
}

/// What the person at the console was told: which run, and which of its events.
struct Acknowledged {
    run_id: RunId,
    events: Vec<RunStreamEvent>,
}

impl Life<'_> {
    /// Creates the run and sees it to its end over as many deaths as it takes.
    async fn drive(&mut self, workspace: &Path, answers: Answers, outcome: &mut Outcome) -> Result<Acknowledged> {
        let client = self.daemon.client();
        let mut person: Option<(RunId, Person)> = None;
        loop {
            if self.daemon.wait_healthy().await.is_ok() {
                if person.is_none() {
                    // The key makes asking again safe: an acceptance whose answer was lost is found, not repeated.
                    let created = create(&client, workspace).await?;
                    person = created.map(|run_id| (run_id, Person::new(run_id).answering(answers)));
                }
                if let Some((run_id, person)) = &mut person
                    && person.follow(&client).await? == Followed::ToItsEnd
                {
                    return Ok(Acknowledged { run_id: *run_id, events: person.seen().to_vec() });
                }
            }
            self.buried(outcome).await?;
        }
    }

    /// A death must be one that was ordered. Starts the daemon again, for its next death or to live.
    async fn buried(&mut self, outcome: &mut Outcome) -> Result<()> {
        let exit = self.daemon.wait_exit().await?;
        self.died(exit, outcome)
    }

    fn died(&mut self, exit: Exit, outcome: &mut Outcome) -> Result<()> {
        ensure!(exit == Exit::Signal(SIGKILL), "the daemon ended with {exit:?} instead of being killed");
        outcome.deaths += 1;
        ensure!(outcome.deaths <= self.kills.len(), "the daemon was killed once more than ordered");
        self.daemon.respawn(self.kills.get(outcome.deaths).cloned())
    }

    /// Stopping has commit points too.
    async fn stop_and_verify(&mut self, outcome: &mut Outcome) -> Result<()> {
        loop {
            match self.daemon.stop().await? {
                Exit::Code(0) => return self.daemon.verify_journal(),
                exit => self.died(exit, outcome)?,
            }
            while self.daemon.wait_healthy().await.is_err() {
                self.buried(outcome).await?;
            }
        }
    }
}

/// Whether looking failed because the daemon went away.
pub(super) fn broken_off(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::is_connection_trouble)
}

pub(super) async fn create(client: &Client, workspace: &Path) -> Result<Option<RunId>> {
    let params = CreateRunParams {
        attachments: Vec::new(),
        objective: None,
        max_attempts: None,
        binding: None,
        client_tools: Vec::new(),
        history: Vec::new(),
        session_id: None,
        session_key: None,
        prompt: "do everything".to_owned(),
        workspace: workspace.display().to_string(),
        model: None,
        agent: None,
        mode: None,
        limits: None,
        idempotency_key: Some("the-only-run".to_owned()),
    };
    match client.create_run(&params).await {
        Ok(run) => Ok(Some(run.run_id)),
        Err(error) if error.is_connection_trouble() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Everything that must hold when the run is over.
async fn judge(
    scenario: &Scenario,
    daemon: &TestDaemon,
    workspace: &Path,
    receiver: &Receiver,
    acknowledged: &Acknowledged,
    outcome: &mut Outcome,
) -> Result<()> {
    let client = daemon.client();
    let detail = client.run(acknowledged.run_id).await?;
    ensure!(
        detail.run.phase == RunLifecyclePhase::Completed && detail.run.reason == Some(TerminationReason::FinalAnswer),
        "the run ended {} for {:?} with {:?}",
        detail.run.phase,
        detail.run.reason,
        detail.run.detail
    );
    let tape = whole_tape(&client, acknowledged.run_id).await?;
    outcome.lost = acknowledged.events.iter().filter(|event| tape.get(&event.seq) != Some(*event)).count();
    ensure!(outcome.lost == 0, "{} acknowledged events are lost or different", outcome.lost);
    ensure!(tape.keys().copied().eq(1..=tape.len() as u64), "the tape has a gap");
    count_effects(scenario, &receiver.deliveries(), outcome)?;
    compare_files(workspace, scenario.after)?;
    ensure!(assert_all_runs_replay(&client).await? == 1, "there is not exactly one run");
    Ok(())
}

async fn whole_tape(client: &Client, run_id: RunId) -> Result<BTreeMap<u64, RunStreamEvent>> {
    let mut tape = client.tape(run_id, 1, Follow::No);
    let mut events = BTreeMap::new();
    while let Some(event) = tape.next().await? {
        events.insert(event.seq, event);
    }
    Ok(events)
}

/// Non-repeatable effects arrive once at most, repeatable ones at least once and always under the same id.
fn count_effects(scenario: &Scenario, deliveries: &[Delivery], outcome: &mut Outcome) -> Result<()> {
    for (tool, n) in scenario.effects {
        let arrived: Vec<&Delivery> = deliveries.iter().filter(|one| one.n == *n).collect();
        let ids: BTreeSet<&str> = arrived.iter().map(|one| one.effect_id.as_str()).collect();
        ensure!(arrived.iter().all(|one| one.tool == *tool), "effect {n} came from another tool: {arrived:?}");
        let repeatable = matches!(*tool, "probe.read" | "probe.repeatable");
        match arrived.len() {
            // Killed between intent and effect: the person was asked, and declined to risk a second one.
            0 if !repeatable && outcome.deaths > 0 => {}
            0 => bail!("effect {n} of {tool} never arrived"),
            1 => {}
            times if repeatable => ensure!(ids.len() == 1, "effect {n} arrived {times} times under the ids {ids:?}"),
            times => {
                outcome.twice += 1;
                bail!("effect {n} of {tool}, which is not repeatable, arrived {times} times");
            }
        }
    }
    let asked_for = |one: &Delivery| scenario.effects.iter().any(|(_, n)| *n == one.n);
    ensure!(deliveries.iter().all(asked_for), "an effect that nobody asked for: {deliveries:?}");
    Ok(())
}

pub(super) fn write_files(workspace: &Path, files: &[(&str, &str)]) -> Result<()> {
    for (name, content) in files {
        let path = workspace.join(name);
        std::fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        std::fs::write(path, content)?;
    }
    Ok(())
}

/// The workspace holds exactly these files: each change happened once, and nothing of the doing is left lying about.
fn compare_files(workspace: &Path, expected: &[(&str, &str)]) -> Result<()> {
    let wanted = TempDir::new()?;
    write_files(wanted.path(), expected)?;
    let (found, wanted) = (Tree::of(workspace)?, Tree::of(wanted.path())?);
    ensure!(
        found == wanted,
        "the workspace is not as it should be: {:?} instead of {:?}",
        found.names(),
        wanted.names()
    );
    Ok(())
}
