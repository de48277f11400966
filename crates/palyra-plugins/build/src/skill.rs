//! Building a skill: its folder in, its modules with SBOM and provenance out.
//!
//! The order is: write what Palyra brings (kit, list of tools) into the folder, take the sources, look whether they were built before, compile, strip,
//! look at what came out, write it. Nothing is written to `modules/` before all of it is known to be a plugin.

use std::path::{Path, PathBuf};

use palyra_common::Digest;
use palyra_plugins::{HOOK_EXPORT, TOOL_EXPORT, classify_import};

use crate::cache::Slot;
use crate::compile::{Job, Modules, compile, new_lock_file};
use crate::descriptions::tool_list;
use crate::inspect::{ModuleKind, ModuleShape, inspect_module};
use crate::manifest::SkillSummary;
use crate::source::{Sources, write};
use crate::strip::strip;
use crate::{BuildError, GuestTools, Language, ModuleDigest, Provenance, provenance, sbom, sdk};

/// How a skill is built.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Where compilers are, and where they keep what they may use again.
    pub tools: GuestTools,
    /// Whether what was built before may be taken.
    pub reuse: Reuse,
}

/// Whether what was built before may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// The same sources and compilers are not compiled again.
    Cached,
    /// Everything is compiled.
    Fresh,
}

/// Where the modules of a build come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// They were compiled now.
    Compiled,
    /// They were compiled earlier from the same sources.
    Cached,
}

/// A skill that was built.
#[derive(Debug, Clone)]
pub struct BuiltSkill {
    /// What the manifest says.
    pub skill: SkillSummary,
    /// The guest language.
    pub language: Language,
    /// The modules, by name.
    pub modules: Vec<BuiltModule>,
    /// What is in `provenance.json`.
    pub provenance: Provenance,
    /// Whether anything was compiled.
    pub origin: Origin,
}

/// One module of a skill that was built.
#[derive(Debug, Clone)]
pub struct BuiltModule {
    /// Its path in the archive, such as `modules/acme.notes.wasm`.
    pub path: String,
    /// Where it was written.
    pub file: PathBuf,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// SHA-256 of its bytes.
    pub digest: Digest,
    /// What it imports and exports.
    pub shape: ModuleShape,
}

/// Builds the skill in a folder and writes `modules/`, `sbom.cdx.json` and `provenance.json` there. Blocks for as long as a compiler takes.
pub fn build_skill(folder: &Path, options: &BuildOptions) -> Result<BuiltSkill, BuildError> {
    let language = Language::of(folder)?;
    let toolchain = options.tools.find(language)?;
    let skill = SkillSummary::read(folder)?;
    sdk::write_kit(language, folder)?;
    if let Some((path, text)) = tool_list(language, &skill) {
        write(&folder.join(path), text.as_bytes())?;
    }
    let mut sources = Sources::read(folder)?;
    let job = Job { skill_id: &skill.skill_id, sources: &sources, tools: &options.tools };
    if let Some(lock) = new_lock_file(&job, &toolchain)? {
        write(&folder.join("Cargo.lock"), &lock)?;
        sources = Sources::read(folder)?;
    }
    let source = sources.digest();
    let slot = Slot::of(&options.tools, &toolchain, source);
    let cached = if options.reuse == Reuse::Cached { slot.load() } else { None };
    let (modules, origin) = match cached {
        Some(modules) => (modules, Origin::Cached),
        None => {
            let job = Job { skill_id: &skill.skill_id, sources: &sources, tools: &options.tools };
            let mut modules = Modules::new();
            for (name, bytes) in compile(&job, &toolchain)? {
                modules.insert(name, strip(&bytes)?);
            }
            (modules, Origin::Compiled)
        }
    };
    let shapes = modules.values().map(|bytes| look_at(bytes)).collect::<Result<Vec<_>, _>>()?;
    if modules.is_empty() {
        return Err(BuildError::not_a_plugin("the build produced no module"));
    }
    if origin == Origin::Compiled {
        slot.store(&modules)?;
    }
    let modules: Vec<BuiltModule> = modules
        .into_iter()
        .zip(shapes)
        .map(|((name, bytes), shape)| {
            let path = format!("modules/{name}.wasm");
            BuiltModule { file: folder.join(&path), digest: Digest::of(&bytes), path, bytes, shape }
        })
        .collect();
    let digests: Vec<ModuleDigest> =
        modules.iter().map(|module| ModuleDigest { path: module.path.clone(), sha256: module.digest }).collect();
    let sbom = sbom::sbom(&skill, &sources, &toolchain, &digests)?;
    let provenance = Provenance::new(&toolchain, source, digests);
    write_outputs(folder, &modules, &provenance, &sbom)?;
    Ok(BuiltSkill { skill, language, modules, provenance, origin })
}

/// Refuses what Palyra would not run, before anything is kept, signed or shipped.
fn look_at(wasm: &[u8]) -> Result<ModuleShape, BuildError> {
    let shape = inspect_module(wasm)?;
    match shape.kind {
        ModuleKind::Component => {
            for import in &shape.imports {
                classify_import(import).map_err(|foreign| BuildError::ImportRefused { import: foreign.0 })?;
            }
            if !shape.exports.iter().any(|export| export == TOOL_EXPORT || export == HOOK_EXPORT) {
                return Err(BuildError::not_a_plugin(format!(
                    "it exports neither `{TOOL_EXPORT}` nor `{HOOK_EXPORT}`"
                )));
            }
        }
        ModuleKind::CoreModule => {
            if !shape.exports.iter().any(|export| export == "run") {
                return Err(BuildError::not_a_plugin("it is a core module without the export `run`"));
            }
        }
    }
    Ok(shape)
}

fn write_outputs(
    folder: &Path,
    modules: &[BuiltModule],
    provenance: &Provenance,
    sbom: &serde_json::Value,
) -> Result<(), BuildError> {
    let places = folder.join("modules");
    // A module of an earlier name must not end up in the archive.
    if let Ok(entries) = std::fs::read_dir(&places) {
        for path in
            entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "wasm"))
        {
            if !modules.iter().any(|module| module.file == path) {
                std::fs::remove_file(&path).map_err(BuildError::io(&path))?;
            }
        }
    }
    for module in modules {
        write(&module.file, &module.bytes)?;
    }
    write(&folder.join(sbom::FILE), &pretty(sbom)?)?;
    write(&folder.join(provenance::FILE), &pretty(provenance)?)
}

fn pretty(value: &impl serde::Serialize) -> Result<Vec<u8>, BuildError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(BuildError::not_a_plugin)?;
    text.push(b'\n');
    Ok(text)
}
