//! The reviewed table of files that a trusted tool executes later, or that instruct agents, by the parts of their paths.
//!
//! Letters count alike in capitals and small: some file systems do not tell them apart.

use std::path::{Component, Path};

use palyra_common::runtime_contract_enum;

use super::Standing;

runtime_contract_enum! {
    /// Who would execute a file, or follow it.
    pub enum LaterExecuted("later_executed") {
        /// Git, as a hook.
        Hook = "hook",
        /// Git, through its configuration.
        GitConfiguration = "git_configuration",
        /// Git, through attributes or submodules.
        Git = "git",
        /// The shell or environment manager that enters the directory.
        DirectoryEnvironment = "directory_environment",
        /// A build system or package manager.
        Build = "build",
        /// An editor that opens the directory, at once.
        EditorTask = "editor_task",
        /// An editor that opens the directory.
        Editor = "editor",
        /// A service that runs the repository's automation.
        Automation = "automation",
        /// A language's tools, when they start in the directory.
        Toolchain = "toolchain",
        /// An agent that works in the directory.
        Instructions = "instructions",
    }
}

impl LaterExecuted {
    /// When a person is asked about a change.
    #[must_use]
    pub fn standing(self) -> Standing {
        match self {
            Self::Hook | Self::GitConfiguration | Self::DirectoryEnvironment | Self::EditorTask => Standing::Always,
            Self::Git | Self::Build | Self::Editor | Self::Automation | Self::Toolchain | Self::Instructions => {
                Standing::IfSteered
            }
        }
    }

    /// What becomes of the file, for people.
    #[must_use]
    pub fn effect(self) -> &'static str {
        match self {
            Self::Hook | Self::GitConfiguration | Self::Git => "git executes it",
            Self::DirectoryEnvironment => "entering the directory executes it",
            Self::Build => "a build executes it",
            Self::EditorTask | Self::Editor => "an editor that opens the directory executes it",
            Self::Automation => "the repository's automation executes it",
            Self::Toolchain => "a language's tools execute it",
            Self::Instructions => "agents that work here follow it",
        }
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
    if name == ".git" {
        // A file of this name, or a link, has git look elsewhere.
        return Some(LaterExecuted::GitConfiguration);
    }
    if below(".git") {
        let data = below("objects") || below("refs") || below("logs");
        return match name {
            // Git executes none with this ending.
            _ if name.ends_with(".sample") => None,
            "hooks" if !data => Some(LaterExecuted::Hook),
            _ if below("hooks") && !data => Some(LaterExecuted::Hook),
            "config" | "config.worktree" | "commondir" | "gitdir" if !data => Some(LaterExecuted::GitConfiguration),
            "attributes" if !data => Some(LaterExecuted::Git),
            _ => None,
        };
    }
    if below(".husky") || below(".githooks") {
        return Some(LaterExecuted::Hook);
    }
    if name == ".gitconfig" {
        return Some(LaterExecuted::GitConfiguration);
    }
    if matches!(name, ".gitmodules" | ".gitattributes") {
        return Some(LaterExecuted::Git);
    }
    if matches!(
        name,
        "agents.md"
            | "agents.override.md"
            | "palyra.md"
            | "claude.md"
            | "claude.local.md"
            | "gemini.md"
            | "copilot-instructions.md"
            | ".cursorrules"
            | ".windsurfrules"
            | ".clinerules"
            | "skill.md"
    ) || (below(".cursor") && below("rules"))
        || below(".clinerules")
    {
        return Some(LaterExecuted::Instructions);
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
            | ".zprofile"
            | ".zlogin"
            | ".bash_login"
            | ".bash_aliases"
            | ".kshrc"
            | "config.fish"
            | ".mise.toml"
            | "mise.toml"
            | ".tool-versions"
    ) {
        return Some(LaterExecuted::DirectoryEnvironment);
    }
    if (below(".vscode") && matches!(name, "tasks.json" | "launch.json"))
        || (below(".idea") && (below("runconfigurations") || name == "workspace.xml"))
        || (below(".run") && name.ends_with(".run.xml"))
        || matches!(name, ".exrc" | ".nvimrc" | ".nvim.lua" | ".vimrc" | ".lvimrc" | ".dir-locals.el")
    {
        return Some(LaterExecuted::EditorTask);
    }
    if below(".vscode") || below(".idea") || below(".devcontainer") || below(".zed") || name == ".editorconfig" {
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
            (".git/hooks/pre-commit", Some(LaterExecuted::Hook)),
            (".git/hooks/pre-commit.sample", None),
            (".git/hooks", Some(LaterExecuted::Hook)),
            ("/w/.git/modules/a/hooks/post-checkout", Some(LaterExecuted::Hook)),
            (".husky/pre-push", Some(LaterExecuted::Hook)),
            (".git/config", Some(LaterExecuted::GitConfiguration)),
            (".git/worktrees/w/config.worktree", Some(LaterExecuted::GitConfiguration)),
            (".git", Some(LaterExecuted::GitConfiguration)),
            (".git/info/attributes", Some(LaterExecuted::Git)),
            (".git/index", None),
            (".git/refs/heads/hooks", None),
            (".git/refs/heads/config", None),
            ("AGENTS.md", Some(LaterExecuted::Instructions)),
            ("sub/PALYRA.md", Some(LaterExecuted::Instructions)),
            (".cursor/rules/all.mdc", Some(LaterExecuted::Instructions)),
            (".envrc", Some(LaterExecuted::DirectoryEnvironment)),
            ("sub/.envrc", Some(LaterExecuted::DirectoryEnvironment)),
            ("build.rs", Some(LaterExecuted::Build)),
            ("Makefile", Some(LaterExecuted::Build)),
            ("vite.config.ts", Some(LaterExecuted::Build)),
            (".vscode/tasks.json", Some(LaterExecuted::EditorTask)),
            (".vscode/settings.json", Some(LaterExecuted::Editor)),
            (".idea/runConfigurations/a.xml", Some(LaterExecuted::EditorTask)),
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
