//! JavaScript: `src/skill.js` with an interpreter around it. Everything of WASI is switched off, so the component has no clock, no randomness and no output of
//! its own; the interfaces of `palyra:host` give them.

use std::fs;
use std::process::Command;

use super::{Job, Modules, Workplace, read_output};
use crate::process::compile as run_compiler;
use crate::toolchain::JavaScriptComponentizer;
use crate::world::{World, write_packages};
use crate::{BuildError, Language};

/// The script that calls the library.
pub(super) const SCRIPT: &str = include_str!("../../assets/componentize.mjs");

pub(super) fn compile(job: &Job<'_>, componentizer: &JavaScriptComponentizer) -> Result<Modules, BuildError> {
    let world = World::of(job.sources)?.name()?;
    let place = Workplace::new(job, "javascript")?;
    write_packages(&place.folder.join("wit"))?;
    let script = place.folder.join("componentize.mjs");
    fs::write(&script, SCRIPT).map_err(BuildError::io(&script))?;
    let output = place.folder.join("out.wasm");
    let mut command = Command::new("node");
    command.current_dir(&place.folder).arg(&script).arg(&componentizer.library);
    command.args(["src/skill.js", "wit", &world, "out.wasm"]);
    run_compiler(Language::JavaScript, &mut command)?;
    Ok(Modules::from([(job.skill_id.to_owned(), read_output(&output)?)]))
}
