//! C: the clang inside PyPI's `ziglang`, a `zig` on the path, or a clang with wasi-libc.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{MissingToolchain, Versions, ZIG, versions};
use crate::Language;
use crate::process::version;

/// Where Debian's `wasi-libc` puts its headers.
const WASI_LIBC: &str = "/usr/include/wasm32-wasi";

/// A C compiler for WebAssembly with a libc.
#[derive(Debug, Clone)]
pub(crate) enum Compiler {
    /// `python -m ziglang cc` of an environment in the cache.
    Ziglang {
        /// The environment's Python.
        python: PathBuf,
    },
    /// A `zig` on the path.
    Zig,
    /// A `clang` on the path with the system's wasi-libc.
    Clang,
}

impl Compiler {
    pub(super) fn find(root: &Path) -> Result<(Self, Versions), MissingToolchain> {
        let environment = root.join(format!("zig-{ZIG}"));
        let python = environment.join("bin/python");
        if let Some(zig) = version(Command::new(&python).args(["-m", "ziglang", "version"])) {
            return Ok((Self::Ziglang { python }, versions([("zig", zig)])));
        }
        if let Some(zig) = version(Command::new("zig").arg("version")) {
            return Ok((Self::Zig, versions([("zig", zig)])));
        }
        if Path::new(WASI_LIBC).is_dir()
            && version(Command::new("wasm-ld").arg("--version")).is_some()
            && let Some(clang) = version(Command::new("clang").arg("--version"))
        {
            return Ok((Self::Clang, versions([("clang", clang)])));
        }
        let folder = environment.display();
        Err(MissingToolchain {
            language: Language::C,
            what: "a C compiler for WebAssembly".to_owned(),
            found: None,
            install: format!("python3 -m venv {folder} && {folder}/bin/pip install ziglang=={ZIG}"),
        })
    }

    /// The compiler, ready for its arguments.
    pub(crate) fn command(&self) -> Command {
        match self {
            Self::Ziglang { python } => {
                let mut command = Command::new(python);
                command.args(["-m", "ziglang", "cc", "-target", "wasm32-wasi"]);
                command
            }
            Self::Zig => {
                let mut command = Command::new("zig");
                command.args(["cc", "-target", "wasm32-wasi"]);
                command
            }
            Self::Clang => {
                let mut command = Command::new("clang");
                // The stack below everything else, as zig does it: an overflow then traps instead of writing over data.
                command.args(["--target=wasm32-wasi", "-Wl,--stack-first"]);
                command
            }
        }
    }
}
