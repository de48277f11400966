//! From a folder of sources to the bytes of its modules, one file per language.
//!
//! All of them work on a copy of the sources: what is compiled is what the source digest stands for, and the skill's folder stays as it was.

mod c;
mod javascript;
mod python;
mod rust;
mod wat;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::source::Sources;
use crate::toolchain::{Program, Toolchain};
use crate::{BuildError, GuestTools, Language};

/// What is compiled.
pub(crate) struct Job<'a> {
    /// The skill's id, which the module is called after.
    pub(crate) skill_id: &'a str,
    pub(crate) sources: &'a Sources,
    pub(crate) tools: &'a GuestTools,
}

/// Bytes by the name of the module.
pub(crate) type Modules = BTreeMap<String, Vec<u8>>;

/// Compiles with whatever the language needs.
pub(crate) fn compile(job: &Job<'_>, toolchain: &Toolchain) -> Result<Modules, BuildError> {
    match &toolchain.program {
        Program::Rust(cargo) => rust::compile(job, cargo),
        Program::JavaScript(componentizer) => javascript::compile(job, componentizer),
        Program::Python(componentizer) => python::compile(job, componentizer),
        Program::C(compiler) => c::compile(job, compiler),
        Program::Wat => wat::compile(job),
    }
}

/// How a language is compiled, as a text: what was compiled in another way is not used again.
pub(crate) fn recipe(language: Language) -> String {
    match language {
        Language::Rust => rust::ARGUMENTS.join(" "),
        Language::JavaScript => javascript::SCRIPT.to_owned(),
        Language::Python => python::ARGUMENTS.join(" "),
        Language::C => c::FLAGS.join(" "),
        Language::Wat => String::new(),
    }
}

/// The lock file of Rust's dependencies, when the sources have none that fits.
pub(crate) fn new_lock_file(job: &Job<'_>, toolchain: &Toolchain) -> Result<Option<Vec<u8>>, BuildError> {
    match &toolchain.program {
        Program::Rust(_) => rust::new_lock_file(job),
        _ => Ok(None),
    }
}

/// A copy of a skill's sources at a path that is the same for every build of it, so that paths which end up in a module do too. One build at a time.
struct Workplace {
    folder: PathBuf,
    _turn: File,
}

impl Workplace {
    fn new(job: &Job<'_>, kind: &str) -> Result<Self, BuildError> {
        let root = job.tools.root().join("work").join(kind);
        fs::create_dir_all(&root).map_err(BuildError::io(&root))?;
        let lock = root.join("lock");
        let turn = File::create(&lock).map_err(BuildError::io(&lock))?;
        turn.lock().map_err(BuildError::io(&lock))?;
        let folder = root.join("skill");
        fs::create_dir_all(&folder).map_err(BuildError::io(&folder))?;
        // What is the same as in the last build keeps its time, so that compilers see which parts changed.
        clear(job.sources, &folder, "")?;
        job.sources.copy_to(&folder)?;
        Ok(Self { folder, _turn: turn })
    }
}

/// Removes everything below a folder that is not one of the sources.
fn clear(sources: &Sources, folder: &Path, prefix: &str) -> Result<(), BuildError> {
    for entry in fs::read_dir(folder).map_err(BuildError::io(folder))? {
        let entry = entry.map_err(BuildError::io(folder))?;
        let path = entry.path();
        let inside = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().map_err(BuildError::io(&path))?;
        if kind.is_dir() && sources.under(&format!("{inside}/"), "").next().is_some() {
            clear(sources, &path, &format!("{inside}/"))?;
        } else if kind.is_dir() {
            fs::remove_dir_all(&path).map_err(BuildError::io(&path))?;
        } else if !kind.is_file() || sources.get(&inside).is_none() {
            fs::remove_file(&path).map_err(BuildError::io(&path))?;
        }
    }
    Ok(())
}

/// Reads what a compiler left.
fn read_output(path: &Path) -> Result<Vec<u8>, BuildError> {
    fs::read(path).map_err(BuildError::io(path))
}
