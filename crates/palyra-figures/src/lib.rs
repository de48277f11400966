//! What every measuring program shares.
//!
//! A figure is a ratio measured in one run against a stated reference, or a count. A program takes [`Samples`], hands
//! medians to a [`Report`] together with an [`Aim`], and [`Report::finish`] prints the table and leaves the JSON from
//! which the page of figures is made. Absolute times are printed for people; nothing here asserts them.
//!
//! Leaves to others: what is measured and against what. This crate knows no other part of Palyra but its vocabulary.

mod aim;
mod error;
mod growth;
mod machine;
mod page;
mod place;
mod report;
mod samples;
mod table;

pub use aim::{Aim, Better, Verdict};
pub use error::FiguresError;
pub use growth::exponent;
pub use machine::Machine;
pub use page::{read_reports, render_page};
pub use place::{figures_directory, workspace_root};
pub use report::{Figure, Report, StoredReport, Summary};
pub use samples::{Samples, measure, measure_against, try_measure};
