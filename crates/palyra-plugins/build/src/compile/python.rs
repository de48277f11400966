//! Python: `src/skill.py` with an interpreter around it, and stubs that trap in place of WASI.

use std::process::Command;

use super::{Job, Modules, Workplace, read_output};
use crate::process::compile as run_compiler;
use crate::toolchain::PythonComponentizer;
use crate::world::{World, write_packages};
use crate::{BuildError, Language};

/// How the interpreter is wrapped.
pub(super) const ARGUMENTS: [&str; 7] = ["componentize", "--stub-wasi", "-p", "src", "-o", "out.wasm", "skill"];

pub(super) fn compile(job: &Job<'_>, componentizer: &PythonComponentizer) -> Result<Modules, BuildError> {
    let world = World::of(job.sources)?.name()?;
    let place = Workplace::new(job, "python")?;
    write_packages(&place.folder.join("wit"))?;
    let output = place.folder.join("out.wasm");
    let mut command = Command::new(&componentizer.program);
    command.current_dir(&place.folder).args(["-q", "-d", "wit", "-w", &world]).args(ARGUMENTS);
    // What the interpreter has imported is frozen into the component; the order of sets must not depend on the day.
    command.env("PYTHONHASHSEED", "0").env_remove("VIRTUAL_ENV");
    run_compiler(Language::Python, &mut command)?;
    Ok(Modules::from([(job.skill_id.to_owned(), read_output(&output)?)]))
}
