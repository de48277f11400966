//! Safety scans: what a text hides, what it gives away, and what it tries.
//!
//! Everything here is a pure function of its input: no clock, no randomness, no I/O. The crate owns the normalisation of
//! text ([`fold`], [`views`]), the detection of secrets ([`Scanner`]), signals of prompt injection ([`assess`]), the table
//! that turns findings into an action per phase ([`decide`]), redaction, the chunked [`StreamScanner`] and the frame in
//! which untrusted text enters a prompt ([`frame`]). It leaves to others who may do what: a scan informs policy and
//! people, and removes secrets; it is never the wall that keeps a hostile model in.

mod error;
mod findings;
mod frame;
mod injection;
mod normalise;
mod phases;
mod redact;
mod scanner;
mod secrets;
mod stream;

pub use error::SafetyError;
pub use findings::{Confidence, Coverage, Finding, FindingClass, FindingKind, Preview, Scan, Span};
pub use frame::{Frame, FrameNonce, frame, unframe};
pub use injection::{InjectionAssessment, assess};
pub use normalise::{Folded, Layer, MAX_LAYERS, SpanMap, View, fold, views};
pub use phases::{SafetyPhase, Verdict, action_for, decide, decide_injection};
pub use redact::{redact, redact_str};
pub use scanner::Scanner;
pub use secrets::{VaultEntry, checksum};
pub use stream::{MAX_HELD_BYTES, Released, StreamScanner};
