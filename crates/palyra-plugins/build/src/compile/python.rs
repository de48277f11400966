//! Python: `src/skill.py` with an interpreter around it, and stubs that trap in place of WASI.

use std::process::Command;

use super::{Job, Modules, Workplace, read_output};
use crate::process;
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
    let said = process::run(Language::Python, &mut command)?;
    if !said.success {
        return Err(BuildError::compiler(Language::Python, complaint(&said.all)));
    }
    Ok(Modules::from([(job.skill_id.to_owned(), read_output(&output)?)]))
}

/// What is about the skill in what the componentizer says: its own frames stand before and after.
fn complaint(all: &str) -> &str {
    let own = all.split_once("AssertionError:").map_or(all, |(_, own)| own);
    ["Caused by:", "Stack backtrace:"].into_iter().fold(own, |own, end| own.split_once(end).map_or(own, |(own, _)| own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_componentizer_are_left_out() {
        let said = "Traceback\n  sys.exit(script())\nAssertionError:   File \"/0/skill.py\", line 17\nSyntaxError: no\n\nCaused by:\n x\n\nStack backtrace:\n 0";
        assert_eq!(complaint(said).trim(), "File \"/0/skill.py\", line 17\nSyntaxError: no");
        assert_eq!(complaint("anything else"), "anything else");
    }
}
