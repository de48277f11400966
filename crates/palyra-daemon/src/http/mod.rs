//! HTTP: addresses, bodies and answers around the one dispatcher.
//!
//! `rest` serves every command at its address, `acp` and `socket` take envelopes, `attachments` takes forms with files, `events` is for browsers, `canvas` shows them pages that agents drew, `console` logs people in, `observe` is for programs that watch. `held` counts what is not yet taken. `error` is the
//! one place where a refusal becomes a status.

mod acp;
mod attachments;
mod canvas;
mod console;
mod description;
mod error;
mod events;
mod extract;
mod headers;
mod health;
mod held;
mod ndjson;
mod observe;
mod rest;
mod router;
mod socket;

pub(crate) use attachments::Form;
pub(crate) use error::ApiError;
pub(crate) use events::resume_after;
pub(crate) use extract::{Body, MAX_BODY_BYTES};
pub(crate) use health::{RecentHealth, report as health_report};
pub(crate) use observe::sample;
pub(crate) use router::{Front, locate};
