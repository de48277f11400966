//! Finding the programs under test: they lie beside the test executable, in the directory that cargo built into.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// A program of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// The command line.
    Palyra,
    /// The daemon.
    Palyrad,
    /// The daemon with probe tools.
    PalyradProbe,
}

impl Binary {
    /// The file name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Palyra => "palyra",
            Self::Palyrad => "palyrad",
            Self::PalyradProbe => "palyrad-probe",
        }
    }

    /// Where the program is.
    ///
    /// # Errors
    /// When it was not built; the error says how to build it.
    pub fn path(self) -> Result<PathBuf> {
        let own = std::env::current_exe().context("this test's own path is unknown")?;
        // Tests lie in `<target>/<profile>/deps`, benches and examples beside it.
        let found =
            own.ancestors().skip(1).take(3).map(|directory| directory.join(self.name())).find(|path| is_file(path));
        match found {
            Some(path) => Ok(path),
            None => bail!("`{}` is not built; type: cargo build --workspace --bins", self.name()),
        }
    }
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
