//! JavaScript: `src/skill.js` with an interpreter around it. Everything of WASI is switched off, so the component has no clock, no randomness and no output of
//! its own; the interfaces of `palyra:host` give them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Job, Modules, Workplace, read_output};
use crate::process;
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
    let said = process::run(Language::JavaScript, &mut command)?;
    if !said.success {
        let why = syntax_error(&place.folder).unwrap_or(said.all);
        return Err(BuildError::compiler(Language::JavaScript, &why));
    }
    Ok(Modules::from([(job.skill_id.to_owned(), read_output(&output)?)]))
}

/// Where the source is no JavaScript, if that is why it failed: the library counts errors and does not say where they are.
fn syntax_error(folder: &Path) -> Option<String> {
    // Says that the files are modules; the folder is emptied before the next build.
    fs::write(folder.join("package.json"), r#"{"type": "module"}"#).ok()?;
    let mut command = Command::new("node");
    command.current_dir(folder).args(["--check", "src/skill.js"]);
    let said = process::run(Language::JavaScript, &mut command).ok().filter(|said| !said.success)?;
    let here = format!("{}/", folder.display());
    // The place, the line and the complaint; what follows is about the checker.
    let own = said.all.lines().map(str::trim_end).take_while(|line| !line.starts_with("    at "));
    Some(own.filter(|line| !line.is_empty()).map(|line| line.replace(&here, "")).collect::<Vec<_>>().join("\n"))
}
