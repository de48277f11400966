//! C: every `src/*.c` and the kit of `vendor/palyra` become one module; WASI is answered by an adapter that refuses everything.

use super::{Job, Modules, Workplace, read_output};
use crate::process::compile as run_compiler;
use crate::toolchain::CCompiler;
use crate::world::World;
use crate::{BuildError, Language, component};

/// A reactor has no `main`; names and unused code go; warnings are for the author to see as errors where they are always mistakes.
pub(super) const FLAGS: [&str; 15] = [
    "-mexec-model=reactor",
    "-std=c11",
    "-O2",
    "-g0",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=return-type",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wl,--gc-sections",
    "-Wl,--strip-all",
    // As in Rust; zig's own choice would be 16 MiB.
    "-Wl,-z,stack-size=1048576",
];

pub(super) fn compile(job: &Job<'_>, compiler: &CCompiler) -> Result<Modules, BuildError> {
    let world = World::of(job.sources)?;
    let place = Workplace::new(job, "c")?;
    let output = place.folder.join("out.wasm");
    let mut command = compiler.command();
    command.current_dir(&place.folder).args(FLAGS).args(["-Ivendor/palyra", "-Isrc", "-o", "out.wasm"]);
    command.args(job.sources.under("src/", ".c")).args(job.sources.under("vendor/palyra/", ".c"));
    let cache = job.tools.root().join("work/c/cache");
    command.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache);
    run_compiler(Language::C, &mut command)?;
    let module = read_output(&output)?;
    Ok(Modules::from([(job.skill_id.to_owned(), component::encode_in_world(module, &world)?)]))
}
