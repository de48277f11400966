//! A2UI: user interface that agents draw, as documents and patches that are checked before anybody sees them.
//!
//! A [`Document`] is a tree of [`Component`]s out of a closed list. [`Document::parse`] is the only way to get one, and it refuses whatever it does
//! not know: types, fields, sizes, depths, ids that stand twice. [`patch`](patch::apply) applies RFC 6902 patches to a version and checks the
//! result as if it were new. [`check_values`] holds what a person entered against the form it was entered into.
//!
//! [`html`] writes a page and [`text`] writes lines for a terminal. INVARIANT: markup comes from this crate's own literals alone; every piece of a
//! document goes through one escaping function, whatever a model or whoever wrote to it put there. Nothing is ever loaded from elsewhere.
//!
//! Everything here is a pure function. Canvases, their journal and their links belong to the engine and the daemon.

mod component;
mod document;
mod error;
mod limits;
mod patch;
mod read;
mod safe;
mod values;

pub mod html;
pub mod text;

pub use component::{
    Approval, Cell, Chart, ChartKind, Choice, Code, Component, Diff, Field, FieldKind, Form, Image, List, ListStyle,
    Markdown, Progress, Series, Table, Text, TextStyle,
};
pub use document::Document;
pub use error::A2uiError;
pub use limits::{MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_OPERATIONS, MAX_PATCH_BYTES};
pub use patch::{apply, apply_recorded};
pub use safe::is_plain_name;
pub use values::{CheckedValues, check_values};
