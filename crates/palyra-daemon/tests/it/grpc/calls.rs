//! Unary calls: sessions, runs, approvals, tokens, commands by name, health.

use palyra_common::{AcpCommandResultEnvelope, PrincipalRole, RequestId, TokenScope};
use palyra_proto::auth::v1 as auth;
use palyra_proto::common::v1::AcpCommandEnvelope;
use palyra_proto::contract_to_wire;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::resolve_session_request::By;
use palyra_proto::gateway::v1::run_spec::Session;
use palyra_proto::gateway::v1::run_stream_request::Body as Up;
use tonic::Code;

use super::support::{Grpc, refused, spec};
use crate::support::Place;

fn by_key(key: &str) -> wire::ResolveSessionRequest {
    wire::ResolveSessionRequest { by: Some(By::SessionKey(key.to_owned())), title: Some("Mine".to_owned()) }
}

#[tokio::test]
async fn sessions_are_resolved_listed_in_pages_and_cleaned_up() {
    let place = Place::new().with_script("[[turn]]\ntext = \"thinking\"\ndelay_ms = 20000\n");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let created = grpc.gateway.resolve_session(by_key("one")).await.unwrap().into_inner();
    let session = created.session.unwrap();
    assert!(created.created && session.version > 0);
    assert_eq!((session.session_key.as_deref(), session.title.as_str()), (Some("one"), "Mine"));
    let again = grpc.gateway.resolve_session(by_key("one")).await.unwrap().into_inner();
    assert!(!again.created);
    assert_eq!(again.session.unwrap().session_id, session.session_id);
    let by_id = wire::ResolveSessionRequest { by: Some(By::SessionId(session.session_id.clone())), title: None };
    assert_eq!(grpc.gateway.resolve_session(by_id).await.unwrap().into_inner().session.unwrap().title, "Mine");

    for key in ["two", "three"] {
        grpc.gateway.resolve_session(by_key(key)).await.unwrap();
    }
    let mut listed = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = wire::ListSessionsRequest { page_size: 2, page_token, include_archived: false };
        let page = grpc.gateway.list_sessions(request).await.unwrap().into_inner();
        listed.extend(page.sessions.into_iter().filter_map(|session| session.session_key));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(listed, ["three", "two", "one"]);

    let mut run = spec(&place, "think");
    run.session = Some(Session::SessionId(session.session_id.clone()));
    let mut stream = grpc.open(Up::Start(wire::StartRun { run: Some(run), progress: false })).await.unwrap();
    let run_id = stream.run_id().await;
    let cleanup =
        |expected_version| wire::CleanupSessionRequest { session_id: session.session_id.clone(), expected_version };
    assert_eq!(
        refused(grpc.gateway.cleanup_session(cleanup(Some(999))).await),
        (Code::Aborted, "version_conflict".into())
    );
    let cleaned = grpc.gateway.cleanup_session(cleanup(None)).await.unwrap().into_inner();
    assert_eq!(cleaned.aborted_runs, 1);
    assert!(cleaned.session.unwrap().archived_at.is_some());
    assert!(stream.rest().await.0.last().unwrap().is_terminal());
    assert!(daemon.client.run(run_id).await.unwrap().run.phase.is_terminal());
    let left = grpc.gateway.list_sessions(wire::ListSessionsRequest::default()).await.unwrap().into_inner();
    assert_eq!(left.sessions.len(), 2);
}

#[tokio::test]
async fn runs_are_listed_shown_and_aborted() {
    let place = Place::new();
    place.write("notes.md", "hello\n");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let run = daemon.create("list the files").await;
    daemon.follow(run.run_id, 1).await;
    let id = run.run_id.to_string();
    let shown = grpc.gateway.get_run(wire::GetRunRequest { run_id: id.clone() }).await.unwrap().into_inner();
    assert!(shown.answer.is_some());
    let view = shown.run.unwrap();
    assert_eq!((view.run_id.as_str(), view.owner.as_str()), (id.as_str(), run.owner.as_str()));
    assert_eq!(view.phase, contract_to_wire(palyra_common::RunLifecyclePhase::Completed));
    let listed = grpc.gateway.list_runs(wire::ListRunsRequest::default()).await.unwrap().into_inner();
    assert_eq!(listed.runs, [view]);
    let abort = wire::AbortRunRequest { run_id: id, reason: None };
    assert_eq!(refused(grpc.gateway.abort_run(abort).await), (Code::FailedPrecondition, "run_wrong_phase".into()));
}

