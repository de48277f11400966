//! One report: figures with their aims, written as JSON and printed as a table.
//!
//! INVARIANT: a written report holds at least one figure, no id twice and no value that is not a number; anything else is
//! an error instead of a file, so that an unlucky measurement never looks like a good one.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use palyra_common::{Clock, SystemClock};
use serde::{Deserialize, Serialize};

use crate::{Aim, Better, FiguresError, Machine, Verdict, figures_directory, table};

/// One measured figure, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Stable name, such as `journal.append64`.
    pub id: String,
    /// The median, ratio or count.
    pub value: f64,
    /// What the value is counted in: `ratio`, `ms`, `runs/s`, `records`, ….
    pub unit: String,
    /// What a ratio is measured against.
    pub reference: Option<String>,
    /// The bound of the aim.
    pub aim: Option<f64>,
    /// Which side of the bound is the good one.
    pub better: Better,
    /// How many measurements or trials stand behind the value.
    pub n: u64,
    /// Width of the middle half of the measurements as a share of the median; absent for counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

impl Figure {
    /// Whether the aim was reached.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.aim, self.better) {
            (Some(bound), Better::Higher) => Aim::AtLeast(bound).judge(self.value),
            (Some(bound), Better::Lower) => Aim::AtMost(bound).judge(self.value),
            (None, _) => Verdict::NotAsked,
        }
    }

    pub(crate) fn aim_sign(&self) -> &'static str {
        match self.better {
            Better::Higher => "≥",
            Better::Lower => "≤",
        }
    }
}

/// A report as stored in `<name>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredReport {
    /// Name of the measuring program; also the file name.
    pub name: String,
    /// When it was finished, RFC 3339 in UTC.
    pub at: String,
    /// Where it ran.
    pub machine: Machine,
    /// What was measured, in the order it was reported.
    pub figures: Vec<Figure>,
    /// What a reader must know: what was left out, which sizes were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A report while it is being filled.
#[derive(Debug, Clone)]
pub struct Report {
    name: String,
    figures: Vec<Figure>,
    notes: Vec<String>,
}

/// What became of a finished report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Figures that reached their aim.
    pub met: usize,
    /// Figures that did not.
    pub missed: usize,
    /// Figures without an aim.
    pub not_asked: usize,
    /// The file that holds the report.
    pub path: PathBuf,
}

impl Report {
    /// An empty report; the name becomes the file name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), figures: Vec::new(), notes: Vec::new() }
    }

    /// Adds a figure. `reference` says what a ratio is measured against, `n` how many measurements stand behind it,
    /// `spread` is [`crate::Samples::spread`]. Without an aim, the figure should rise if its unit is a rate and fall
    /// otherwise.
    #[expect(
        clippy::too_many_arguments,
        reason = "a figure is exactly these facts; a builder would let one be forgotten"
    )]
    pub fn figure(
        &mut self,
        id: &str,
        value: f64,
        unit: &str,
        reference: Option<&str>,
        aim: Aim,
        n: u64,
        spread: Option<f64>,
    ) -> &mut Self {
        self.figures.push(Figure {
            id: id.to_owned(),
            value,
            unit: unit.to_owned(),
            reference: reference.map(str::to_owned),
            aim: aim.bound(),
            better: aim.better(unit),
            n,
            spread,
        });
        self
    }

    /// Adds a sentence for the reader, such as what was left out.
    pub fn note(&mut self, sentence: &str) -> &mut Self {
        self.notes.push(sentence.to_owned());
        self
    }

    /// Prints the table on standard output and writes `<name>.json` into [`figures_directory`].
    ///
    /// A missed aim is no error: figures inform, they do not fail a build.
    ///
    /// # Errors
    /// When the report is not fit to be kept, or cannot be written.
    pub fn finish(self) -> Result<Summary, FiguresError> {
        let directory = figures_directory()?;
        self.finish_in(&directory, &mut std::io::stdout().lock())
    }

    /// Like [`Report::finish`], with the directory and the printer given.
    ///
    /// # Errors
    /// When the report is not fit to be kept, or cannot be written.
    pub fn finish_in(self, directory: &Path, out: &mut dyn Write) -> Result<Summary, FiguresError> {
        self.check()?;
        let stored = StoredReport {
            at: SystemClock.now().to_rfc3339(),
            machine: Machine::detect(),
            name: self.name,
            figures: self.figures,
            notes: self.notes,
        };
        let path = directory.join(format!("{}.json", stored.name));
        write_report(&path, &stored)?;
        let count = |wanted| stored.figures.iter().filter(|figure| figure.verdict() == wanted).count();
        let summary = Summary {
            met: count(Verdict::Met),
            missed: count(Verdict::Missed),
            not_asked: count(Verdict::NotAsked),
            path,
        };
        print(out, &stored, &summary)
            .map_err(|source| FiguresError::Io { path: PathBuf::from("standard output"), source })?;
        Ok(summary)
    }

    fn check(&self) -> Result<(), FiguresError> {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
        if self.name.is_empty() || !self.name.chars().all(plain) {
            return Err(FiguresError::InvalidName { name: self.name.clone() });
        }
        if self.figures.is_empty() {
            return Err(FiguresError::Empty { name: self.name.clone() });
        }
        let mut seen = BTreeSet::new();
        for figure in &self.figures {
            if !seen.insert(figure.id.as_str()) {
                return Err(FiguresError::Duplicate { id: figure.id.clone() });
            }
            let numbers = [Some(figure.value), figure.aim, figure.spread];
            if let Some(value) = numbers.into_iter().flatten().find(|number| !number.is_finite()) {
                return Err(FiguresError::NotFinite { id: figure.id.clone(), value });
            }
        }
        Ok(())
    }
}

/// Written beside the target and renamed, so that a reader never sees half a report.
fn write_report(path: &Path, stored: &StoredReport) -> Result<(), FiguresError> {
    let failed = |source| FiguresError::Io { path: path.to_path_buf(), source };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let mut text = serde_json::to_string_pretty(stored)
        .map_err(|source| FiguresError::Malformed { path: path.to_path_buf(), source })?;
    text.push('\n');
    let staged = path.with_extension("json.tmp");
    fs::write(&staged, text).map_err(failed)?;
    fs::rename(&staged, path).map_err(failed)
}

fn print(out: &mut dyn Write, stored: &StoredReport, summary: &Summary) -> std::io::Result<()> {
    writeln!(out, "{} on {}", stored.name, stored.machine)?;
    write!(out, "{}", table::aligned(&stored.figures))?;
    for note in &stored.notes {
        writeln!(out, "note: {note}")?;
    }
    let Summary { met, missed, not_asked, path } = summary;
    writeln!(out, "{met} met, {missed} missed, {not_asked} without an aim; kept in {}", path.display())
}
