//! The reviewed table of files that a trusted tool executes later, or that instruct agents, by the parts of their paths.
//!
//! Letters count alike in capitals and small: some file systems do not tell them apart.

use std::path::{Component, Path};

use palyra_common::runtime_contract_enum;

use super::Standing;
use super::git_directory::{GitFile, git_file};
use super::inert::{Mode, is_inert};
use super::pattern::{matches, matches_directory};

runtime_contract_enum! {
    /// Who would execute a file, or follow it.
    pub enum LaterExecuted("later_executed") {
        /// Git, as a hook or through a program that its configuration names.
        Hook = "hook",
        /// Git, through its configuration.
        GitConfiguration = "git_configuration",
        /// Git, through attributes or submodules.
        Git = "git",
        /// The shell or environment manager that enters the directory.
        DirectoryEnvironment = "directory_environment",
        /// The user's session: what it starts, and the programs that read their settings from the home.
        Session = "session",
        /// A service manager or a desktop.
        Service = "service",
        /// A build system or package manager.
        Build = "build",
        /// A package manager, which fetches what the file names.
        Dependencies = "dependencies",
        /// An editor that opens the directory, at once.
        EditorTask = "editor_task",
        /// An editor that opens the directory.
        Editor = "editor",
        /// A service that runs the repository's automation.
        Automation = "automation",
        /// A language's tools, when they start in the directory.
        Toolchain = "toolchain",
        /// An agent's own program, by its settings.
        AgentConfiguration = "agent_configuration",
        /// An agent that works in the directory.
        Instructions = "instructions",
        /// Nobody knows: it is of no type that was reviewed as inert.
        Unreviewed = "unreviewed",
    }
}

impl LaterExecuted {
    /// When a person is asked about a change.
    #[must_use]
    pub fn standing(self) -> Standing {
        match self {
            Self::Hook
            | Self::GitConfiguration
            | Self::DirectoryEnvironment
            | Self::Session
            | Self::EditorTask
            | Self::AgentConfiguration => Standing::Always,
            Self::Git
            | Self::Service
            | Self::Build
            | Self::Editor
            | Self::Automation
            | Self::Toolchain
            | Self::Instructions => Standing::IfSteered,
            Self::Dependencies | Self::Unreviewed => Standing::IfTainted,
        }
    }

    /// What becomes of the file, for people.
    #[must_use]
    pub fn effect(self) -> &'static str {
        match self {
            Self::Hook | Self::GitConfiguration | Self::Git => "git executes it",
            Self::DirectoryEnvironment => "entering the directory executes it",
            Self::Session => "your session executes it",
            Self::Service => "a service manager or the desktop executes it",
            Self::Build => "a build executes it",
            Self::Dependencies => "package managers install what it names",
            Self::EditorTask | Self::Editor => "an editor that opens the directory executes it",
            Self::Automation => "the repository's automation executes it",
            Self::Toolchain => "a language's tools execute it",
            Self::AgentConfiguration => "agents that work here execute it",
            Self::Instructions => "agents that work here follow it",
            Self::Unreviewed => "it is of no type that is known to be harmless",
        }
    }
}