#[tokio::test]
async fn approvals_can_be_answered_without_a_stream() {
    let script = "[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.write\"\n\
                  arguments = { path = \"made.txt\", content = \"one\\n\" }\n[[turn]]\ntext = \"Done.\"\n";
    let place = Place::new().with_script(script).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let run = daemon.create("write it").await;
    let asked = loop {
        let listed = grpc.approvals.list_approvals(wire::ListApprovalsRequest::default()).await.unwrap().into_inner();
        if let Some(asked) = listed.approvals.into_iter().next() {
            break asked.request.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!(asked.tool.as_deref(), Some("palyra.fs.write"));
    let decide = |decision: i32| wire::DecideApprovalRequest {
        approval_id: asked.approval_id.clone(),
        decision,
        scope: contract_to_wire(palyra_common::ApprovalScope::Once),
        minutes: None,
        reason: None,
    };
    // Nothing said, and a number that no version knows: neither is an answer.
    for nonsense in [0, 77] {
        assert_eq!(
            refused(grpc.approvals.decide_approval(decide(nonsense)).await),
            (Code::InvalidArgument, "proto_message_invalid".into())
        );
    }
    let allow = contract_to_wire(palyra_common::ApprovalDecision::Allow);
    grpc.approvals.decide_approval(decide(allow)).await.unwrap();
    daemon.follow(run.run_id, 1).await;
    assert!(place.workspace().join("made.txt").exists());
    let found = wire::GetApprovalRequest { approval_id: asked.approval_id.clone() };
    let answer = grpc.approvals.get_approval(found).await.unwrap().into_inner().approval.unwrap().answer.unwrap();
    assert_eq!((answer.decision, answer.via.as_deref()), (allow, Some("grpc, local token")));
}

#[tokio::test]
async fn a_token_opens_what_it_is_good_for_and_nothing_more() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut owner = Grpc::of(&daemon).await;
    let who = owner.tokens.who_am_i(auth::WhoAmIRequest {}).await.unwrap().into_inner();
    assert_eq!(who.role, contract_to_wire(PrincipalRole::Owner));
    let request = auth::CreateTokenRequest {
        name: "reads".into(),
        role: contract_to_wire(PrincipalRole::Viewer),
        scopes: vec![contract_to_wire(TokenScope::RunsRead), contract_to_wire(TokenScope::SessionsRead)],
        ..Default::default()
    };
    let made = owner.tokens.create_token(request).await.unwrap().into_inner();
    let token_id = made.token.unwrap().token_id;
    let mut viewer = Grpc::showing(&daemon, Some(made.secret.clone())).await;
    viewer.gateway.list_runs(wire::ListRunsRequest::default()).await.unwrap();
    let start = Up::Start(wire::StartRun { run: Some(spec(&place, "list the files")), progress: false });
    assert_eq!(refused(viewer.open(start).await.map(drop)).0, Code::PermissionDenied);
    assert_eq!(refused(viewer.tokens.list_tokens(auth::ListTokensRequest {}).await).0, Code::PermissionDenied);

    let rotate = auth::RotateTokenRequest { token_id: token_id.clone(), overlap_minutes: None };
    let rotated = owner.tokens.rotate_token(rotate).await.unwrap().into_inner();
    assert_eq!(refused(viewer.gateway.list_runs(wire::ListRunsRequest::default()).await).0, Code::Unauthenticated);
    let mut viewer = Grpc::showing(&daemon, Some(rotated.secret)).await;
    viewer.gateway.list_runs(wire::ListRunsRequest::default()).await.unwrap();
    let listed = owner.tokens.list_tokens(auth::ListTokensRequest {}).await.unwrap().into_inner().tokens;
    assert_eq!(listed.len(), 1);
    assert!(listed[0].last_used_at.is_some());
    owner.tokens.revoke_token(auth::RevokeTokenRequest { token_id }).await.unwrap();
    assert_eq!(refused(viewer.gateway.list_runs(wire::ListRunsRequest::default()).await).0, Code::Unauthenticated);
}

#[tokio::test]
async fn any_command_is_given_by_its_name() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut execute = async |command: &str, params: &str, key: Option<&str>| {
        let command = AcpCommandEnvelope {
            request_id: RequestId::generate().to_string(),
            command: command.to_owned(),
            params_json: params.to_owned(),
            idempotency_key: key.map(str::to_owned),
            expected_version: None,
        };
        let answer = grpc.gateway.execute(wire::ExecuteRequest { command: Some(command) }).await?;
        Ok::<_, tonic::Status>(AcpCommandResultEnvelope::try_from(answer.into_inner().result.unwrap()).unwrap())
    };
    let first = execute("session.new", r#"{"title":"Mine"}"#, Some("key-1")).await.unwrap();
    assert_eq!(first.outcome().unwrap()["title"], "Mine");
    let again = execute("session.new", r#"{"title":"Mine"}"#, Some("key-1")).await.unwrap();
    assert!(again.is_replayed());
    assert_eq!(again.outcome(), first.outcome());
    let other = execute("session.new", r#"{"title":"Other"}"#, Some("key-1")).await.unwrap();
    assert_eq!(other.outcome().unwrap_err().code, "idempotency_conflict");
    // A refusal is an answer.
    let refused_command = execute("run.get", r#"{"run_id":"01JC0Q6F7Z8G9H0J1K2M3N4P5Q"}"#, None).await.unwrap();
    assert_eq!(refused_command.outcome().unwrap_err().code, "run_not_found");
    let listed = execute("tool.list", "{}", None).await.unwrap();
    assert!(listed.outcome().is_ok(), "{listed:?}");
    let unknown = execute("run.explode", "", None).await;
    assert_eq!(refused(unknown), (Code::InvalidArgument, "proto_message_invalid".into()));
    let unreadable = execute("run.list", "{", None).await;
    assert_eq!(refused(unreadable), (Code::InvalidArgument, "proto_message_invalid".into()));
}

#[tokio::test]
async fn health_tells_of_every_part() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let health = grpc.gateway.get_health(wire::GetHealthRequest {}).await.unwrap().into_inner();
    let parts: Vec<&str> = health.components.iter().map(|part| part.component.as_str()).collect();
    assert!(parts.contains(&"journal") && parts.contains(&"grpc"), "{parts:?}");
    assert_eq!(health.status, contract_to_wire(palyra_common::HealthStatus::Ok));
}

#[tokio::test]
async fn places_are_tied_to_sessions() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let session = grpc.gateway.resolve_session(by_key("one")).await.unwrap().into_inner().session.unwrap();
    let wanted = |binding_id: &str, conversation: &str| wire::Binding {
        binding_id: binding_id.to_owned(),
        channel: "zed".to_owned(),
        conversation: conversation.to_owned(),
        session_id: session.session_id.clone(),
        ..wire::Binding::default()
    };
    let set = |binding, expected_version| wire::SetBindingRequest { binding: Some(binding), expected_version };
    let bound =
        grpc.gateway.set_binding(set(wanted("", "thread-7"), Some(0))).await.unwrap().into_inner().binding.unwrap();
    assert_eq!((bound.session_id.as_str(), bound.account.as_str()), (session.session_id.as_str(), ""));
    let stale = refused(grpc.gateway.set_binding(set(wanted("", "thread-7"), Some(0))).await);
    assert_eq!(stale, (Code::Aborted, "version_conflict".into()));
    let mixed_up = refused(grpc.gateway.set_binding(set(wanted(&bound.binding_id, "thread-8"), None)).await);
    assert_eq!(mixed_up.0, Code::InvalidArgument);
    let agent = wire::Binding { agent_id: "helper".to_owned(), ..wanted("", "thread-7") };
    assert_eq!(refused(grpc.gateway.set_binding(set(agent, None)).await), (Code::NotFound, "agent_not_found".into()));

    grpc.gateway.set_binding(set(wanted("", "thread-8"), None)).await.unwrap();
    let page = |page_token| wire::ListBindingsRequest { agent_id: None, page_size: 1, page_token };
    let first = grpc.gateway.list_bindings(page(String::new())).await.unwrap().into_inner();
    let second = grpc.gateway.list_bindings(page(first.next_page_token.clone())).await.unwrap().into_inner();
    assert_eq!((first.bindings.len(), second.bindings.len(), second.next_page_token.as_str()), (1, 1, ""));
    let remove = || wire::RemoveBindingRequest { binding_id: bound.binding_id.clone() };
    grpc.gateway.remove_binding(remove()).await.unwrap();
    assert_eq!(refused(grpc.gateway.remove_binding(remove()).await), (Code::NotFound, "binding_not_found".into()));
}
