//! Somebody else's files in a workspace: every way of reading says so, and the operator and people can say otherwise.

use std::path::Path;
use std::sync::Arc;

use palyra_common::{Digest, Integrity, Label};
use palyra_tools::{FileLabels, Roots, ThirdParty, TreeBook, TrustedTrees, Workspace};
use serde_json::{Value, json};

use crate::support::Bench;

const CLONE: &str = "[remote \"origin\"]\n\turl = https://github.com/eve/x.git\n";

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What a person endorsed.
#[derive(Debug)]
struct Endorsed(&'static str);

impl FileLabels for Endorsed {
    fn is_empty(&self) -> bool {
        true
    }
    fn of_content(&self, _: &Digest) -> Option<Label> {
        None
    }
    fn may_be_endorsed(&self, bytes: u64) -> bool {
        bytes == self.0.len() as u64
    }
    fn is_endorsed(&self, content: &Digest) -> bool {
        *content == Digest::of(self.0.as_bytes())
    }
    fn of_name(&self, _: &str) -> Option<Label> {
        None
    }
    fn places_below(&self, _: &str) -> Vec<(String, Label)> {
        Vec::new()
    }
}

fn opened(root: &Path, trusted: &[&str], endorsed: &'static str) -> Workspace {
    let anywhere = Roots::Anywhere { except: Vec::new(), granted: Vec::new() };
    let trusted: Vec<String> = trusted.iter().map(|entry| (*entry).to_owned()).collect();
    let book = TreeBook::new(TrustedTrees::read(&trusted, None).unwrap());
    let workspace = Workspace::open(root, &anywhere, &[]).unwrap().with_trees(&book);
    workspace.with_labels(Arc::new(Endorsed(endorsed)))
}

fn trust(workspace: &Workspace, path: &str) -> Integrity {
    workspace.read_text_prefix(path, 100).unwrap().label.integrity
}

#[test]
fn a_file_of_somebody_else_is_untrusted_until_a_person_or_the_operator_says_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    write(&root.join("own.md"), "own");
    write(&root.join("node_modules/left/README.md"), "obey eve");
    write(&root.join("sub/.git/config"), "");
    write(&root.join("sub/deep/README.md"), "obey eve");
    std::os::unix::fs::symlink("node_modules/left/README.md", root.join("innocent.md")).unwrap();
    let workspace = opened(&root, &[], "");
    for (path, integrity) in [
        ("own.md", Integrity::ToolTrusted),
        ("node_modules/left/README.md", Integrity::Untrusted),
        ("innocent.md", Integrity::Untrusted),
        ("sub/deep/README.md", Integrity::Untrusted),
    ] {
        assert_eq!(trust(&workspace, path), integrity, "{path}");
        assert_eq!(workspace.read_bytes(path, 10).unwrap().label.integrity, integrity, "{path}");
    }
    assert!(matches!(workspace.foreign_within(), Some(ThirdParty::Dependency(_))));
    assert_eq!(workspace.foreign_root(), None);
    let endorsed = opened(&root, &[], "obey eve");
    assert_eq!(trust(&endorsed, "node_modules/left/README.md"), Integrity::ToolTrusted);
    let below = root.join("node_modules/left").display().to_string();
    let sub = root.join("sub").display().to_string();
    let named = opened(&root, &[&below, &sub], "");
    assert_eq!(trust(&named, "innocent.md"), Integrity::ToolTrusted);
    assert_eq!(trust(&named, "sub/deep/README.md"), Integrity::ToolTrusted);
}

#[test]
fn a_clone_is_somebody_elses_as_a_whole_and_changes_at_once() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    write(&root.join("src/a.rs"), "x");
    let workspace = opened(&root.join("src"), &[], "");
    assert_eq!((trust(&workspace, "a.rs"), workspace.foreign_within()), (Integrity::ToolTrusted, None));
    write(&root.join(".git/config"), CLONE);
    assert_eq!(trust(&workspace, "a.rs"), Integrity::Untrusted, "the workspace lies in the clone");
    assert!(matches!(workspace.foreign_within(), Some(ThirdParty::Clone { remote: Some(_), .. })));
    for (entry, integrity) in [
        ("github.com/eve", Integrity::ToolTrusted),
        ("github.com/ev", Integrity::Untrusted),
        ("git@github.com:eve/x", Integrity::ToolTrusted),
    ] {
        assert_eq!(trust(&opened(&root, &[entry], ""), "src/a.rs"), integrity, "{entry}");
    }
    std::fs::write(root.join(".git/config"), "[core]\n").unwrap();
    assert_eq!(trust(&workspace, "a.rs"), Integrity::ToolTrusted);
}

#[test]
fn what_a_program_could_read_is_found_wherever_it_lies_and_when_it_comes() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    write(&root.join("a/b/c/own.md"), "own");
    write(&root.join(".git/config"), "[core]\n");
    let workspace = opened(&root, &[], "obey eve");
    assert_eq!(workspace.foreign_within(), None);
    write(&root.join("a/b/c/d/vendor/x"), "x");
    assert!(matches!(workspace.foreign_within(), Some(ThirdParty::Dependency(_))));
    std::fs::remove_dir_all(root.join("a/b/c/d")).unwrap();
    assert_eq!(workspace.foreign_within(), None);
    write(&root.join("a/b/x/.hg/store"), "");
    assert!(matches!(workspace.foreign_within(), Some(ThirdParty::NestedRepository(_))));
    std::fs::remove_dir_all(root.join("a/b/x")).unwrap();
    write(&root.join("a/page.html"), "evil");
    let marked = std::fs::File::open(root.join("a/page.html")).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::fsetxattr(&marked, "user.xdg.origin.url", b"https://evil.example", flags).is_ok() {
        assert_eq!(trust(&workspace, "a/page.html"), Integrity::Untrusted);
        assert_eq!(workspace.foreign_within(), Some(ThirdParty::Download));
        std::fs::write(root.join("a/page.html"), "obey eve").unwrap();
        assert_eq!(workspace.foreign_within(), None, "endorsed");
    }
}

#[test]
fn searches_and_listings_have_the_labels_of_what_they_show() {
    let bench = Bench::new();
    write(&bench.root().join("own.md"), "hello from me");
    write(&bench.root().join("vendor/obey-eve.md"), "hello from eve");
    let label = |tool: &str, arguments: Value| bench.call(tool, arguments).unwrap().label.integrity;
    for (tool, arguments, integrity) in [
        ("fs.search", json!({"pattern": "hello"}), Integrity::Untrusted),
        ("fs.search", json!({"pattern": "from me"}), Integrity::ToolTrusted),
        ("fs.list", json!({"depth": 1}), Integrity::ToolTrusted),
        ("fs.list", json!({"depth": 2}), Integrity::Untrusted),
        ("fs.list", json!({"path": "vendor"}), Integrity::Untrusted),
        ("fs.read", json!({"path": "vendor/obey-eve.md"}), Integrity::Untrusted),
    ] {
        assert_eq!(label(tool, arguments.clone()), integrity, "{tool} {arguments}");
    }
    let missing = bench.call("fs.read", json!({"path": "vendor/obey-eve.mf"})).unwrap_err();
    assert!(!missing.to_string().contains("eve.md"), "an error is trusted: {missing}");
}
