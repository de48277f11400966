use std::os::unix::fs::{PermissionsExt as _, symlink};

use palyra_common::ChangeAttribution;
use tempfile::TempDir;

use super::*;
use crate::{EntryFacts, MemoryArtifacts, Roots};

const ANYWHERE: Roots = Roots::Anywhere { except: Vec::new(), granted: Vec::new() };
const LOOSE: &str = "[core]\n\tbare = true\n\tfsmonitor = evil\n";
const STRICT: &str = "[core]\n\tbare = true\n";

/// A workspace that a call changes.
struct Place {
    directory: TempDir,
    artifacts: MemoryArtifacts,
    changes: Vec<FileChange>,
}

impl Place {
    fn with(files: &[(&str, &str)]) -> Self {
        let place =
            Self { directory: TempDir::new().unwrap(), artifacts: MemoryArtifacts::default(), changes: Vec::new() };
        for (path, content) in files {
            place.put(path, content);
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn change(&mut self, path: &str, before: Option<&[u8]>, after: Option<&[u8]>, entry: EntryFacts) {
        self.changes.push(FileChange {
            path: path.to_owned(),
            before: before.map(|bytes| self.artifacts.put(bytes).unwrap()),
            after: after.map(Digest::of),
            before_mode: None,
            directories: Vec::new(),
            attribution: ChangeAttribution::Observed,
            entry,
        });
    }

    /// The call writes a file.
    fn writes(mut self, path: &str, content: &str) -> Self {
        let before = std::fs::read(self.path(path)).ok();
        self.put(path, content);
        self.change(path, before.as_deref(), Some(content.as_bytes()), EntryFacts::default());
        self
    }

    /// The call makes a link.
    fn links(mut self, path: &str, target: &str) -> Self {
        self.link(path, target);
        let entry = EntryFacts { after: EntryKind::Link, ..EntryFacts::default() };
        self.change(path, None, Some(target.as_bytes()), entry);
        self
    }

    fn later(&self, given: Integrity) -> Vec<LaterChange> {
        let workspace = Workspace::open(self.directory.path(), &ANYWHERE, &[]).unwrap();
        let mut survey = LaterSurvey::of(&workspace).unwrap();
        survey.later_changes(&self.changes, &workspace, &self.artifacts, given)
    }

    /// Which of the files a person is asked about, and who executes them.
    fn asked(&self, given: Integrity) -> Vec<(String, LaterExecuted)> {
        let mut asked: Vec<_> = self.later(given).into_iter().map(|change| (change.path, change.by)).collect();
        asked.sort();
        asked
    }
}

fn all(expected: &[(&str, LaterExecuted)]) -> Vec<(String, LaterExecuted)> {
    expected.iter().map(|(path, by)| ((*path).to_owned(), *by)).collect()
}

#[test]
fn a_file_is_held_under_every_name_that_links_give_it() {
    let payload = "[build]\nrustc-wrapper = 'evil'\n";
    // The link is there, and the file is written.
    let place = Place::with(&[("docs/c/config.toml", "")]);
    place.link(".cargo", "docs/c");
    let [change] = place.writes("docs/c/config.toml", payload).later(Integrity::ToolTrusted).try_into().unwrap();
    assert_eq!((change.by, change.executed_as.as_deref()), (LaterExecuted::Toolchain, Some(".cargo/config.toml")));
    assert!(change.difference.contains("+rustc-wrapper"), "{}", change.difference);
    // The link is made with the file, or after it.
    let place = Place::with(&[]).writes("docs/c/config.toml", payload).links(".cargo", "docs/c");
    assert_eq!(
        place.asked(Integrity::ToolTrusted),
        all(&[(".cargo", LaterExecuted::Toolchain), ("docs/c/config.toml", LaterExecuted::Toolchain)])
    );
    let place = Place::with(&[("docs/c/config.toml", payload)]).links(".cargo", "docs/c");
    let [change] = place.later(Integrity::ToolTrusted).try_into().unwrap();
    assert!(change.difference.starts_with("+link to `docs/c`\n"), "{}", change.difference);
    assert!(change.difference.contains("+rustc-wrapper"), "what it makes effective is shown: {}", change.difference);
}

#[test]
fn links_of_every_kind_of_directory_are_held_and_ordinary_ones_are_not() {
    for (link, target, expected) in [
        (".vscode", "docs", true),
        (".github", "docs", true),
        (".github/workflows", "../docs", true),
        (".idea", "docs", true),
        (".husky", "docs", true),
        (".devcontainer", "docs", true),
        (".git/hooks", "../docs", true),
        ("Makefile", "docs/a.md", true),
        // It leads to what is executed, so that who edits it edits that.
        ("notes.md", ".git/hooks/pre-commit", true),
        ("notes", ".github/workflows", true),
        ("docs/newest", "a.md", false),
        ("lib", "docs", false),
        ("picture.jpg", "docs/a.md", false),
    ] {
        let place = Place::with(&[("docs/a.md", "")]).links(link, target);
        let asked = place.asked(Integrity::ToolTrusted);
        assert_eq!(!asked.is_empty(), expected, "{link} -> {target}: {asked:?}");
    }
}

#[test]
fn a_link_that_was_replaced_in_the_same_call_still_counts() {
    let mut place = Place::with(&[]).writes("docs/c/config.toml", "x");
    let entry = EntryFacts { before: EntryKind::Link, ..EntryFacts::default() };
    place.change(".cargo", Some(b"docs/c"), None, entry);
    assert_eq!(place.asked(Integrity::ToolTrusted), all(&[("docs/c/config.toml", LaterExecuted::Toolchain)]));
}

#[test]
fn what_git_is_configured_to_execute_or_to_read_is_held() {
    let config =
        "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../team\n[filter \"x\"]\n\tclean = tools/clean.py\n";
    let place = Place::with(&[(".git/config", config)])
        .writes("tools/hooks/pre-commit", "evil")
        .writes("tools/clean.py", "evil")
        .writes("tools/other.py", "fine")
        .writes("team", "[core]\n\tpager = evil\n");
    let expected = all(&[
        ("team", LaterExecuted::GitConfiguration),
        ("tools/clean.py", LaterExecuted::Hook),
        ("tools/hooks/pre-commit", LaterExecuted::Hook),
    ]);
    assert_eq!(place.asked(Integrity::ToolTrusted), expected);
    let place = Place::with(&[(".git/config", config)]).writes("team", "[user]\n\tname = Ada\n");
    assert_eq!(place.asked(Integrity::ToolTrusted), [], "what it says decides");
    // What an included file names counts, and what a configuration named before the call.
    let place = Place::with(&[(".git/config", "[include]\n\tpath = ../team\n"), ("team", "[core]\n\thooksPath = h\n")])
        .writes("h/pre-push", "evil");
    assert_eq!(place.asked(Integrity::ToolTrusted), all(&[("h/pre-push", LaterExecuted::Hook)]));
    let place = Place::with(&[(".git/config", config)]).writes(".git/config", "").writes("tools/hooks/a", "evil");
    assert!(place.asked(Integrity::ToolTrusted).contains(&("tools/hooks/a".to_owned(), LaterExecuted::Hook)));
}

#[test]
fn a_repository_around_the_workspace_has_its_say() {
    let around = Place::with(&[(".git/config", "[core]\n\thooksPath = app/tools/hooks\n"), ("app/a", "")]);
    let mut place = Place::with(&[]);
    let app = around.path("app");
    std::fs::create_dir_all(app.join("tools/hooks")).unwrap();
    std::fs::write(app.join("tools/hooks/pre-commit"), "evil").unwrap();
    place.change("tools/hooks/pre-commit", None, Some(b"evil"), EntryFacts::default());
    let workspace = Workspace::open(&app, &ANYWHERE, &[]).unwrap();
    let mut survey = LaterSurvey::of(&workspace).unwrap();
    let later = survey.later_changes(&place.changes, &workspace, &place.artifacts, Integrity::ToolTrusted);
    assert!(matches!(&later[..], [one] if one.by == LaterExecuted::Hook), "{later:?}");
}

#[test]
fn a_survey_remembers_the_ones_before_it() {
    let place = Place::with(&[(".git/config", "[core]\n\thooksPath = h\n")]);
    let workspace = Workspace::open(place.directory.path(), &ANYWHERE, &[]).unwrap();
    let earlier = LaterSurvey::of(&workspace).unwrap();
    std::fs::write(place.path(".git/config"), "").unwrap();
    let place = place.writes("h/pre-push", "evil");
    let mut survey = LaterSurvey::of(&workspace).unwrap();
    survey.join(&earlier);
    let later = survey.later_changes(&place.changes, &workspace, &place.artifacts, Integrity::ToolTrusted);
    assert_eq!(later.len(), 1, "{later:?}");
}

#[test]
fn a_directory_that_becomes_a_repository_is_held_if_it_has_git_execute_something() {
    let made = |config: &str| {
        Place::with(&[("d/objects/keep", ""), ("d/refs/keep", "")])
            .writes("d/config", config)
            .writes("d/HEAD", "ref: refs/heads/main\n")
    };
    assert_eq!(made(STRICT).asked(Integrity::ToolTrusted), []);
    let later = made(LOOSE).later(Integrity::ToolTrusted);
    assert!(
        later.iter().any(|change| change.path == "d/HEAD" && change.difference.contains("fsmonitor = evil")),
        "{later:?}"
    );
    // Its parts are made one call after the other: the last one makes it a repository.
    let place = Place::with(&[("d/objects/keep", ""), ("d/refs/keep", ""), ("d/config", LOOSE)]).writes("d/HEAD", "x");
    assert_eq!(place.asked(Integrity::ToolTrusted), all(&[("d/HEAD", LaterExecuted::GitConfiguration)]));
    let hooks = Place::with(&[("d/objects/keep", ""), ("d/refs/keep", ""), ("d/hooks/post-receive", "evil")])
        .writes("d/HEAD", "x");
    assert_eq!(hooks.asked(Integrity::ToolTrusted), all(&[("d/HEAD", LaterExecuted::GitConfiguration)]));
    // One that was there before.
    let bare = [("d/objects/keep", ""), ("d/refs/keep", ""), ("d/HEAD", "x"), ("d/config", STRICT)];
    let place = Place::with(&bare)
        .writes("d/config", LOOSE)
        .writes("d/hooks/update", "evil")
        .writes("d/refs/heads/config", "1");
    let expected = all(&[("d/config", LaterExecuted::GitConfiguration), ("d/hooks/update", LaterExecuted::Hook)]);
    assert_eq!(place.asked(Integrity::ToolTrusted), expected);
}

#[test]
fn a_run_that_saw_untrusted_text_is_asked_about_all_that_is_not_known_to_be_harmless() {
    let ordinary = Place::with(&[])
        .writes("src/main.rs", "fn main() {}")
        .writes("notes.md", "x")
        .writes("data.csv", "x")
        .writes("LICENSE", "x")
        .writes(".gitignore", "x")
        .writes(".git/index", "x")
        .writes(".git/refs/heads/main", "x")
        .writes("Cargo.toml", "[package]\nname = \"a\"\n");
    assert_eq!(ordinary.asked(Integrity::Untrusted), []);
    let unusual = Place::with(&[])
        .writes(".toolrc", "x")
        .writes("tool.toml", "x")
        .writes("lib.so", "x")
        .writes(".git/unheard-of", "x")
        .writes("yarn.lock", "x")
        .writes("run", "x")
        .links("away", "/etc/passwd");
    std::fs::set_permissions(unusual.path("run"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(unusual.asked(Integrity::ToolTrusted), [], "a run that saw none");
    let unreviewed = LaterExecuted::Unreviewed;
    let expected = all(&[
        (".git/unheard-of", unreviewed),
        (".toolrc", unreviewed),
        ("away", unreviewed),
        ("lib.so", unreviewed),
        ("run", unreviewed),
        ("tool.toml", unreviewed),
        ("yarn.lock", LaterExecuted::Dependencies),
    ]);
    assert_eq!(unusual.asked(Integrity::Untrusted), expected);
}

#[test]
fn scripts_that_a_manifest_names_count_in_a_run_that_saw_untrusted_text() {
    let manifests = [
        ("package.json", r#"{"scripts": {"build": "node scripts/x.js"}}"#),
        ("Cargo.toml", "[package]\nbuild = \"gen/main.rs\"\n"),
    ];
    let place =
        Place::with(&manifests).writes("scripts/x.js", "evil").writes("gen/main.rs", "evil").writes("src/a.js", "");
    assert_eq!(place.asked(Integrity::ToolTrusted), []);
    let expected = all(&[("gen/main.rs", LaterExecuted::Build), ("scripts/x.js", LaterExecuted::Build)]);
    assert_eq!(place.asked(Integrity::Untrusted), expected);
}

#[test]
fn what_would_fill_a_question_is_counted() {
    let mut place = Place::with(&[]);
    for number in 0..64 {
        place = place.writes(&format!("sub{number}/.envrc"), &"export A=1\n".repeat(4_000));
    }
    let later = place.later(Integrity::ToolTrusted);
    assert!(later.iter().all(|change| change.not_shown.is_some()));
    assert!(later.iter().map(|change| change.difference.len()).sum::<usize>() < DIFFERENCES + 64 * 100);
}
