//! What a person sends from a page: plain HTML forms.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequest as _, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, StatusCode};
use palyra_a2ui::html::{Entered, Notice};
use palyra_client::api::{CanvasAccess, InputFate, SubmitCanvasParams, SubmitCanvasResponse, paths};
use palyra_client::command::{About, Command, Outcome};
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use serde_json::{Map, Value};

use super::page::{self, Done};
use super::{Token, admit, gone, refused, shown};
use crate::app::App;
use crate::auth::Peer;
use crate::dispatch::{self, Answer, Caller, Link, Refusal, Result, link_of};
use crate::http::error::status_of;
use crate::http::extract::Body;
use crate::serve::Connection;

/// Before the names of values.
const VALUE_PREFIX: &str = "v.";
/// Most pairs of a form; more than any form of ours sends.
const MAX_PAIRS: usize = 128;

pub(super) async fn take(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Extension(connection): Extension<Connection>,
    path: Token,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let token = shown(path);
    // Before anything of the body is read: it is a stranger's until the link is known.
    let (link, caller) = match admit(&app, &peer, &connection, &token).await {
        Ok(admitted) => admitted,
        Err(refusal) => return *refusal,
    };
    let body = match Body::from_request(request, &app).await {
        Ok(Body(body)) => body,
        Err(error) => return refused(&error.into_envelope()),
    };
    let sent = check(&link, &headers).and_then(|()| read(&body));
    let entered = sent.as_ref().ok().map(|sent| (sent.component_id.clone(), sent.values.clone()));
    let done = match sent {
        Ok(sent) => act(&app, &link, &caller, sent).await,
        Err(refusal) => Err(refusal),
    };
    match done {
        Ok(done) => {
            let place = format!("{}?done={}", paths::CANVAS_PAGE.replace("{token}", &token), done.word());
            (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
        }
        Err(refusal) => {
            let envelope = refusal.into_envelope();
            // It may have ended while the form was on its way.
            if !matches!(link_of(&app, &token).await, Ok(Some(_))) {
                return gone();
            }
            let notice = Notice::Refused(&envelope.message);
            let entered = entered.as_ref().map(|(form, values)| Entered { form, values });
            page::write(
                &app,
                &link,
                &caller,
                &token,
                page::Said { status: status_of(&envelope), notice: Some(notice), entered },
            )
            .await
        }
    }
}

/// A form that was refused leaves its own address in the browser; whoever loads that again wants the page.
pub(super) async fn back(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Extension(connection): Extension<Connection>,
    path: Token,
) -> Response {
    let token = shown(path);
    match admit(&app, &peer, &connection, &token).await {
        Ok(_) => (StatusCode::SEE_OTHER, [(LOCATION, paths::CANVAS_PAGE.replace("{token}", &token))]).into_response(),
        Err(refusal) => *refusal,
    }
}

/// Whether a link takes forms, and this is one.
fn check(link: &Link, headers: &HeaderMap) -> Result<()> {
    if link.access != CanvasAccess::Act {
        let message = "this link is read-only";
        return Err(StableErrorEnvelope::new("canvas_link_read_only", ErrorCategory::Policy, message)
            .hint("create a link with `palyra canvas open --act`")
            .into());
    }
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !media.to_ascii_lowercase().starts_with("application/x-www-form-urlencoded") {
        return Err(Refusal::field("content-type", "it must be `application/x-www-form-urlencoded`"));
    }
    Ok(())
}

async fn act(app: &Arc<App>, link: &Link, caller: &Caller, params: SubmitCanvasParams) -> Result<Done> {
    let command = Command::CanvasSubmit(About { target: link.canvas_id, params });
    match dispatch::dispatch(app, caller, command.into()).await? {
        Answer::Fresh(Outcome::CanvasSubmit(taken)) => Ok(match *taken {
            SubmitCanvasResponse { approval: Some(_), .. } => Done::Answered,
            SubmitCanvasResponse { input: Some(input), .. } if input.fate == InputFate::Queued => Done::Queued,
            SubmitCanvasResponse { .. } => Done::Sent,
        }),
        _ => Err(Refusal::internal("a form came to something else")),
    }
}

/// Reads a form. Every name stands once: a browser sends it so, and what stands twice could be read in two ways.
fn read(body: &[u8]) -> Result<SubmitCanvasParams> {
    let mut fields: Map<String, Value> = Map::new();
    for (count, (name, value)) in form_urlencoded::parse(body).enumerate() {
        if count >= MAX_PAIRS {
            return Err(Refusal::field("body", format!("it has more than {MAX_PAIRS} fields")));
        }
        if fields.insert(name.clone().into_owned(), Value::String(value.into_owned())).is_some() {
            return Err(Refusal::field(
                "body",
                format!("`{}` is given twice", name.chars().take(64).collect::<String>()),
            ));
        }
    }
    let mut text = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let component_id = text("component").ok_or_else(|| Refusal::field("component", "it is missing"))?;
    let version = text("version").ok_or_else(|| Refusal::field("version", "it is missing"))?;
    let expected_version = version.parse().map_err(|_| Refusal::field("version", "it is not a number"))?;
    let approval_id = match text("approval") {
        None => None,
        Some(id) => Some(id.parse().map_err(|_| Refusal::field("approval", "it is not the id of an approval"))?),
    };
    let (action, once) = (text("action"), text("once"));
    let mut values = Map::new();
    for (name, value) in fields {
        match name.strip_prefix(VALUE_PREFIX) {
            Some(name) => _ = values.insert(name.to_owned(), value),
            None => {
                let shown: String = name.chars().take(64).collect();
                return Err(Refusal::field(&shown, "it is not a field of a canvas page"));
            }
        }
    }
    Ok(SubmitCanvasParams { component_id, action, approval_id, values, expected_version: Some(expected_version), once })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_strictly() {
        let good = read(b"component=f&version=3&action=submit&once=x&v.a=1+2&v.b=%3Cb%3E").unwrap();
        assert_eq!(
            (good.component_id.as_str(), good.expected_version, good.once.as_deref()),
            ("f", Some(3), Some("x"))
        );
        assert_eq!((good.values["a"].as_str(), good.values["b"].as_str()), (Some("1 2"), Some("<b>")));
        for bad in [
            &b""[..],
            b"component=f",
            b"version=1",
            b"component=f&version=x",
            b"component=f&version=1&version=2",
            b"component=f&version=1&v.a=1&v.a=2",
            b"component=f&version=1&other=1",
            b"component=f&version=1&approval=x",
        ] {
            assert!(read(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        let many = format!("component=f&version=1{}", "&v.a=1".repeat(200));
        assert!(read(many.as_bytes()).is_err());
    }
}
