//! The one dispatcher: every command of every transport passes through here, in the same order.
//!
//! A transport authenticates, reads a command and writes down what came of it. In between: the caller's rate, what policy says about this caller
//! and this thing, a repetition of an earlier command, the command itself. Nothing here knows which transport it was.

mod after_crash;
mod agents;
mod approvals;
mod attachments;
mod authorise;
mod auxiliary;
mod bindings;
mod caller;
mod canvases;
mod devices;
mod events;
mod facts;
mod files;
mod hooks;
mod idempotency;
mod inventory;
mod journal;
mod messages;
mod models;
mod models_probe;
mod observed;
mod page_budget;
mod publishers;
mod recall;
mod records;
mod refusal;
mod requests;
mod runs;
mod sessions;
mod skills;
mod storage;
mod streams;
mod to_the_end;
mod tokens;
mod usage;
mod workspaces;

use std::sync::Arc;

use palyra_client::command::{self, Command, Outcome, StreamCommand};
use palyra_common::{AcpCommand, AcpCommandEnvelope, AcpCommandResultEnvelope, CommandEffect};
use palyra_telemetry::CommandOutcome;
use serde::Serialize;
use serde_json::Value;
use tracing::Instrument as _;

pub(crate) use attachments::{Arriving, MAX_FILES};
pub(crate) use authorise::{Beside, beside};
pub(crate) use caller::{Caller, Transport};
pub(crate) use canvases::{Link, link_of};
pub(crate) use devices::{RevokedCertificate, revoked_certificates};
#[cfg(test)]
pub(crate) use page_budget::testing::TestBudget;
pub(crate) use page_budget::{HeldMessages, HeldPage, PageBudgets, PagePermit, ReadBudget};
pub(crate) use records::projections;
pub(crate) use refusal::{Refusal, Result};
pub(crate) use skills::tell_hooks;
pub(crate) use streams::{Documents, Page};
pub(crate) use to_the_end::to_the_end;
pub(crate) use tokens::Tokens;

use crate::app::App;

/// A command with what its envelope says besides.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) command: Command,
    /// The same key with the same command gives the stored answer instead of a second effect.
    pub(crate) idempotency_key: Option<String>,
    /// The command is refused if what it changes is no longer at this version.
    pub(crate) expected_version: Option<u64>,
}

impl From<Command> for Asked {
    fn from(command: Command) -> Self {
        Self { command, idempotency_key: None, expected_version: None }
    }
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// It was carried out.
    Fresh(Outcome),
    /// It had been carried out before; this is what was stored of it.
    Stored(Value),
}

impl Answer {
    /// Whether this is a stored answer given again.
    pub(crate) fn is_replayed(&self) -> bool {
        matches!(self, Self::Stored(_))
    }
}

/// Carries out one command. One that changes anything goes to its end, also if the caller leaves meanwhile.
pub(crate) async fn dispatch(app: &Arc<App>, caller: &Caller, asked: Asked) -> Result<Answer> {
    if changes_nothing(&asked.command) {
        // Only while it is carried out: whoever writes the answer down holds what there really is.
        let _room = if is_brief(&asked.command) { Some(answers_to(app, caller).acquire().await) } else { None };
        return perform(app, caller, asked).await;
    }
    let (shared, caller) = (Arc::clone(app), caller.clone());
    to_the_end(app, async move { perform(&shared, &caller, asked).await }).await
}

/// Whether an answer is all that comes of a command: whoever leaves wants it no longer, and whoever repeats it gets a new one.
fn changes_nothing(command: &Command) -> bool {
    // These are for administrators because a provider's key goes out with them.
    if matches!(command, Command::ModelsOffered(_) | Command::ModelsTest(_)) {
        return true;
    }
    match command::spec(command.name()).map(|spec| spec.effect) {
        Some(CommandEffect::Read) => true,
        Some(CommandEffect::Change | CommandEffect::Administer) | None => false,
    }
}

/// What may be held of the answers to this caller's commands on its connection.
pub(crate) fn answers_to(app: &App, caller: &Caller) -> ReadBudget {
    app.page_budgets.commands(&caller.principal.id, &caller.connection)
}

