//! Finding an SMT solver and starting it.
//!
//! The solver is a program of its own that reads SMT-LIB from a pipe; it is given no file and no network and ends with this process. It
//! is bounded in memory by its own option and in time by whoever waits for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cedar_policy_symcc::solver::SolverError;
use tokio::process::Command;

use crate::ProveError;
use crate::running::Running;

/// How long a whole comparison may take unless somebody says otherwise.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(120);

/// Most memory of the solver, in megabytes: enough for policies, too little to bring a machine down.
const MEMORY_MEGABYTES: u32 = 4_096;

/// Programs to look for, the better one for these formulas first.
const PROGRAMS: [&str; 2] = ["z3", "cvc5"];

/// An installed solver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SolverProgram {
    path: PathBuf,
}

impl SolverProgram {
    /// The solver that was named, or the first one on the search path.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(named: Option<&OsStr>, search_path: Option<&OsStr>) -> Result<Self, ProveError> {
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let path = PathBuf::from(named);
            return if is_program(&path) { Ok(Self { path }) } else { Err(ProveError::BadSolver { path }) };
        }
        let directories: Vec<PathBuf> =
            search_path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
        let candidates = PROGRAMS.iter().flat_map(|program| directories.iter().map(move |place| place.join(program)));
        // A relative directory would let whoever fills the working directory choose the program.
        let found = candidates.into_iter().find(|path| path.is_absolute() && is_program(path));
        found.map(|path| Self { path }).ok_or(ProveError::NoSolver)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn start(&self) -> Result<Running, ProveError> {
        let mut command = Command::new(&self.path);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        command.env_clear().kill_on_drop(true);
        let started = if name.starts_with("cvc5") {
            Running::cvc5(command.args(["--lang", "smt"]))
        } else {
            Running::z3(command.args(["-in", "-smt2"]).arg(format!("-memory:{MEMORY_MEGABYTES}")))
        };
        started.map_err(|error| match error {
            SolverError::Io(_) => ProveError::BadSolver { path: self.path.clone() },
            error => ProveError::failed(error),
        })
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
