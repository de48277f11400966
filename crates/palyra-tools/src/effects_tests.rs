//! Crashes at every step of an effect, conflicts, and damage.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::drafts::Drafts;
use crate::{MemoryArtifacts, Roots};

/// No directory is refused.
const ANYWHERE: Roots = Roots::Anywhere { except: Vec::new(), granted: Vec::new() };

struct Bench {
    dir: TempDir,
    workspace: Workspace,
    artifacts: MemoryArtifacts,
    store: EffectStore,
    id: EffectId,
}

const FINGERPRINT: Digest = Digest([7; 32]);

impl Bench {
    /// Three files; the effect changes one, deletes one, adds one in new directories.
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("w");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("changed"), "old").unwrap();
        fs::write(root.join("deleted"), "bye").unwrap();
        fs::write(root.join("other"), "same").unwrap();
        let workspace = Workspace::open(&root, &ANYWHERE, &[]).unwrap();
        let store = EffectStore::open(dir.path().join("effects")).unwrap();
        Self { dir, workspace, artifacts: MemoryArtifacts::default(), store, id: EffectId::new("run/1") }
    }

    fn call(&self) -> Result<Receipt, ToolError> {
        let cancel = Cancel::never();
        let ground = Ground { workspace: &self.workspace, artifacts: &self.artifacts, cancel: &cancel };
        self.store.once(&ground, &self.id, FINGERPRINT, || {
            let mut drafts = Drafts::new(&self.workspace, 1 << 20);
            drafts.get(&self.workspace.path("changed")?)?.now = Some(b"new".to_vec());
            drafts.get(&self.workspace.path("deleted")?)?.now = None;
            drafts.get(&self.workspace.path("made/deep/added")?)?.now = Some(b"fresh".to_vec());
            drafts.into_plan(&self.artifacts, |changes| (format!("{} files", changes.len()), json!({})))
        })
    }

    fn pull_the_plug_after(&self, steps: usize) {
        *self.store.fault.steps_left.lock().unwrap() = Some(steps);
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.path().join("w").join(name)).ok()
    }

    fn state(&self) -> [Option<String>; 4] {
        [self.read("changed"), self.read("deleted"), self.read("made/deep/added"), self.read("other")]
    }

    /// Files that nobody asked for.
    fn litter(&self) -> Vec<String> {
        let walk = walk(&self.dir.path().join("w"));
        walk.into_iter().filter(|name| name.contains(".palyra")).collect()
    }
}