/// The same for what its streams were read into.
pub(crate) fn streams_to(app: &App, caller: &Caller) -> ReadBudget {
    app.page_budgets.streams(&caller.principal.id, &caller.connection)
}

/// Whether a command that changes nothing is only read from what there is, and does not wait for a provider or for a person.
fn is_brief(command: &Command) -> bool {
    match command {
        Command::ModelsOffered(_) | Command::ModelsTest(_) => false,
        Command::ApprovalGet(about) => about.params.wait_seconds.unwrap_or_default() == 0,
        _ => true,
    }
}

async fn perform(app: &App, caller: &Caller, asked: Asked) -> Result<Answer> {
    let span = observed::span(caller, asked.command.name(), asked.command.target());
    let carried_out = async {
        caller.check_rate(app)?;
        if let Err(refusal) = authorise::command(app, caller, &asked.command).await {
            // What the caller itself removed is no longer there to ask policy about; what it was told then it may be told again.
            return match idempotency::answered_before(app, caller, &asked, &refusal).await? {
                Some(answer) => Ok(answer),
                None => Err(refusal),
            };
        }
        // A command right after an edit of models.toml acts on what was written.
        app.watched.look().await;
        idempotency::once(app, caller, asked).await
    };
    let answer = carried_out.instrument(span.clone()).await;
    let replayed = answer.as_ref().is_ok_and(Answer::is_replayed);
    let good = if replayed { CommandOutcome::Replayed } else { CommandOutcome::Ok };
    observed::ended(app, caller, &span, &answer, good);
    answer
}

/// Opens the stream of one command.
pub(crate) async fn open(app: &App, caller: &Caller, command: StreamCommand) -> Result<Documents> {
    let span = observed::span(caller, command.name(), command.target());
    let opened = async {
        caller.check_rate(app)?;
        authorise::stream(app, caller, &command).await?;
        streams::open(app, caller, command).await
    };
    let documents = opened.instrument(span.clone()).await;
    observed::ended(app, caller, &span, &documents, CommandOutcome::Ok);
    documents
}

/// Carries out `attachment.add` for files that a transport takes in piece by piece: `work` begins once the caller may.
pub(crate) async fn uploading<T>(app: &App, caller: &Caller, work: impl Future<Output = Result<T>>) -> Result<T> {
    let span = observed::span(caller, AcpCommand::AttachmentAdd, None);
    let uploaded = async {
        caller.check_rate(app)?;
        authorise::upload(app, caller).await?;
        storage::check(app, caller, 0).await?;
        work.await
    };
    let stored = uploaded.instrument(span.clone()).await;
    observed::ended(app, caller, &span, &stored, CommandOutcome::Ok);
    stored
}

/// Carries out one envelope; a refusal is an answer too.
pub(crate) async fn envelope(
    app: &Arc<App>,
    caller: &Caller,
    envelope: AcpCommandEnvelope,
) -> AcpCommandResultEnvelope {
    let asked = match Command::from_value(envelope.command, envelope.params.clone()) {
        Some(Ok(command)) => Ok(Asked {
            command,
            idempotency_key: envelope.idempotency_key.clone(),
            expected_version: envelope.expected_version,
        }),
        Some(Err(error)) => Err(Refusal::from(error)),
        None if command::spec(envelope.command).is_some() => Err(Refusal::streams(envelope.command)),
        None => Err(Refusal::from(command::not_available(envelope.command))),
    };
    let answer = match asked {
        Ok(asked) => dispatch(app, caller, asked).await,
        Err(refusal) => {
            observed::unread(app, caller, envelope.command, &refusal);
            Err(refusal)
        }
    };
    let replayed = matches!(&answer, Ok(answer) if answer.is_replayed());
    let value = answer.and_then(|answer| {
        serde_json::to_value(answer).map_err(|error| Refusal::internal(format!("an answer cannot be written: {error}")))
    });
    let request_id = envelope.request_id;
    let result = AcpCommandResultEnvelope::answer(&envelope, value.map_err(Refusal::into_envelope));
    if replayed { result.replayed_for(request_id) } else { result }
}

