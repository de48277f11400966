//! What the dispatcher has to know of each command before it carries it out, besides what the catalogue tells every client.
//!
//! One table, without a default: a command that is added to the catalogue does not compile until it is said here what a quota, policy and a crash mean for it.

use palyra_client::command::Command;
use palyra_common::SessionId;

use super::after_crash::{Removed, Subject, Traces};

/// What is known of one command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    /// What is left of it when its daemon dies before it can answer.
    pub(super) traces: Traces<'a>,
    pub(super) storage: Storage,
    /// A session that it names beside what it is about. Policy is asked about that session too.
    pub(super) session: Option<SessionId>,
}

/// Whether a command adds to what is stored for its principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// It is refused once the quota is used up.
    Adds,
    /// It reads, ends something or takes something back, or it is for those who administer the daemon and can change the quota as well.
    Keeps,
}

/// The facts of a command.
pub(super) fn facts(command: &Command) -> Facts<'_> {
    use Storage::{Adds, Keeps};
    use Traces::{Journaled, Repeatable, Secret};

    let of = |traces, storage, session| Facts { traces, storage, session };
    match command {
        Command::SessionNew(_) => of(Repeatable, Adds, None),
        Command::SessionResolve(_) => of(Repeatable, Adds, None),
        Command::SessionList(_) => of(Repeatable, Keeps, None),
        Command::SessionLoad(_) => of(Repeatable, Keeps, None),
        Command::SessionResume(_) => of(Repeatable, Keeps, None),
        Command::SessionRename(about) => of(Journaled(Subject::Session(about.target)), Adds, None),
        Command::SessionArchive(about) => of(Journaled(Subject::Session(about.target)), Keeps, None),
        Command::SessionFork(_) => of(Repeatable, Adds, None),
        Command::SessionExport(_) => of(Repeatable, Keeps, None),
        Command::SessionExplain(_) => of(Repeatable, Keeps, None),
        Command::SessionModeSet(about) => of(Journaled(Subject::Session(about.target)), Adds, None),
        Command::SessionConfigSet(about) => of(Journaled(Subject::Session(about.target)), Adds, None),
        Command::SessionCompactPreview(_) => of(Repeatable, Keeps, None),
        Command::SessionCompactApply(about) => of(Traces::Summary(about.target), Adds, None),
        Command::SessionCompactRevert(about) => of(Journaled(Subject::Compaction(about.target)), Keeps, None),
        Command::SessionRecall(params) => of(Repeatable, Adds, params.session_id),
        Command::SessionInput(_) => of(Repeatable, Adds, None),
        Command::SessionQueue(_) => of(Repeatable, Keeps, None),
        Command::SessionInputWithdraw(about) => of(Journaled(Subject::Queue(about.target)), Keeps, None),
        Command::RunCreate(params) => {
            // One that is named twice is refused later.
            let session = params.session_id.filter(|_| params.session_key.is_none());
            of(Repeatable, Adds, session)
        }
        Command::RunList(_) => of(Repeatable, Keeps, None),
        Command::RunGet(_) => of(Repeatable, Keeps, None),
        Command::RunAbort(about) => of(Journaled(Subject::Run(about.target)), Keeps, None),
        Command::RunPause(about) => of(Journaled(Subject::Run(about.target)), Keeps, None),
        Command::RunResume(about) => of(Journaled(Subject::Run(about.target)), Adds, None),
        Command::RunInput(about) => of(Journaled(Subject::Run(about.target)), Adds, None),
        Command::RunDeliver(about) => of(Journaled(Subject::Run(about.target)), Adds, None),
        Command::RunEnvelopeEdit(about) => of(Journaled(Subject::RunDetail(about.target)), Adds, None),
        Command::RunUndo(about) => of(Journaled(Subject::Undo(about.target)), Keeps, None),
        Command::RunContext(_) => of(Repeatable, Keeps, None),
        Command::RunCompactRevert(about) => of(Journaled(Subject::Run(about.target)), Keeps, None),
        Command::RunReplay(_) => of(Repeatable, Keeps, None),
        Command::AuxiliaryRun(params) => of(Repeatable, Adds, params.session_id),
        Command::AuxiliaryList(_) => of(Repeatable, Keeps, None),
        Command::AuxiliaryGet(_) => of(Repeatable, Keeps, None),
        Command::ModelsStatus(_) => of(Repeatable, Keeps, None),
        Command::ModelsExplain(_) => of(Repeatable, Keeps, None),
        Command::ModelsOffered(_) => of(Repeatable, Keeps, None),
        Command::ModelsTest(_) => of(Repeatable, Keeps, None),
        Command::UsageReport(_) => of(Repeatable, Keeps, None),
        Command::ApprovalList(_) => of(Repeatable, Keeps, None),
        Command::ApprovalGet(_) => of(Repeatable, Keeps, None),
        Command::ApprovalRequest(_) => of(Repeatable, Adds, None),
        Command::ApprovalDecide(about) => of(Journaled(Subject::Approval(about.target)), Keeps, None),
        Command::PatternList(_) => of(Repeatable, Keeps, None),
        Command::PatternRevoke(_) => of(Journaled(Subject::Patterns), Keeps, None),
        Command::ToolList(_) => of(Repeatable, Keeps, None),
        Command::PolicyList(_) => of(Repeatable, Keeps, None),
        Command::ConfigGet(_) => of(Repeatable, Keeps, None),
        Command::JournalProve(_) => of(Repeatable, Keeps, None),
        // It writes files.
        Command::JournalBackup(_) => of(Traces::None, Keeps, None),
        Command::TokenCreate(_) => of(Secret, Keeps, None),
        Command::TokenList(_) => of(Repeatable, Keeps, None),
        Command::TokenRotate(_) => of(Secret, Keeps, None),
        Command::TokenRevoke(about) => of(Journaled(Subject::Token(&about.target)), Keeps, None),
        Command::DeviceList(_) => of(Repeatable, Keeps, None),
        Command::DeviceRevoke(_) => of(Repeatable, Keeps, None),
        Command::WorkspaceGrant(_) => of(Repeatable, Keeps, None),
        Command::WorkspaceRevoke(params) => of(Traces::Removed(Removed::Workspace(params)), Keeps, None),
        Command::WorkspaceList(_) => of(Repeatable, Keeps, None),
        Command::FileLabels(_) => of(Repeatable, Keeps, None),
        Command::FileEndorse(_) => of(Journaled(Subject::Endorsement), Keeps, None),
        Command::BindingList(_) => of(Repeatable, Keeps, None),
        Command::BindingGet(_) => of(Repeatable, Keeps, None),
        // Whoever may not use a session cannot have a place lead to it.
        Command::BindingSet(params) => of(Journaled(Subject::Binding(&params.place)), Adds, Some(params.session_id)),
        Command::BindingRemove(about) => of(Traces::Removed(Removed::Binding(about.target)), Keeps, None),
        Command::CanvasList(_) => of(Repeatable, Keeps, None),
        Command::CanvasGet(_) => of(Repeatable, Keeps, None),
        Command::CanvasLink(_) => of(Secret, Adds, None),
        Command::CanvasSubmit(about) => match about.params.action.as_deref() {
            // The answer to a question.
            Some("allow" | "deny") => of(Journaled(Subject::CanvasAnswer(about.target, &about.params)), Keeps, None),
            // A form goes in under a name that comes from the key.
            _ => of(Repeatable, Adds, None),
        },
        Command::CanvasClose(_) => of(Repeatable, Keeps, None),
        Command::AgentList(_) => of(Repeatable, Keeps, None),
        Command::AgentGet(_) => of(Repeatable, Keeps, None),
        Command::AgentSet(params) => of(Journaled(Subject::Agent(&params.agent_id)), Keeps, None),
        Command::AgentRemove(about) => of(Traces::Removed(Removed::Agent(&about.target.0)), Keeps, None),
        Command::EventAppend(_) => of(Journaled(Subject::Event), Adds, None),
        Command::AttachmentAdd(_) => of(Repeatable, Adds, None),
        Command::MessageRoute(_) => of(Repeatable, Adds, None),
        Command::SkillList(_) => of(Repeatable, Keeps, None),
        Command::SkillGet(_) => of(Repeatable, Keeps, None),
        Command::SkillUpload(_) => of(Repeatable, Keeps, None),
        Command::SkillInstall(_) => of(Journaled(Subject::InstalledSkill), Keeps, None),
        Command::SkillRemove(about) => of(Traces::Removed(Removed::Skill(&about.target.0)), Keeps, None),
        Command::SkillEnable(about) => of(Journaled(Subject::Skill(&about.target.0)), Keeps, None),
        Command::SkillDisable(about) => of(Journaled(Subject::Skill(&about.target.0)), Keeps, None),
        Command::SkillQuarantine(about) => of(Journaled(Subject::Skill(&about.target.0)), Keeps, None),
        Command::SkillAudit(_) => of(Repeatable, Keeps, None),
        Command::SkillConfigure(_) => of(Repeatable, Keeps, None),
        // It runs a program.
        Command::SkillCall(_) => of(Traces::None, Keeps, None),
        Command::PublisherList(_) => of(Repeatable, Keeps, None),
        Command::PublisherTrust(params) => of(Journaled(Subject::Publisher(&params.publisher)), Keeps, None),
        Command::PublisherUntrust(about) => of(Journaled(Subject::Publisher(&about.target.0)), Keeps, None),
        Command::PublisherImport(params) => of(Journaled(Subject::Statement(params)), Keeps, None),
        Command::PublisherRevokeKey(params) => of(Journaled(Subject::PublisherKey(params)), Keeps, None),
        Command::HookList(_) => of(Repeatable, Keeps, None),
        Command::HookSet(_) => of(Repeatable, Keeps, None),
        Command::HookRemove(about) => of(Traces::Removed(Removed::Hook(&about.target.0)), Keeps, None),
        Command::PrincipalShow(_) => of(Repeatable, Keeps, None),
        Command::DaemonStop(_) => of(Repeatable, Keeps, None),
        Command::Reconnect(_) => of(Repeatable, Keeps, None),
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::{AcpCommand, ApprovalId, CanvasId, RunId};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn ending_answering_and_taking_back_need_no_room() {
        let storage = |command: AcpCommand, params: Value| {
            let command = Command::from_value(command, params).unwrap().unwrap();
            facts(&command).storage
        };
        let (session, run) = (json!({ "session_id": SessionId::generate() }), json!({ "run_id": RunId::generate() }));
        for command in [AcpCommand::RunAbort, AcpCommand::RunUndo, AcpCommand::RunCompactRevert] {
            assert_eq!(storage(command, run.clone()), Storage::Keeps, "{command}");
        }
        assert_eq!(storage(AcpCommand::SessionCompactRevert, session.clone()), Storage::Keeps);
        assert_eq!(storage(AcpCommand::SessionCompactApply, session), Storage::Adds);
        // On a page or beside it, the answer to a question is the same.
        let answer = json!({ "approval_id": ApprovalId::generate(), "decision": "allow", "scope": "once" });
        assert_eq!(storage(AcpCommand::ApprovalDecide, answer), Storage::Keeps);
        let form = json!({ "canvas_id": CanvasId::generate(), "component_id": "c" });
        assert_eq!(storage(AcpCommand::CanvasSubmit, form.clone()), Storage::Adds);
        let mut button = form;
        button["action"] = json!("deny");
        assert_eq!(storage(AcpCommand::CanvasSubmit, button), Storage::Keeps);
    }
}