/// Who executes which files, by the patterns of [`super::pattern`]. The first one that matches counts, so what is always asked about comes first.
#[rustfmt::skip]
const TABLE: [(LaterExecuted, &[&str]); 14] = [
    (LaterExecuted::Hook, &[
        ".husky/**", ".githooks/**", ".git-hooks/**", ".lefthook/**", ".lefthook-local/**", ".huskyrc", ".huskyrc.*", "lefthook*.y*ml", ".lefthook*.y*ml",
        "lefthook*.toml", "lefthook*.json", ".lefthook*.toml", ".lefthook*.json", ".pre-commit-config.y*ml", ".pre-commit-hooks.y*ml", ".overcommit.yml",
        ".git-hooks.toml", "captainhook.json", "grumphp.yml", "prek.toml",
    ]),
    (LaterExecuted::GitConfiguration, &[".gitconfig", ".gitconfig.*", ".config/git/config"]),
    (LaterExecuted::DirectoryEnvironment, &[
        ".envrc", ".envrc.*", ".env", ".direnvrc", ".direnv/**", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bashrc.d/**",
        ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".oh-my-zsh/**",
        "config.fish", "fish/conf.d/**", "fish/functions/**", ".mise.toml", ".mise.*.toml", "mise.toml", "mise.*.toml", ".mise/**", "mise/config.toml",
        "mise/conf.d/**", ".rtx.toml", ".tool-versions", "devbox.json", "devenv.nix", "devenv.yaml", ".shadowenv.d/**", ".autoenv.zsh", ".autoenv",
    ]),
    (LaterExecuted::Session, &[
        ".ssh/**", ".gnupg/**", ".tmux.conf", ".tmux.conf.local", "tmux/tmux.conf", ".screenrc", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc",
        ".pam_environment", ".config/systemd/**", ".config/autostart/**", ".config/environment.d/**", ".config/i3/**", ".config/sway/**", ".config/hypr/**",
        ".local/bin/**", ".local/share/applications/**", ".forward", ".procmailrc", ".mailcap", ".netrc", ".wgetrc", ".curlrc",
        ".psqlrc", ".sqliterc", ".my.cnf", ".kube/config", ".docker/config.json", ".docker/cli-plugins/**", ".aws/config", 
        ".tigrc", ".hgrc", ".hg/hgrc", ".jj/repo/config.toml",
    ]),
    (LaterExecuted::AgentConfiguration, &[
        ".mcp.json", "mcp.json", ".claude/settings*.json", ".claude/hooks/**", ".claude.json", ".cursor/mcp.json", ".cursor/hooks*", ".cursor/environment.json",
        ".cursor/cli.json", ".gemini/settings.json", ".gemini/extensions/**", ".gemini/.env", ".codex/config.toml", ".codex/hooks*", ".opencode/**",
        "opencode.json", "opencode.jsonc", ".aider.conf.yml", ".continue/**", ".roo/mcp.json", ".kiro/settings/**", ".kiro/hooks/**", ".amp/settings.json",
        ".windsurf/mcp*.json", ".junie/mcp/**", ".qwen/settings.json", ".crush.json", "crush.json", ".goose/**", ".goosehints.d/**", ".factory/**",
        ".palyra/**",
    ]),
    (LaterExecuted::EditorTask, &[
        ".vscode/tasks.json", ".vscode/launch.json", "*.code-workspace", ".idea/runconfigurations/**", ".idea/workspace.xml", ".run/**",
        ".zed/tasks.json", ".zed/debug.json", ".fleet/run.json", ".exrc", ".nvimrc", ".nvim.lua", ".vimrc", ".gvimrc", ".lvimrc", ".vim/**", ".local.vimrc",
        "nvim/init.lua", "nvim/init.vim", "nvim/plugin/**", "nvim/lua/**", "nvim/after/**", ".dir-locals.el", ".dir-locals-2.el", ".emacs", ".emacs.d/**",
        ".helix/languages.toml", ".helix/config.toml", "helix/languages.toml", ".kakrc", ".sublime-project", "*.sublime-project", ".projectile",
        ".theia/tasks.json", ".theia/launch.json",
    ]),
    (LaterExecuted::Instructions, &[
        "agents.md", "agents.override.md", "agent.md", "palyra.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "crush.md", "warp.md",
        "copilot-instructions.md", "*.instructions.md", "*.prompt.md", "*.chatmode.md", "skill.md", ".cursorrules", ".windsurfrules", ".clinerules",
        ".roorules*", ".goosehints", ".rules", ".cursor/**", ".clinerules/**", ".windsurf/**", ".claude/**", ".gemini/**",
        ".codex/**", ".roo/**", ".kiro/**", ".junie/**", ".amp/**", ".agents/**", ".agent/**", ".qwen/**", ".aider*", ".amazonq/**", ".augment/**",
        ".trae/**", ".github/instructions/**", ".github/prompts/**", ".github/chatmodes/**", ".github/agents/**", ".github/skills/**",
    ]),
    (LaterExecuted::Git, &[".gitmodules", ".gitattributes", ".config/git/attributes"]),
    (LaterExecuted::Editor, &[
        ".vscode/**", ".idea/**", ".devcontainer/**", ".devcontainer.json", ".zed/**", ".fleet/**", ".helix/**", ".theia/**", ".nova/**", ".editorconfig",
        "*.iml", ".project", ".classpath", ".settings/**", ".ycm_extra_conf.py", ".clangd", ".ccls", ".luarc.json", ".nvim/**", "pyrightconfig.json",
    ]),
    (LaterExecuted::Automation, &[
        ".github/workflows/**", ".github/actions/**", "action.yml", "action.yaml", ".github/dependabot.y*ml", "renovate.json*", ".renovaterc*",
        ".gitlab-ci.yml", "*.gitlab-ci.yml", ".gitlab/**", ".circleci/**", "jenkinsfile", "jenkinsfile.*", ".jenkins/**", "azure-pipelines*.y*ml", ".azure-pipelines/**",
        ".azuredevops/**", "bitbucket-pipelines.yml", ".travis.yml", "appveyor.yml", ".appveyor.yml", ".drone.y*ml", ".woodpecker*", ".woodpecker/**",
        ".buildkite/**", ".forgejo/**", ".gitea/**", ".semaphore/**", ".teamcity/**", "cloudbuild.y*ml", "buildspec*.y*ml", "codefresh.yml", "wercker.yml",
        ".cirrus.yml", ".builds/**", "netlify.toml", "vercel.json", "fly.toml", "render.yaml", "app.yaml", "wrangler.toml", "wrangler.json*",
        "serverless.y*ml", "firebase.json", "dangerfile.*", ".releaserc*", ".goreleaser.y*ml", "*.tf", "*.tfvars", "terragrunt.hcl", ".terraformrc",
        "pulumi*.y*ml", "cdk.json", "skaffold.y*ml", "helmfile.y*ml", "chart.yaml", ".codeclimate.yml", "sonar-project.properties",
    ]),
    (LaterExecuted::Service, &[
        "*.service", "*.timer", "*.desktop", "crontab", "*.crontab", "cron.d/**", "cron.daily/**",
        "init.d/**", "udev/rules.d/**", "profile.d/**", "sudoers", "sudoers.d/**", "supervisord.conf", 
    ]),
    (LaterExecuted::Toolchain, &[
        ".cargo/config", ".cargo/config.toml", ".cargo/bin/**", ".cargo/env", "rust-toolchain", "rust-toolchain.toml", "conftest.py", "sitecustomize.py", "usercustomize.py",
        "*.pth", "pyvenv.cfg", ".npmrc", ".yarnrc", ".yarnrc.*", ".yarn/releases/**", ".yarn/plugins/**", ".yarn/sdks/**", ".pnpmfile.*", "pnpmfile.js", ".pypirc", "pip.conf", ".pip/**", ".pdbrc",
        ".pdbrc.py", ".pythonrc*", ".ipython/**", ".jupyter/**", ".rspec", ".irbrc", ".pryrc", ".rprofile", ".renviron", ".ghci", ".iex.exs", ".octaverc",
        ".juliarc.jl", ".ansible.cfg", "ansible.cfg", ".ansible/**", "bunfig.toml", ".bunfig.toml", ".python-version", ".ruby-version", ".node-version",
        ".nvmrc", ".java-version", ".sdkmanrc", ".swift-version", ".terraform-version", "global.json", "dotnet-tools.json", ".bazelversion", ".bazelrc",
        ".bazeliskrc", ".buckconfig", ".buckconfig.*", ".asdfrc", ".condarc", ".luarocks/**", ".perltidyrc", ".jshintrc", ".tern-project",
        ".pylintrc", "pylintrc", "pytest.ini", ".pytest.ini", "mypy.ini", ".mypy.ini", ".coveragerc", ".flake8", ".bandit", ".isort.cfg", "ruff.toml",
        ".ruff.toml", ".rubocop.y*ml", ".simplecov", ".eslintrc", ".eslintrc.*", ".prettierrc", ".prettierrc.*", ".stylelintrc", ".stylelintrc.*",
        ".babelrc", ".babelrc.*", ".mocharc.*", ".nycrc", ".nycrc.*", ".postcssrc*", ".swcrc", ".lintstagedrc*", ".commitlintrc*", ".czrc", ".cz.*",
        ".c8rc*", ".taprc", ".jestrc*", ".svgrrc*", ".remarkrc*", ".textlintrc*", ".sequelizerc", ".solhint.json", ".golangci.*", ".phpcs.xml",
        "phpunit.xml*", "phpstan.neon*", ".php-cs-fixer*.php", "php.ini", ".user.ini", ".htaccess", ".watchmanconfig", "nodemon.json", ".nodemonrc*",
        ".clang-tidy", ".lldbinit-*", ".gdbinit", ".lldbinit", ".valgrindrc", ".scalafmt.conf", ".jvmopts", ".sbtopts", ".credo.exs", ".formatter.exs", ".tflint.hcl", ".yamllint*",
        ".markdownlint*.cjs", ".markdownlint-cli2.*", ".dockleconfig", ".trivyignore.rego",
    ]),
    (LaterExecuted::Build, &[
        "build.rs", "makefile", "makefile.am", "makefile.in", "gnumakefile", "bsdmakefile", "*.mk", "*.mak", "*.ninja", "justfile", ".justfile", "*.just", "rakefile", "rakefile.rb", "*.rake",
        "gemfile", "gems.rb", "*.gemspec", ".bundle/config", "setup.py", "setup.cfg", "pyproject.toml", "noxfile.py", "tox.ini", "fabfile.py", 
        "dodo.py", "wscript", "wscript_build", "sconstruct", "sconscript", "snakefile", "package.json", "pnpm-workspace.yaml", "lerna.json", "nx.json",
        "turbo.json*", "project.json", "workspace.json", "angular.json", "deno.json", "deno.jsonc", "tsconfig*.json", "cargo.toml", "cmakelists.txt",
        "*.cmake", "cmakepresets.json", "cmakeuserpresets.json", "*.cmake.in", "meson.build", "meson_options.txt", "meson.options", "build.gradle*",
        "settings.gradle*", "init.gradle*", "*.gradle", "*.gradle.kts", "gradle.properties", "gradle/wrapper/*", "gradle/libs.versions.toml", ".gradle/init.gradle*", ".gradle/init.d/**", ".gradle/gradle.properties",
        "init.d/*.gradle", "buildsrc/**", "pom.xml", ".mvn/**", ".m2/**", "gradlew", "gradlew.bat", "mvnw", "mvnw.cmd", "build.xml", "ivy*.xml", "configure", "configure.ac",
        "configure.in", "autogen.sh", "bootstrap.sh", "aclocal.m4", "*.m4", "build.sbt", "*.sbt", "build.sc", "build.mill", "project.clj", "deps.edn",
        "shadow-cljs.edn", "bb.edn", "mix.exs", "rebar.config*", "stack.yaml", "package.yaml", "cabal.project*", "*.cabal", "setup.hs", "dune",
        "dune-project", "dub.json", "dub.sdl", "*.nimble", "*.nims", "shard.yml", "package.swift", "package@*.swift", "*.podspec", "cartfile", "cartfile.private",
        "*.xcconfig", "*.pbxproj", "*.xcscheme", "*.xcworkspacedata", "directory.build.*", "directory.packages.props", "directory.solution.*", "*.props",
        "*.targets", "*.*proj", "*.sln", "*.slnx", "nuget.config", "composer.json", "cpanfile", "procfile", "procfile.*", "brewfile", "guardfile", "fastfile", "appfile", "podfile", "berksfile", "thorfile", "vagrantfile", "tiltfile", "earthfile", "capfile", "pipfile", "jakefile", "jakefile.js", "makefile.pl", "build.pl", "build.zig", "build.zig.zon",
        "dockerfile", "dockerfile.*", "*.dockerfile", "containerfile", "containerfile.*", "docker-compose*.y*ml", "compose*.y*ml", "docker-bake.*", "devspace.yaml", "tilt_config.json",
        "taskfile*.y*ml", "flake.nix", "default.nix", "shell.nix", "*.nix", "workspace", "workspace.bazel", "workspace.bzlmod", "module.bazel",
        "*.module.bazel", "build", "build.bazel", "*.bazel", "*.bzl", "tools/bazel", "buck", "pants.toml", "pants*.toml", "*.star",
        "*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.cts", "*.config.mts", "*.config.*.js", "*.config.*.ts", "*.config.*.mjs",
        "*.config.*.cjs", "*.config.json", "*.conf.js", "*.conf.ts", "*.conf.cjs", "*.conf.mjs", "gulpfile", "gulpfile.*", "gruntfile", "gruntfile.*", "brunch-config.js",
        ".storybook/**", ".umirc.*", ".fatherrc.*", "metro.config.*", "cakefile", "mkdocs.y*ml", "antora*.y*ml", "conf.py",
        "book.toml", "_config.yml", "hugo.*ml", 
    ]),
    (LaterExecuted::Dependencies, &[
        "cargo.lock", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.y*ml", "bun.lock", "bun.lockb", "deno.lock", "*.lock",
        "*requirements*.txt", "requirements*.in", "constraints*.txt", "environment*.y*ml", "pipfile.lock", "go.mod", "go.sum", "go.work", "go.work.sum",
        "packages.lock.json", "packages.config", "paket.*", "package.resolved", "gradle.lockfile", "buildscript-gradle.lockfile", ".terraform.lock.hcl",
        "module.bazel.lock", "pubspec.yaml", "conanfile.*", "vcpkg*.json", "opam", "*.opam", "elm.json", "bower.json", "jsr.json", "galaxy.yml",
        "requirements.yml", "chart.lock", "manifest.toml", "project.toml",
    ]),
];

/// The parts of a path, in small letters.
pub(super) fn parts_of(path: &Path) -> Vec<String> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
        _ => None,
    });
    names.collect()
}

/// Who would execute this file of a workspace, if anyone is known; the path may be absolute or relative.
#[must_use]
pub fn later_executed(path: &Path) -> Option<LaterExecuted> {
    let parts = parts_of(path);
    match file(&parts.iter().map(String::as_str).collect::<Vec<_>>()) {
        Verdict::Executed(by) => Some(by),
        Verdict::Kept | Verdict::Unknown => None,
    }
}

/// What the table says about a path.
enum Verdict {
    Executed(LaterExecuted),
    /// Git keeps it.
    Kept,
    Unknown,
}

fn file(parts: &[&str]) -> Verdict {
    let Some((name, above)) = parts.split_last() else { return Verdict::Unknown };
    if *name == ".git" {
        // A file of this name, or a link, has git look elsewhere.
        return Verdict::Executed(LaterExecuted::GitConfiguration);
    }
    if above.contains(&".git") {
        return in_git(parts);
    }
    let found = TABLE.iter().find(|(_, patterns)| patterns.iter().any(|pattern| matches(pattern, parts)));
    found.map_or(Verdict::Unknown, |(by, _)| Verdict::Executed(*by))
}

/// A path with `.git` in it. A repository may lie in a directory of any name, in the git directory of another too, so each one counts.
fn in_git(parts: &[&str]) -> Verdict {
    let inside = parts.iter().enumerate().filter(|(_, part)| **part == ".git");
    let files: Vec<GitFile> = inside.filter_map(|(at, _)| parts.get(at + 1..)).map(git_file).collect();
    let executed = files.iter().find_map(|file| match file {
        GitFile::Executed(by) => Some(*by),
        GitFile::Data | GitFile::Unreviewed => None,
    });
    match executed {
        Some(by) => Verdict::Executed(by),
        None if files.contains(&GitFile::Unreviewed) => Verdict::Unknown,
        None => Verdict::Kept,
    }
}

/// Whether nobody executes or follows a file of this path, which [`later_executed`] does not know: its type was reviewed.
pub(super) fn is_harmless(path: &Path, mode: Mode) -> bool {
    let parts = parts_of(path);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match file(&parts) {
        Verdict::Executed(_) => false,
        Verdict::Kept => true,
        Verdict::Unknown if parts.contains(&".git") => false,
        Verdict::Unknown => is_inert(&parts, mode),
    }
}

/// Who could execute something below a directory because of the directory's name: what a link of this name would make of any file.
pub(super) fn executed_below(path: &Path) -> Option<LaterExecuted> {
    let parts = parts_of(path);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if parts.contains(&".git") {
        return Some(LaterExecuted::Hook);
    }
    let leads = |pattern: &&&str| matches_directory(pattern, &parts);
    TABLE.iter().find(|(_, patterns)| patterns.iter().any(|pattern| leads(&pattern))).map(|(by, _)| *by)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