fn walk(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        names.push(entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().unwrap().is_dir() {
            names.extend(walk(&entry.path()));
        }
    }
    names
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn an_effect_survives_a_crash_at_every_step() {
    let whole = [text("new"), None, text("fresh"), text("same")];
    let untouched = [text("old"), text("bye"), None, text("same")];
    let expected = Bench::new().call().unwrap();
    assert_eq!(expected.content, "3 files");
    let mut crashes = 0;
    for steps in 0.. {
        let bench = Bench::new();
        bench.pull_the_plug_after(steps);
        match catch_unwind(AssertUnwindSafe(|| bench.call())) {
            Ok(finished) => {
                finished.unwrap();
                break;
            }
            Err(_) => crashes += 1,
        }
        if bench.store.unfinished().unwrap().is_empty() && bench.state() != whole {
            assert_eq!(bench.state(), untouched, "before the point of no return nothing is touched");
        }
        for _ in 0..2 {
            assert_eq!(bench.call().unwrap(), expected, "after {steps} steps");
            assert_eq!(bench.state(), whole, "after {steps} steps");
        }
        assert_eq!(bench.litter(), Vec::<String>::new());
        assert_eq!(bench.store.unfinished().unwrap(), []);
    }
    assert!(crashes >= 6, "{crashes}");
}

#[test]
fn an_effect_is_reported_again_and_not_done_again() {
    let bench = Bench::new();
    let first = bench.call().unwrap();
    fs::write(bench.dir.path().join("w/changed"), "edited by a person").unwrap();
    assert_eq!(bench.call().unwrap(), first);
    assert_eq!(bench.read("changed"), text("edited by a person"));
    bench.store.forget(&bench.id).unwrap();
    bench.store.forget(&bench.id).unwrap();
    assert!(walk(&bench.dir.path().join("effects")).is_empty());
}

#[test]
fn somebody_elses_change_takes_the_whole_effect_back() {
    let steps = 3;
    for crash_again in [None, Some(0), Some(1), Some(2)] {
        let bench = Bench::new();
        bench.pull_the_plug_after(steps);
        catch_unwind(AssertUnwindSafe(|| bench.call())).unwrap_err();
        assert_eq!(bench.store.unfinished().unwrap(), std::slice::from_ref(&bench.id));
        assert_eq!(bench.read("changed"), text("new"), "the crash was half-way");
        fs::create_dir_all(bench.dir.path().join("w/made/deep")).unwrap();
        fs::write(bench.dir.path().join("w/made/deep/added"), "mine").unwrap();
        if let Some(steps) = crash_again {
            bench.pull_the_plug_after(steps);
            catch_unwind(AssertUnwindSafe(|| bench.call())).unwrap_err();
            assert_eq!(bench.store.unfinished().unwrap(), std::slice::from_ref(&bench.id));
            // Taking back is finished first; then the effect begins anew, on what is there now.
            bench.call().unwrap();
            assert_eq!(bench.state(), [text("new"), None, text("fresh"), text("same")]);
        } else {
            let error = bench.call().unwrap_err();
            assert_eq!(error.code(), "effect_conflict");
            assert!(error.to_string().contains("`made/deep/added`"), "{error}");
            assert_eq!(bench.state(), [text("old"), text("bye"), text("mine"), text("same")]);
        }
        assert_eq!(bench.litter(), Vec::<String>::new());
        assert_eq!(bench.store.unfinished().unwrap(), []);
    }
}

#[test]
fn a_file_in_the_way_takes_the_whole_effect_back() {
    let bench = Bench::new();
    bench.pull_the_plug_after(3);
    catch_unwind(AssertUnwindSafe(|| bench.call())).unwrap_err();
    // A file where the effect needs a directory.
    fs::write(bench.dir.path().join("w/made"), "in the way").unwrap();
    let error = bench.call().unwrap_err();
    assert_eq!(error.code(), "effect_conflict", "{error}");
    assert_eq!(bench.state(), [text("old"), text("bye"), None, text("same")]);
    assert_eq!(bench.read("made"), text("in the way"));
    assert_eq!(bench.store.unfinished().unwrap(), []);
}

/// A store that loses everything: nothing can be taken back until it is found again.
#[test]
fn what_cannot_be_taken_back_now_is_taken_back_later() {
    let bench = Bench::new();
    bench.pull_the_plug_after(3);
    catch_unwind(AssertUnwindSafe(|| bench.call())).unwrap_err();
    fs::write(bench.dir.path().join("w/made"), "in the way").unwrap();
    let cancel = Cancel::never();
    let lost = MemoryArtifacts::default();
    let ground = Ground { workspace: &bench.workspace, artifacts: &lost, cancel: &cancel };
    let error = bench.store.once(&ground, &bench.id, FINGERPRINT, || unreachable!()).unwrap_err();
    assert_eq!(error.code(), "artifact_not_found");
    assert_eq!(bench.store.unfinished().unwrap(), std::slice::from_ref(&bench.id));
    let error = bench.call().unwrap_err();
    assert_eq!(error.code(), "path_not_directory", "begun anew, it does not fit: {error}");
    assert_eq!(bench.state(), [text("old"), text("bye"), None, text("same")]);
}

#[test]
fn one_id_is_one_effect() {
    let bench = Bench::new();
    bench.call().unwrap();
    let cancel = Cancel::never();
    let ground = Ground { workspace: &bench.workspace, artifacts: &bench.artifacts, cancel: &cancel };
    let error = bench.store.once(&ground, &bench.id, Digest([8; 32]), || unreachable!()).unwrap_err();
    assert_eq!(error.code(), "effect_mismatch");
}

#[test]
fn a_damaged_plan_changes_no_file() {
    let mut refused = 0;
    for position in (0..2_000).step_by(7) {
        let bench = Bench::new();
        bench.pull_the_plug_after(1);
        catch_unwind(AssertUnwindSafe(|| bench.call())).unwrap_err();
        let plan = bench.store.file(&bench.id, PLAN);
        let mut bytes = fs::read(&plan).unwrap();
        let Some(byte) = bytes.get_mut(position) else { break };
        *byte ^= 0x55;
        fs::write(&plan, bytes).unwrap();
        if let Err(error) = bench.call() {
            refused += 1;
            assert!(
                ["effect_damaged", "effect_mismatch", "effect_conflict", "invalid_path", "path_outside_workspace"]
                    .contains(&error.code()),
                "{position}: {error}"
            );
        }
        let changed = bench.read("changed").unwrap();
        assert!(changed == "old" || changed == "new", "{position}: {changed}");
        assert_eq!(bench.read("other"), text("same"));
    }
    assert!(refused > 20, "{refused}");
}

/// Has the effect put an artifact in the place of a file.
fn restore(bench: &Bench, artifacts: &MemoryArtifacts) -> Result<Receipt, ToolError> {
    let cancel = Cancel::never();
    let ground = Ground { workspace: &bench.workspace, artifacts, cancel: &cancel };
    let change = FileChange {
        path: "changed".to_owned(),
        before: Some(Digest::of(b"old")),
        after: Some(Digest::of(&kept())),
        before_mode: None,
        directories: Vec::new(),
        attribution: palyra_common::ChangeAttribution::Observed,
        entry: crate::EntryFacts::default(),
    };
    bench.store.once(&ground, &bench.id, FINGERPRINT, || {
        let receipt = Receipt { content: String::new(), data: json!({}), changes: vec![change] };
        Ok(Plan { receipt, contents: vec![NewContent { content: Some(Content::Artifact), mode: None }] })
    })
}

fn kept() -> Vec<u8> {
    vec![b'k'; 100_000]
}

#[test]
fn a_content_that_is_an_artifact_is_not_in_the_plan_and_comes_back_after_a_crash() {
    let bench = Bench::new();
    bench.artifacts.put(&kept()).unwrap();
    bench.pull_the_plug_after(1);
    catch_unwind(AssertUnwindSafe(|| restore(&bench, &bench.artifacts))).unwrap_err();
    let plan = fs::metadata(bench.store.file(&bench.id, PLAN)).unwrap();
    assert!(plan.len() < 10_000, "{} bytes", plan.len());
    restore(&bench, &bench.artifacts).unwrap();
    assert_eq!(bench.read("changed").unwrap().into_bytes(), kept());
}

#[test]
fn an_artifact_that_is_gone_meanwhile_changes_nothing() {
    let bench = Bench::new();
    bench.artifacts.put(&kept()).unwrap();
    bench.pull_the_plug_after(1);
    catch_unwind(AssertUnwindSafe(|| restore(&bench, &bench.artifacts))).unwrap_err();
    let error = restore(&bench, &MemoryArtifacts::default()).unwrap_err();
    assert_eq!((error.code(), bench.read("changed")), ("artifact_not_found", text("old")));
    assert!(bench.store.unfinished().unwrap().is_empty());
}

#[test]
fn a_planted_link_is_not_written_through() {
    let bench = Bench::new();
    bench.pull_the_plug_after(1);
    catch_unwind(AssertUnwindSafe(|| bench.call())).unwrap_err();
    let outside = bench.dir.path().join("outside");
    fs::write(&outside, "precious").unwrap();
    let root = bench.dir.path().join("w");
    std::os::unix::fs::symlink(&outside, root.join(temporary_name(&bench.id, 0))).unwrap();
    fs::create_dir(bench.dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.dir.path().join("elsewhere"), root.join("made")).unwrap();
    let error = bench.call().unwrap_err();
    assert_eq!(error.code(), "effect_conflict", "{error}");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");
    assert!(walk(&bench.dir.path().join("elsewhere")).is_empty());
    assert_eq!(bench.read("changed"), text("old"));
}
