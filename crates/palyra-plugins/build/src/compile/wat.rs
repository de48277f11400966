//! Text: every `src/*.wat` is a module or a component as it stands. `src/skill.wat` is called after the skill, others after their file.

use super::{Job, Modules};
use crate::BuildError;

pub(super) fn compile(job: &Job<'_>) -> Result<Modules, BuildError> {
    let mut modules = Modules::new();
    for path in job.sources.under("src/", ".wat") {
        let stem = path.trim_start_matches("src/").trim_end_matches(".wat");
        if stem.contains('/') {
            continue;
        }
        let name = if stem == "skill" { job.skill_id } else { stem };
        let text = job.sources.get(path).unwrap_or_default();
        let module = wat::parse_bytes(text).map_err(|error| BuildError::source(path, error))?;
        modules.insert(name.to_owned(), module.into_owned());
    }
    Ok(modules)
}
