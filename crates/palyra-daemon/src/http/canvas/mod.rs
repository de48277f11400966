//! Canvases as pages, for whoever has a link: `/canvas/v1/…`.
//!
//! The token in the address is the whole credential. `page` shows the canvas, `events` tells a page of new versions, `actions` takes its forms. A link
//! that is unknown, has run out or ended in another way is told with one and the same page, so that nobody learns which it was.
//!
//! INVARIANT: whatever a link asks for goes through the dispatcher as its maker, about the link's own canvas and no other; the commands are named
//! here and never taken from the request.

mod actions;
mod events;
mod page;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Path};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use palyra_a2ui::html;
use palyra_client::api::paths;
use palyra_common::StableErrorEnvelope;

use super::error::status_of;
use crate::app::App;
use crate::auth::Peer;
use crate::dispatch::{Caller, Link, Refusal, Transport, link_of};
use crate::serve::Connection;

/// Largest form. A form has at most 64 fields of 8 KiB, and nobody fills in all of them to the brim.
const MAX_FORM_BYTES: usize = 256 * 1024;

/// Below this everything is for links.
pub(super) const PREFIX: &str = "/canvas/v1/";

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(paths::CANVAS_PAGE, get(page::show))
        .route(paths::CANVAS_PAGE_EVENTS, get(events::follow))
        .route(
            paths::CANVAS_PAGE_ACTIONS,
            post(actions::take).get(actions::back).layer(DefaultBodyLimit::max(MAX_FORM_BYTES)),
        )
}

/// The token of an address, if it can be read at all.
type Token = Result<Path<String>, PathRejection>;

/// An address that cannot be read is one that is not good.
fn shown(token: Token) -> String {
    token.map(|Path(token)| token).unwrap_or_default()
}

/// Whom a link lets in, or the page that says it does not.
async fn admit(
    app: &Arc<App>,
    peer: &Peer,
    connection: &Connection,
    token: &str,
) -> Result<(Link, Caller), Box<Response>> {
    match link_of(app, token).await {
        Ok(Some(link)) => {
            if let Err(exhausted) = connection.authenticated(&link.principal.id) {
                return Err(Box::new(refused(&exhausted.into())));
            }
            let caller = Caller::new(link.principal.clone(), Transport::Http).on(connection);
            Ok((link, caller))
        }
        Ok(None) => Err(Box::new(match app.gate.guessed(peer) {
            Ok(()) => gone(),
            Err(throttled) => refused(&throttled),
        })),
        Err(refusal) => Err(Box::new(refused(refusal.envelope()))),
    }
}

/// The page of every link that is not good, for whatever reason.
fn gone() -> Response {
    let sentence = "It is unknown, it has expired, or the page was closed. Ask the person who sent it for a new one.";
    respond(StatusCode::NOT_FOUND, |nonce| html::plain_page("This link is not valid", sentence, nonce))
}

/// A page that says why something was refused.
fn refused(envelope: &StableErrorEnvelope) -> Response {
    let mut response =
        respond(status_of(envelope), |nonce| html::plain_page("That did not work", &envelope.message, nonce));
    let wait = envelope.details.as_ref().and_then(|details| details.get("retry_after_ms")?.as_u64());
    if let Some(millis) = wait {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(millis.div_ceil(1000)));
    }
    response
}

/// A page with the policy that goes with it: its own style and script by a nonce, pictures inside the document, forms and events of this daemon, and
/// nothing else.
fn respond(status: StatusCode, write: impl FnOnce(&str) -> String) -> Response {
    let mut bytes = [0_u8; 16];
    if let Err(error) = getrandom::fill(&mut bytes) {
        let refusal = Refusal::internal(format!("no random bytes: {error}"));
        return super::error::ApiError::from(refusal).into_response();
    }
    let nonce = URL_SAFE_NO_PAD.encode(bytes);
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; img-src data:; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'; sandbox allow-forms allow-scripts allow-same-origin"
    );
    let Ok(policy) = HeaderValue::from_str(&policy) else {
        return super::error::ApiError::internal("a page's content security policy is not a valid header")
            .into_response();
    };
    let mut response = (status, write(&nonce)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    // With `no-referrer` a browser would send `Origin: null` with the page's own forms. Other sites get nothing either way.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow"));
    response
}
