//! Python: `componentize-py` in an environment in the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{COMPONENTIZE_PY, MissingToolchain, Versions, versions};
use crate::Language;
use crate::process::version;

/// The program that makes components of Python.
#[derive(Debug, Clone)]
pub(crate) struct Componentizer {
    pub(crate) program: PathBuf,
}

impl Componentizer {
    pub(super) fn find(root: &Path) -> Result<(Self, Versions), MissingToolchain> {
        let environment = root.join(format!("python-{COMPONENTIZE_PY}"));
        let program = environment.join("bin/componentize-py");
        let Some(found) = version(Command::new(&program).arg("--version")) else {
            let folder = environment.display();
            return Err(MissingToolchain {
                language: Language::Python,
                what: "componentize-py".to_owned(),
                found: None,
                install: format!(
                    "python3 -m venv {folder} && {folder}/bin/pip install componentize-py=={COMPONENTIZE_PY}"
                ),
            });
        };
        Ok((Self { program }, versions([("componentize-py", found)])))
    }
}