/// Does it, once everything has agreed.
async fn carry_out(app: &App, caller: &Caller, asked: Asked) -> Result<Outcome> {
    let by = caller.id();
    let version = asked.expected_version;
    Ok(match asked.command {
        Command::SessionNew(params) => {
            Outcome::SessionNew(sessions::new(app, caller, params, asked.idempotency_key).await?.into())
        }
        Command::SessionResolve(params) => {
            Outcome::SessionResolve(sessions::resolve(app, caller, params).await?.into())
        }
        Command::SessionList(params) => Outcome::SessionList(sessions::list(app, caller, params).await?.into()),
        Command::SessionLoad(about) => Outcome::SessionLoad(sessions::load(app, about).await?.into()),
        Command::SessionResume(about) => Outcome::SessionResume(sessions::resume(app, about.target).await?.into()),
        Command::SessionRename(about) => {
            Outcome::SessionRename(sessions::rename(app, by, about, version).await?.into())
        }
        Command::SessionArchive(about) => {
            Outcome::SessionArchive(sessions::archive(app, by, about, version).await?.into())
        }
        Command::SessionFork(about) => {
            Outcome::SessionFork(sessions::fork(app, caller, about, asked.idempotency_key).await?.into())
        }
        Command::SessionExport(about) => Outcome::SessionExport(sessions::export(app, about).await?.into()),
        Command::SessionExplain(about) => Outcome::SessionExplain(sessions::explain(app, about.target).await?.into()),
        Command::SessionModeSet(about) => {
            Outcome::SessionModeSet(sessions::set_mode(app, by, about, version).await?.into())
        }
        Command::SessionConfigSet(about) => {
            Outcome::SessionConfigSet(sessions::set_config(app, caller, about, version).await?.into())
        }
        Command::SessionCompactPreview(about) => {
            Outcome::SessionCompactPreview(sessions::compact_preview(app, about.target).await?.into())
        }
        Command::SessionCompactApply(about) => {
            Outcome::SessionCompactApply(sessions::compact_apply(app, by, about.target, version).await?.into())
        }
        Command::SessionCompactRevert(about) => {
            Outcome::SessionCompactRevert(sessions::compact_revert(app, by, about.target, version).await?.into())
        }
        Command::SessionRecall(params) => Outcome::SessionRecall(recall::recall(app, caller, params).await?.into()),
        Command::SessionInput(about) => {
            Outcome::SessionInput(sessions::input(app, caller, about, asked.idempotency_key).await?.into())
        }
        Command::SessionQueue(about) => Outcome::SessionQueue(sessions::queue(app, about.target).await?.into()),
        Command::SessionInputWithdraw(about) => {
            Outcome::SessionInputWithdraw(sessions::withdraw(app, by, about).await?.into())
        }
        Command::RunCreate(params) => {
            Outcome::RunCreate(runs::create(app, caller, params, asked.idempotency_key).await?.into())
        }
        Command::RunList(params) => Outcome::RunList(runs::list(app, caller, params).await?.into()),
        Command::RunGet(about) => Outcome::RunGet(runs::get(app, about.target).await?.into()),
        Command::RunAbort(about) => Outcome::RunAbort(runs::abort(app, by, about, version).await?.into()),
        Command::RunPause(about) => Outcome::RunPause(runs::pause(app, by, about.target, version).await?.into()),
        Command::RunResume(about) => Outcome::RunResume(runs::resume(app, caller, about, version).await?.into()),
        Command::RunInput(about) => Outcome::RunInput(runs::input(app, caller, about, version).await?.into()),
        Command::RunDeliver(about) => Outcome::RunDeliver(runs::deliver(app, caller, about).await?.into()),
        Command::RunEnvelopeEdit(about) => {
            Outcome::RunEnvelopeEdit(runs::edit_envelope(app, caller, about, version).await?.into())
        }
        Command::RunUndo(about) => Outcome::RunUndo(runs::undo(app, caller, about, version).await?.into()),
        Command::RunReplay(about) => Outcome::RunReplay(runs::replay(app, about.target).await?.into()),
        Command::RunCompactRevert(about) => {
            Outcome::RunCompactRevert(runs::revert_compaction(app, by, about.target, version).await?.into())
        }
        Command::RunContext(about) => Outcome::RunContext(usage::context(app, about).await?.into()),
        Command::AuxiliaryRun(params) => Outcome::AuxiliaryRun(auxiliary::run(app, caller, params).await?.into()),
        Command::AuxiliaryList(params) => Outcome::AuxiliaryList(auxiliary::list(app, caller, params).await?.into()),
        Command::AuxiliaryGet(about) => Outcome::AuxiliaryGet(auxiliary::get(app, about.target).await?.into()),
        Command::ModelsStatus(_) => Outcome::ModelsStatus(models::status(app).into()),
        Command::ModelsExplain(params) => Outcome::ModelsExplain(models::explain(app, &params)?.into()),
        Command::ModelsOffered(params) => Outcome::ModelsOffered(models_probe::offered(app, &params).await?.into()),
        Command::ModelsTest(params) => Outcome::ModelsTest(models_probe::test(app, caller, params).await?.into()),
        Command::UsageReport(params) => Outcome::UsageReport(usage::report(app, caller, params).await?.into()),
        Command::ApprovalList(params) => Outcome::ApprovalList(approvals::list(app, caller, params).await?.into()),
        Command::ApprovalGet(about) => Outcome::ApprovalGet(approvals::get(app, about).await?.into()),
        Command::ApprovalRequest(params) => {
            Outcome::ApprovalRequest(requests::ask(app, caller, params, asked.idempotency_key).await?.into())
        }
        Command::ApprovalDecide(about) => Outcome::ApprovalDecide(approvals::decide(app, caller, about).await?.into()),
        Command::PatternList(params) => Outcome::PatternList(approvals::patterns(app, caller, params).await?.into()),
        Command::PatternRevoke(about) => {
            Outcome::PatternRevoke(approvals::revoke(app, caller, about.target).await?.into())
        }
        Command::ToolList(_) => Outcome::ToolList(inventory::tools(app).await.into()),
        Command::PolicyList(_) => Outcome::PolicyList(inventory::policies(app).into()),
        Command::ConfigGet(_) => Outcome::ConfigGet(inventory::config(app)?.into()),
        Command::JournalProve(about) => Outcome::JournalProve(journal::prove(app, about.target.0).await?.into()),
        Command::JournalBackup(params) => Outcome::JournalBackup(journal::backup(app, caller, params).await?.into()),
        Command::TokenCreate(params) => Outcome::TokenCreate(tokens::create(app, caller, params).await?.into()),
        Command::TokenList(_) => Outcome::TokenList(tokens::list(app).into()),
        Command::TokenRotate(about) => Outcome::TokenRotate(tokens::rotate(app, caller, about).await?.into()),
        Command::TokenRevoke(about) => Outcome::TokenRevoke(tokens::revoke(app, caller, about.target).await?.into()),
        Command::DeviceList(_) => Outcome::DeviceList(devices::list(app).await?.into()),
        Command::DeviceRevoke(about) => Outcome::DeviceRevoke(devices::revoke(app, caller, about.target).await?.into()),
        Command::WorkspaceGrant(params) => {
            Outcome::WorkspaceGrant(workspaces::grant(app, caller, params).await?.into())
        }
        Command::WorkspaceRevoke(params) => {
            Outcome::WorkspaceRevoke(workspaces::revoke(app, caller, params).await?.into())
        }
        Command::WorkspaceList(_) => Outcome::WorkspaceList(workspaces::list(app).into()),
        Command::FileLabels(params) => Outcome::FileLabels(files::labels(app, caller, params).await?.into()),
        Command::FileEndorse(params) => Outcome::FileEndorse(files::endorse(app, caller, params).await?.into()),
        Command::BindingList(params) => Outcome::BindingList(bindings::list(app, caller, params).await?.into()),
        Command::BindingGet(about) => Outcome::BindingGet(bindings::get(app, about.target).await?.into()),
        Command::BindingSet(params) => Outcome::BindingSet(bindings::set(app, caller, params, version).await?.into()),
        Command::BindingRemove(about) => {
            Outcome::BindingRemove(bindings::remove(app, caller, about.target, version).await?.into())
        }
        Command::CanvasList(params) => Outcome::CanvasList(canvases::list(app, caller, params).await?.into()),
        Command::CanvasGet(about) => Outcome::CanvasGet(canvases::get(app, about.target).await?.into()),
        Command::CanvasLink(about) => Outcome::CanvasLink(canvases::link(app, caller, about).await?.into()),
        Command::CanvasSubmit(about) => {
            Outcome::CanvasSubmit(canvases::submit(app, caller, about, version, asked.idempotency_key).await?.into())
        }
        Command::CanvasClose(about) => Outcome::CanvasClose(canvases::close(app, by, about.target).await?.into()),
        Command::AgentList(params) => Outcome::AgentList(agents::list(app, &params)?.into()),
        Command::AgentGet(about) => Outcome::AgentGet(agents::get(app, &about.target.0)?.into()),
        Command::AgentSet(params) => Outcome::AgentSet(agents::set(app, caller, params, version).await?.into()),
        Command::AgentRemove(about) => {
            Outcome::AgentRemove(agents::remove(app, by, &about.target.0, version).await?.into())
        }
        Command::EventAppend(params) => Outcome::EventAppend(events::append(app, caller, params).await?.into()),
        Command::AttachmentAdd(params) => Outcome::AttachmentAdd(attachments::add(app, caller, params).await?.into()),
        Command::MessageRoute(params) => Outcome::MessageRoute(messages::route(app, caller, params).await?.into()),
        Command::SkillList(_) => Outcome::SkillList(skills::list(app).into()),
        Command::SkillGet(about) => Outcome::SkillGet(skills::get(app, &about.target.0).await?.into()),
        Command::SkillUpload(params) => Outcome::SkillUpload(skills::upload(app, params).await?.into()),
        Command::SkillInstall(params) => Outcome::SkillInstall(skills::install(app, by, params).await?.into()),
        Command::SkillRemove(about) => Outcome::SkillRemove(skills::remove(app, by, &about.target.0).await?.into()),
        Command::SkillEnable(about) => {
            let to = skills::To::Enabled;
            Outcome::SkillEnable(skills::switch(app, by, &about.target.0, to, about.params).await?.into())
        }
        Command::SkillDisable(about) => {
            let to = skills::To::Disabled;
            Outcome::SkillDisable(skills::switch(app, by, &about.target.0, to, about.params).await?.into())
        }
        Command::SkillQuarantine(about) => {
            let to = skills::To::Quarantined;
            Outcome::SkillQuarantine(skills::switch(app, by, &about.target.0, to, about.params).await?.into())
        }
        Command::SkillAudit(about) => Outcome::SkillAudit(skills::audit(app, by, &about.target.0).await?.into()),
        Command::SkillConfigure(about) => {
            Outcome::SkillConfigure(skills::configure(app, by, &about.target.0, about.params).await?.into())
        }
        Command::SkillCall(about) => Outcome::SkillCall(skills::call(app, &about.target.0, about.params).await?.into()),
        Command::PublisherList(_) => Outcome::PublisherList(publishers::list(app).into()),
        Command::PublisherTrust(params) => Outcome::PublisherTrust(publishers::trust(app, by, params).await?.into()),
        Command::PublisherUntrust(about) => {
            Outcome::PublisherUntrust(publishers::untrust(app, by, &about.target.0, about.params).await?.into())
        }
        Command::PublisherImport(params) => {
            Outcome::PublisherImport(publishers::import(app, by, &params).await?.into())
        }
        Command::PublisherRevokeKey(params) => {
            Outcome::PublisherRevokeKey(publishers::revoke_key(app, by, &params).await?.into())
        }
        Command::HookList(_) => Outcome::HookList(hooks::list(app).await?.into()),
        Command::HookSet(params) => Outcome::HookSet(hooks::set(app, by, params).await?.into()),
        Command::HookRemove(about) => Outcome::HookRemove(hooks::remove(app, by, &about.target.0).await?.into()),
        Command::PrincipalShow(_) => Outcome::PrincipalShow(caller.view().into()),
        Command::DaemonStop(_) => Outcome::DaemonStop(inventory::stop(app, caller).into()),
        Command::Reconnect(_) => Outcome::Reconnect(inventory::reconnect(app, caller).await?.into()),
    })
}
