//! How large things may be. A document is kept on the journal, sent to every viewer and laid out by a browser; each bound stops one of them from
//! being made to do too much.

/// Largest document, as JSON.
pub const MAX_DOCUMENT_BYTES: usize = 256 * 1024;
/// Largest patch, as JSON (contracts: 256 KiB).
pub const MAX_PATCH_BYTES: usize = 256 * 1024;
/// Most operations of a patch (contracts: 512).
pub const MAX_OPERATIONS: usize = 512;
/// Deepest tree of components. Reading and rendering recurse, so this is what keeps the stack small.
pub const MAX_DEPTH: usize = 16;
/// Deepest nesting of JSON on the way from one document to the next, far more than [`MAX_DEPTH`] components have. Writing and dropping JSON recurse, so a patch that
/// copies a tree below itself again and again would otherwise run out of stack before its result is looked at.
pub(crate) const MAX_NESTING: usize = 128;

/// Most components of a document.
pub(crate) const MAX_COMPONENTS: usize = 2_000;
/// Longest text of one component, in bytes.
pub(crate) const MAX_TEXT: usize = 64 * 1024;
/// Longest label, title or option, in bytes: what stands on one line.
pub(crate) const MAX_LINE: usize = 500;
/// Most columns of a table.
pub(crate) const MAX_COLUMNS: usize = 32;
/// Most rows of a table.
pub(crate) const MAX_ROWS: usize = 2_000;
/// Most cells of all tables together.
pub(crate) const MAX_CELLS: usize = 20_000;
/// Most fields of a form.
pub(crate) const MAX_FIELDS: usize = 64;
/// Most options of a selection.
pub(crate) const MAX_OPTIONS: usize = 256;
/// Most lines of a chart, each with its own colour.
pub(crate) const MAX_SERIES: usize = 8;
/// Most points of one of them.
pub(crate) const MAX_POINTS: usize = 500;
/// Largest magnitude of a number in a chart or a field; beyond it coordinates lose their digits.
pub(crate) const MAX_NUMBER: f64 = 1e15;
/// Largest image, as the text of its address.
pub(crate) const MAX_IMAGE: usize = 200 * 1024;
/// Longest value that a person enters into one field, in bytes, unless the field says less.
pub(crate) const MAX_VALUE: usize = 8 * 1024;
/// Most problems that are told at once.
pub(crate) const MAX_PROBLEMS: usize = 16;
