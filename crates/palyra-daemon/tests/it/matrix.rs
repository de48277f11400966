//! Who may give which command: every command against every kind of caller, in one table.
//!
//! The table is a `match` over all commands, so a new command without a row does not compile. It is written down by hand and not taken from the
//! catalogue, so that a wrong scope or effect in the catalogue is noticed here.

use std::time::Duration;

use palyra_client::command::{self, HttpMethod};
use palyra_common::{AcpCommand, PrincipalRole, RequestId, TokenScope};
use serde_json::{Value, json};

use crate::raw::{loopback_json, unix};
use crate::support::Daemon;
use crate::things::{self, Things, token};

/// What a caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It was let in and permitted; whether the command then succeeds is another matter.
    Permitted,
    /// It was let in and policy refused.
    Denied,
    /// It was not let in.
    Unknown,
}

use Verdict::{Denied, Permitted, Unknown};

/// The kinds of callers, in the order of a row.
const CALLERS: [&str; 8] =
    ["nobody", "expired", "revoked", "wrong scope", "viewer", "operator", "owner", "another user's operator"];

/// Rows that many commands share. Nobody, an expired and a revoked token are never let in; a credential without the scope never gets through.
const fn row(viewer: Verdict, operator: Verdict, stranger: Verdict) -> [Verdict; 8] {
    [Unknown, Unknown, Unknown, Denied, viewer, operator, Permitted, stranger]
}

/// Looking at a thing of one's own: everybody but a stranger.
const LOOK: [Verdict; 8] = row(Permitted, Permitted, Denied);
/// Looking at a list: a stranger sees its own, which is nothing.
const LIST: [Verdict; 8] = row(Permitted, Permitted, Permitted);
/// Changing a thing of one's own.
const CHANGE: [Verdict; 8] = row(Denied, Permitted, Denied);
/// Beginning something: a stranger begins its own.
const BEGIN: [Verdict; 8] = row(Denied, Permitted, Permitted);
/// What concerns the whole daemon.
const ADMINISTER: [Verdict; 8] = row(Denied, Denied, Denied);

fn expected(command: AcpCommand) -> [Verdict; 8] {
    use AcpCommand as C;
    match command {
        C::SessionNew | C::SessionResolve | C::RunCreate | C::ApprovalRequest | C::AuxiliaryRun => BEGIN,
        C::EventAppend | C::MessageRoute | C::AttachmentAdd => BEGIN,
        C::SessionRecall => BEGIN,
        C::SessionList
        | C::RunList
        | C::UsageReport
        | C::AuxiliaryList
        | C::ApprovalList
        | C::PatternList
        | C::Reconnect
        | C::PrincipalShow => LIST,
        C::ToolList | C::PolicyList | C::ConfigGet | C::BindingList | C::CanvasList => LIST,
        C::CanvasGet | C::CanvasWatch => LOOK,
        C::CanvasLink | C::CanvasSubmit | C::CanvasClose => CHANGE,
        C::ModelsStatus | C::ModelsExplain => LIST,
        // They send something to a provider, and its key with it.
        C::ModelsOffered | C::ModelsTest => ADMINISTER,
        // What is installed belongs to the daemon; everybody may look at it.
        C::SkillList | C::SkillGet | C::PublisherList | C::HookList => LIST,
        // Agents are the operator's, and their words are believed in everybody's runs.
        C::AgentList | C::AgentGet => LIST,
        C::AgentSet | C::AgentRemove => ADMINISTER,
        C::SessionLoad
        | C::SessionResume
        | C::SessionExport
        | C::SessionReplay
        | C::SessionExplain
        | C::SessionCompactPreview
        | C::SessionQueue
        | C::RunGet
        | C::RunTape
        | C::RunReplay
        | C::RunContext
        | C::AuxiliaryGet
        | C::ApprovalGet
        | C::BindingGet => LOOK,
        C::SessionRename
        | C::SessionArchive
        | C::SessionFork
        | C::SessionModeSet
        | C::SessionConfigSet
        | C::SessionCompactApply
        | C::SessionCompactRevert
        | C::SessionInput
        | C::SessionInputWithdraw
        | C::RunAbort
        | C::RunPause
        | C::RunResume
        | C::RunInput
        | C::RunDeliver
        | C::RunEnvelopeEdit
        | C::RunUndo
        | C::RunCompactRevert
        | C::ApprovalDecide
        | C::PatternRevoke
        | C::BindingSet
        | C::BindingRemove => CHANGE,
        C::JournalTail
        | C::JournalExport
        | C::JournalVerify
        | C::JournalProve
        | C::JournalBackup
        | C::TokenCreate
        | C::TokenList
        | C::TokenRotate
        | C::TokenRevoke
        | C::DeviceList
        | C::DeviceRevoke
        | C::WorkspaceGrant
        | C::WorkspaceRevoke
        | C::WorkspaceList
        | C::FileLabels
        | C::FileEndorse
        | C::SkillUpload
        | C::SkillInstall
        | C::SkillRemove
        | C::SkillEnable
        | C::SkillDisable
        | C::SkillQuarantine
        | C::SkillAudit
        | C::SkillConfigure
        | C::SkillCall
        | C::PublisherTrust
        | C::PublisherUntrust
        | C::PublisherImport
        | C::PublisherRevokeKey
        | C::HookSet
        | C::HookRemove
        | C::DaemonStop => ADMINISTER,
    }
}

