//! Files that a trusted tool executes later.
//!
//! A guest that may write to a workspace can leave a file there which the user's own git, editor or build runs outside the sandbox. That
//! cannot be denied without denying the work itself, so it is reported: the process tool names such files in its result.

use std::fmt;
use std::path::{Component, Path};

/// Who would execute a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaterExecuted {
    /// Git, as a hook or through its configuration.
    Git,
    /// The shell or environment manager that enters the directory.
    DirectoryEnvironment,
    /// A build system or package manager.
    Build,
    /// An editor that opens the directory.
    Editor,
    /// A service that runs the repository's automation.
    Automation,
    /// A language's tools, when they start in the directory.
    Toolchain,
}

impl fmt::Display for LaterExecuted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Git => "git executes it",
            Self::DirectoryEnvironment => "entering the directory executes it",
            Self::Build => "a build executes it",
            Self::Editor => "an editor that opens the directory executes it",
            Self::Automation => "the repository's automation executes it",
            Self::Toolchain => "a language's tools execute it",
        })
    }
}

/// Who would execute this file of a workspace, if anyone; the path may be absolute or relative.
#[must_use]
pub fn later_executed(path: &Path) -> Option<LaterExecuted> {
    let parts: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    let name = parts.last()?.as_str();
    let below = |folder: &str| parts.iter().rev().skip(1).any(|part| part == folder);
    let directly_below = |folder: &str| parts.iter().rev().nth(1).is_some_and(|part| part == folder);
    if below(".git") && (below("hooks") || matches!(name, "config" | "attributes" | "config.worktree")) {
        return Some(LaterExecuted::Git);
    }
    if matches!(name, ".gitmodules" | ".gitattributes" | ".gitconfig") || below(".husky") || below(".githooks") {
        return Some(LaterExecuted::Git);
    }
    if matches!(
        name,
        ".envrc"
            | ".env"
            | ".bashrc"
            | ".bash_profile"
            | ".profile"
            | ".zshrc"
            | ".zshenv"
            | ".mise.toml"
            | "mise.toml"
            | ".tool-versions"
    ) {
        return Some(LaterExecuted::DirectoryEnvironment);
    }
    if below(".vscode")
        || below(".idea")
        || below(".devcontainer")
        || matches!(name, ".exrc" | ".nvimrc" | ".nvim.lua" | ".vimrc" | ".dir-locals.el" | ".editorconfig")
    {
        return Some(LaterExecuted::Editor);
    }
    if (below(".github") && below("workflows"))
        || below(".circleci")
        || matches!(
            name,
            ".gitlab-ci.yml" | ".pre-commit-config.yaml" | "jenkinsfile" | ".travis.yml" | "azure-pipelines.yml"
        )
    {
        return Some(LaterExecuted::Automation);
    }
    if (directly_below(".cargo") && matches!(name, "config" | "config.toml"))
        || matches!(
            name,
            "rust-toolchain"
                | "rust-toolchain.toml"
                | "conftest.py"
                | "sitecustomize.py"
                | "usercustomize.py"
                | ".npmrc"
                | ".yarnrc"
                | ".yarnrc.yml"
                | ".pypirc"
                | ".pdbrc"
                | ".gdbinit"
                | ".lldbinit"
                | ".rspec"
                | ".irbrc"
        )
        || name.ends_with(".pth")
    {
        return Some(LaterExecuted::Toolchain);
    }
    let build = matches!(
        name,
        "build.rs"
            | "makefile"
            | "gnumakefile"
            | "justfile"
            | "rakefile"
            | "gemfile"
            | "setup.py"
            | "pyproject.toml"
            | "package.json"
            | "cargo.toml"
            | "cmakelists.txt"
            | "meson.build"
            | "build.gradle"
            | "build.gradle.kts"
            | "settings.gradle"
            | "pom.xml"
            | "gradlew"
            | "mvnw"
            | "configure"
            | "noxfile.py"
            | "tox.ini"
            | "taskfile.yml"
            | "taskfile.yaml"
            | "dockerfile"
            | "compose.yaml"
            | "docker-compose.yml"
            | "flake.nix"
            | "default.nix"
            | "shell.nix"
            | "build.zig"
            | "workspace"
            | "build.bazel"
            | "wscript"
            | "sconstruct"
    ) || [".mk", ".cmake", ".gradle", ".bazel", ".bzl"].iter().any(|ending| name.ends_with(ending))
        || (name.contains(".config.")
            && [".js", ".ts", ".mjs", ".cjs", ".mts"].iter().any(|ending| name.ends_with(ending)));
    build.then_some(LaterExecuted::Build)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_execute_are_named_and_ordinary_ones_are_not() {
        let cases = [
            (".git/hooks/pre-commit", Some(LaterExecuted::Git)),
            ("/w/.git/modules/a/hooks/post-checkout", Some(LaterExecuted::Git)),
            (".git/config", Some(LaterExecuted::Git)),
            (".git/index", None),
            (".envrc", Some(LaterExecuted::DirectoryEnvironment)),
            ("sub/.envrc", Some(LaterExecuted::DirectoryEnvironment)),
            ("build.rs", Some(LaterExecuted::Build)),
            ("Makefile", Some(LaterExecuted::Build)),
            ("vite.config.ts", Some(LaterExecuted::Build)),
            (".vscode/tasks.json", Some(LaterExecuted::Editor)),
            (".github/workflows/ci.yml", Some(LaterExecuted::Automation)),
            (".cargo/config.toml", Some(LaterExecuted::Toolchain)),
            ("conftest.py", Some(LaterExecuted::Toolchain)),
            ("src/main.rs", None),
            ("hooks/useThing.ts", None),
            ("docs/makefile.md", None),
            ("/", None),
        ];
        for (path, expected) in cases {
            assert_eq!(later_executed(Path::new(path)), expected, "{path}");
        }
    }
}
