//! Messages of chat channels: which session and which agent they go to, and that each goes there once.
//!
//! A message is data of somebody outside. It begins a run whose task is not the person's word, unless the person said of this very sender, at the binding, that
//! it is them. That a message came in is one commit with what becomes of it, and it is found again by its channel's own id; so a message that is delivered twice,
//! also across a crash, has one effect, and one that is refused leaves nothing behind.

mod check;
mod table;

use palyra_agent::{InputWhereabouts, OutsideSender, SessionInput, Submitted};
use palyra_client::api::{BindingPlace, BindingView, RouteDisposition, RouteMessageParams, RouteMessageResponse};
use palyra_common::{AcpCommand, BindingId, Clock as _, Digest, InputMode, SystemClock};

use self::table::MessageReceived;
use super::caller::Caller;
use super::refusal::Result;
use super::{authorise, bindings, records, workspaces};
use crate::app::App;

pub(super) use table::Messages;

pub(super) async fn route(app: &App, caller: &Caller, params: RouteMessageParams) -> Result<RouteMessageResponse> {
    check::message(&params)?;
    let place = BindingPlace {
        channel: params.channel.clone(),
        account: params.account.clone(),
        conversation: params.conversation.clone(),
    };
    // Whoever delivers the same message meanwhile waits, and then finds it delivered.
    let _turn = bindings::hold(app, caller, &place).await;
    let Some(bound) = bindings::find_at(app, caller, &place).await? else {
        return Ok(RouteMessageResponse { disposition: RouteDisposition::Ignored, session_id: None, run_id: None });
    };
    if let Some(known) = earlier(app, bound.binding_id, &params.message_id).await? {
        let run_id = match app.engine.input_whereabouts(known.session_id, &known.input_id).await? {
            Some(InputWhereabouts::InRun(run_id)) => Some(run_id),
            _ => None,
        };
        let (disposition, session_id) = (RouteDisposition::Duplicate, Some(known.session_id));
        return Ok(RouteMessageResponse { disposition, session_id, run_id });
    }
    authorise::in_session(app, caller, AcpCommand::MessageRoute, bound.session_id).await?;
    check::attachments(app, caller, &params.attachments).await?;
    app.outside.refresh().await;
    let effective = app.engine.workspace_of_input(bound.session_id, None, bound.agent.as_deref()).await?;
    workspaces::permit(app, caller, AcpCommand::MessageRoute, &effective).await?;
    let input = input(app, caller, &bound, params)?;
    let (disposition, run_id) = match app.engine.submit_input(bound.session_id, input).await? {
        Submitted::Started(run) | Submitted::Steered(run) => (RouteDisposition::Started, Some(run.run_id)),
        Submitted::Queued { .. } => (RouteDisposition::Queued, None),
    };
    Ok(RouteMessageResponse { disposition, session_id: Some(bound.session_id), run_id })
}

fn received(bound: &BindingView, params: &RouteMessageParams) -> MessageReceived {
    let parts = [bound.binding_id.to_string(), params.message_id.clone()];
    let digest = Digest::of_parts(&parts.each_ref().map(|part| part.as_bytes()));
    MessageReceived {
        binding_id: bound.binding_id,
        session_id: bound.session_id,
        // The channel's id may hold anything; this one is a plain name.
        input_id: format!("message-{}", digest.to_hex()),
        message_id: params.message_id.clone(),
        sender: params.sender.clone(),
        trusted: is_trusted(bound, &params.sender),
        sent_at: params.sent_at,
        attachments: params.attachments.iter().map(|file| file.artifact).collect(),
    }
}

/// Whether the person said that this sender is them. Names are compared as they are: one that only looks alike is another.
fn is_trusted(bound: &BindingView, sender: &str) -> bool {
    bound.trusted_senders.iter().any(|trusted| trusted == sender)
}

fn input(app: &App, caller: &Caller, bound: &BindingView, params: RouteMessageParams) -> Result<SessionInput> {
    let received = received(bound, &params);
    let beside = vec![records::record(table::RECEIVED, SystemClock.now(), &received)?];
    let mut text = params.text;
    for file in &params.attachments {
        let (name, media_type, size) = (&file.name, &file.media_type, file.size_bytes);
        text.push_str(&format!("\n[attached: {name}, {media_type}, {size} bytes, {}]", file.artifact));
    }
    let from = OutsideSender {
        channel: params.channel,
        conversation: params.conversation,
        sender: params.sender,
        message_id: params.message_id,
    };
    Ok(SessionInput {
        text,
        mode: InputMode::FollowUp,
        workspace: None,
        by: caller.id().to_owned(),
        given_with: caller.started_with(app),
        input_id: Some(received.input_id),
        agent: bound.agent.clone(),
        from: (!received.trusted).then_some(from),
        beside,
    })
}

async fn earlier(app: &App, binding: BindingId, message_id: &str) -> Result<Option<table::Earlier>> {
    let message_id = message_id.to_owned();
    Ok(app.journal.read(move |reader| Ok(table::earlier(reader.connection(), binding, &message_id)?)).await?)
}