fn verdict(code: Option<&str>) -> Verdict {
    match code {
        Some("command_denied") => Denied,
        Some("token_refused" | "credential_expired" | "credential_revoked" | "credential_invalid") => Unknown,
        _ => Permitted,
    }
}

/// Gives a command as an envelope, or at its address if it is answered with a stream.
fn ask(daemon: &Daemon, token: Option<&str>, command: AcpCommand, params: &Value) -> Verdict {
    let streams = command::STREAM_COMMANDS.iter().find(|spec| spec.name == command);
    if let Some(spec) = streams {
        let target = spec.target.and_then(|field| params[field].as_str()).unwrap_or_default();
        let path = spec.target.map_or(spec.path.to_owned(), |field| spec.path.replace(&format!("{{{field}}}"), target));
        let method = if spec.method == HttpMethod::Get { "GET" } else { "POST" };
        let answer = loopback_json(daemon, &format!("{method} {path}"), token, "");
        let code = (answer.status != 200).then(|| answer.code());
        return verdict(code.as_deref());
    }
    let envelope = json!({"request_id": RequestId::generate(), "command": command, "params": params}).to_string();
    let answer = loopback_json(daemon, "POST /acp/v1/command", token, &envelope).json();
    verdict(answer["error"]["code"].as_str())
}

/// The role that has a scope, and all its scopes but that one.
fn without(scope: TokenScope) -> (PrincipalRole, Vec<TokenScope>) {
    let role = if PrincipalRole::Operator.reaches(scope) { PrincipalRole::Operator } else { PrincipalRole::Owner };
    (role, role.scopes().iter().copied().filter(|other| *other != scope).collect())
}

#[tokio::test]
async fn every_command_against_every_caller() {
    // Most callers here are one principal, and a refusal for its haste would look like a permission.
    let place = things::place();
    let daemon = place.start().await;
    let things = Things::of(&place, &daemon).await;
    let approval = &things.approval;
    // Answers that nobody may give, to a question that is really asked.
    for answer in [r#"{"decision":"timeout","scope":"once"}"#, r#"{"decision":"allow","scope":"once","minutes":5}"#] {
        let refused = unix(&daemon, &format!("POST /api/v1/approvals/{approval}/decide"), answer.as_bytes());
        assert_eq!(refused.refusal(), (422, "request_invalid".to_owned()), "{answer}");
    }
    let (viewer, _) = token(&daemon, &json!({"name": "viewer", "role": "viewer"}));
    let (operator, _) = token(&daemon, &json!({"name": "operator", "role": "operator"}));
    let (owner, _) = token(&daemon, &json!({"name": "owner", "role": "owner"}));
    let (stranger, _) = token(&daemon, &json!({"name": "stranger", "role": "operator", "subject": "mallory"}));
    let (expired, _) = token(&daemon, &json!({"name": "expired", "role": "owner", "expires_in_seconds": 1}));
    let (revoked, id) = token(&daemon, &json!({"name": "revoked", "role": "owner"}));
    assert_eq!(unix(&daemon, &format!("POST /api/v1/tokens/{id}/revoke"), b"").status, 200);
    tokio::time::sleep(Duration::from_millis(1_100)).await;

    let mut wrong = Vec::new();
    // Stopping last, and by the owner last of all.
    let mut commands: Vec<_> = AcpCommand::ALL.to_vec();
    commands.sort_by_key(|command| *command == AcpCommand::DaemonStop);
    for command in commands {
        let params = things.params(command);
        let narrowed = command::spec(command).map(|spec| {
            let (role, scopes) = without(spec.scope);
            token(&daemon, &json!({"name": "narrow", "role": role, "scopes": scopes})).0
        });
        let narrowed = narrowed.unwrap_or_else(|| operator.clone());
        let mut callers = [
            None,
            Some(&expired),
            Some(&revoked),
            Some(&narrowed),
            Some(&viewer),
            Some(&operator),
            Some(&owner),
            Some(&stranger),
        ]
        .into_iter()
        .zip(CALLERS)
        .zip(expected(command))
        .collect::<Vec<_>>();
        callers.sort_by_key(|((_, name), _)| *name == "owner");
        for ((token, name), expected) in callers {
            if command == AcpCommand::BindingRemove {
                // Whoever may remove it has done so.
                things.bind(&daemon);
            }
            let found = ask(&daemon, token.map(String::as_str), command, &params);
            if found != expected {
                wrong.push(format!("{} by {name}: {found:?} instead of {expected:?}", command.as_str()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(daemon.ended().await.success(), "the owner's stop was the last command");
}
