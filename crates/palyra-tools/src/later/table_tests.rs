use super::LaterExecuted::*;
use super::*;

#[test]
fn files_that_others_execute_are_named_and_ordinary_ones_are_not() {
    let named: [(LaterExecuted, &[&str]); 14] = [
        (
            Hook,
            &[
                ".git/hooks/pre-commit",
                ".git/hooks",
                "/w/.git/modules/a/hooks/post-checkout",
                ".git/modules/logs/hooks/post-checkout",
                ".git/modules/refs/heads/hooks/post-checkout",
                "logs/.git/hooks/post-checkout",
                "refs/.git/hooks/post-checkout",
                "objects/a/.git/hooks/post-checkout",
                ".git/rebase-merge/git-rebase-todo",
                ".husky/pre-push",
                ".lefthook/pre-push/check.sh",
                "lefthook.yml",
                ".pre-commit-config.yaml",
            ],
        ),
        (
            GitConfiguration,
            &[
                ".git/config",
                ".git/worktrees/w/config.worktree",
                ".git",
                "logs/.git/config",
                ".git/modules/objects/config",
                ".git/remotes/origin",
            ],
        ),
        (DirectoryEnvironment, &[".envrc", "sub/.envrc", ".tool-versions", "mise.toml", ".bashrc", ".zshenv"]),
        (Session, &[".ssh/config", ".tmux.conf", ".config/systemd/user/a.service", ".config/autostart/a.desktop"]),
        (
            AgentConfiguration,
            &[
                ".claude/settings.json",
                ".claude/settings.local.json",
                ".mcp.json",
                ".cursor/mcp.json",
                ".gemini/settings.json",
                ".codex/config.toml",
            ],
        ),
        (
            EditorTask,
            &[
                ".vscode/tasks.json",
                ".idea/runConfigurations/a.xml",
                "a.code-workspace",
                ".helix/languages.toml",
                ".exrc",
                ".vimrc",
                ".nvim.lua",
                ".dir-locals.el",
            ],
        ),
        (
            Instructions,
            &[
                "AGENTS.md",
                "sub/PALYRA.md",
                "CLAUDE.md",
                "GEMINI.md",
                ".cursorrules",
                ".windsurfrules",
                ".cursor/rules/all.mdc",
                ".claude/commands/a.md",
                ".gemini/a",
                ".codex/a",
            ],
        ),
        (Git, &[".git/info/attributes", ".gitattributes", ".gitmodules"]),
        (Editor, &[".vscode/settings.json", ".devcontainer/devcontainer.json", ".devcontainer.json"]),
        (
            Automation,
            &[
                ".github/workflows/ci.yml",
                ".github/actions/a/action.yml",
                ".gitlab-ci.yml",
                ".circleci/config.yml",
                "Jenkinsfile",
                "azure-pipelines.yml",
            ],
        ),
        (Service, &["deploy/a.service", "a.desktop"]),
        (
            Toolchain,
            &[
                ".cargo/config.toml",
                "conftest.py",
                "sitecustomize.py",
                "usercustomize.py",
                "a.pth",
                ".pnpmfile.cjs",
                ".yarnrc.yml",
                ".npmrc",
                ".eslintrc.js",
                "rust-toolchain.toml",
                ".Rprofile",
                "ansible.cfg",
            ],
        ),
        (
            Build,
            &[
                "build.rs",
                "Makefile",
                "vite.config.ts",
                "a.config.cjs",
                "settings.gradle.kts",
                "init.gradle",
                "gradle/wrapper/gradle-wrapper.properties",
                ".mvn/jvm.config",
                "Directory.Build.props",
                "Directory.Build.targets",
                "nuget.config",
                "Package.swift",
                "composer.json",
                "Gemfile",
                "Rakefile",
                "docker-compose.prod.yml",
                "compose.yaml",
                "compose.override.yaml",
                "Dockerfile",
                "Dockerfile.dev",
                "setup.py",
                "noxfile.py",
                "tox.ini",
                "pyproject.toml",
                "justfile",
                "Taskfile.yml",
                "WORKSPACE",
                "BUILD.bazel",
                "flake.nix",
                "shell.nix",
                "default.nix",
                "app/app.csproj",
            ],
        ),
        (
            Dependencies,
            &[
                "Cargo.lock",
                "package-lock.json",
                "yarn.lock",
                "pnpm-lock.yaml",
                "poetry.lock",
                "uv.lock",
                "go.sum",
                "requirements-dev.txt",
            ],
        ),
    ];
    for (by, paths) in named {
        for path in paths {
            assert_eq!(later_executed(Path::new(path)), Some(by), "{path}");
        }
    }
    for path in [
        ".git/hooks/pre-commit.sample",
        ".git/index",
        ".git/refs/heads/hooks",
        ".git/refs/heads/config",
        ".git/logs/refs/heads/hooks/x",
        "src/main.rs",
        "hooks/useThing.ts",
        "docs/makefile.md",
        "config",
        "refs/heads/main",
        "/",
    ] {
        assert_eq!(later_executed(Path::new(path)), None, "{path}");
    }
}

#[test]
fn every_pattern_is_in_small_letters_and_found_first_where_it_stands() {
    for (by, patterns) in TABLE {
        for pattern in patterns {
            assert_eq!(pattern.to_lowercase(), *pattern);
            let path = pattern.replace("/**", "/x").replace('*', "a");
            let found = later_executed(Path::new(&path));
            assert!(
                found.is_some_and(|found| found <= by || found.standing() == by.standing()),
                "{pattern}: {found:?}"
            );
        }
    }
}

#[test]
fn what_nobody_executes_is_of_a_reviewed_type_or_kept_by_git() {
    for path in [
        "src/main.rs",
        "notes.md",
        ".git/index",
        ".git/objects/ab/cd",
        ".git/refs/heads/main",
        ".git/COMMIT_EDITMSG",
        "LICENSE",
    ] {
        assert!(is_harmless(Path::new(path), Mode::Plain), "{path}");
    }
    for path in ["package.json", ".git/hooks/a", ".git/something-new", ".toolrc", "a.so", ".git/BISECT_RUN"] {
        assert!(!is_harmless(Path::new(path), Mode::Plain), "{path}");
    }
    assert!(!is_harmless(Path::new("tools/run"), Mode::Executable));
}

#[test]
fn a_directory_is_known_by_what_its_name_makes_of_the_files_in_it() {
    for (path, expected) in [
        (".cargo", Some(Toolchain)),
        ("sub/.vscode", Some(EditorTask)),
        (".husky", Some(Hook)),
        (".idea", Some(EditorTask)),
        (".devcontainer", Some(Editor)),
        (".github/workflows", Some(Automation)),
        ("gradle", Some(Build)),
        (".git/hooks", Some(Hook)),
        (".git", Some(Hook)),
        ("docs", None),
        ("hooks", None),
        ("lib/four.jpg", None),
    ] {
        assert_eq!(executed_below(Path::new(path)), expected, "{path}");
    }
    assert!(executed_below(Path::new(".github")).is_some());
}
