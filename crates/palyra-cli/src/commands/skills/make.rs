//! `palyra skills new|build`: a skill's folder, without a daemon.

use std::path::{Path, PathBuf};

use clap::Args;
use palyra_common::ExitCode;
use palyra_plugins_build::{
    BuildOptions, BuiltSkill, GuestTools, Language, NewSkill, Origin, Reuse, SkillKind, build_skill, new_skill,
};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

/// What to begin.
#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// Id of the skill, such as `acme.notes`
    skill: String,
    /// Language: rust, javascript, python, c or wat
    #[arg(long, default_value = "rust")]
    lang: Language,
    /// Whether it starts with a tool or a hook
    #[arg(long, value_enum, default_value_t = Kind::Tool)]
    kind: Kind,
    /// Publisher that will sign it [default: first word of the id]
    #[arg(long)]
    publisher: Option<String>,
    /// Folder to create [default: the skill's id]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// What a new skill begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A tool for the model
    Tool,
    /// A hook that runs before each tool call
    Hook,
}

impl From<Kind> for SkillKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Tool => Self::Tool,
            Kind::Hook => Self::Hook,
        }
    }
}

/// What to build.
#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// Folder of the skill
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Rebuild even if nothing has changed
    #[arg(long)]
    fresh: bool,
}

pub(super) fn begin(given: &NewArguments, context: &Context) -> Result<ExitCode, CliError> {
    let folder = given.folder.clone().unwrap_or_else(|| PathBuf::from(&given.skill));
    let new = NewSkill {
        language: given.lang,
        kind: given.kind.into(),
        skill_id: &given.skill,
        publisher: given.publisher.as_deref(),
    };
    let files = new_skill(&new, &folder)?;
    let console = &context.console;
    if console.is_text() {
        console.line(&format!("Created skill `{}` in {}", given.skill, folder.display()))?;
        files.iter().try_for_each(|file| console.line(&format!("  {file}")))?;
        super::next::show(console, [super::next::in_folder("build", &folder)]);
        if let Err(missing) = GuestTools::of_user()?.find(given.lang) {
            console.remark(&format!("{missing}; install it with: {}", missing.install));
        }
    } else {
        console.document(&json!({"skill_id": given.skill, "folder": folder, "files": files}))?;
    }
    Ok(ExitCode::Ok)
}

pub(super) fn build(given: &BuildArguments, context: &Context) -> Result<ExitCode, CliError> {
    let built = built(&given.folder, if given.fresh { Reuse::Fresh } else { Reuse::Cached })?;
    let console = &context.console;
    if !console.is_text() {
        let modules: Vec<_> = built
            .modules
            .iter()
            .map(|module| json!({"path": module.path, "bytes": module.bytes.len(), "sha256": module.digest, "imports": module.shape.imports}))
            .collect();
        console.document(&json!({"skill_id": built.skill.skill_id, "modules": modules}))?;
        return Ok(ExitCode::Ok);
    }
    for module in &built.modules {
        console.line(&format!("{}  {} KiB", module.file.display(), module.bytes.len().div_ceil(1024)))?;
        module.shape.imports.iter().try_for_each(|import| console.line(&format!("  imports {import}")))?;
    }
    if built.origin == Origin::Cached {
        console.remark("up to date; nothing to rebuild");
    }
    super::next::show(console, [super::next::in_folder("test", &given.folder)]);
    Ok(ExitCode::Ok)
}

/// Builds a skill with the compilers of this user.
pub(super) fn built(folder: &Path, reuse: Reuse) -> Result<BuiltSkill, CliError> {
    Ok(build_skill(folder, &BuildOptions { tools: GuestTools::of_user()?, reuse })?)
}
