//! What the runs of the crash matrix do, and how their workspaces must look afterwards.

use std::path::PathBuf;

use palyra_testkit::{Binary, DaemonOptions, Exit, Kill, Model, Receiver, probe};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A run, its workspace before, and after.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) script: Value,
    pub(super) before: &'static [(&'static str, &'static str)],
    pub(super) after: &'static [(&'static str, &'static str)],
    /// The calls that report to the receiver: tool, number.
    pub(super) effects: &'static [(&'static str, u64)],
    /// Where the daemon dies before the death that is swept: the sweep then goes over the recovery.
    pub(super) earlier_kill: Option<Kill>,
    /// A state root to begin with; without one the daemon makes everything anew, and may be killed while it does.
    pub(super) template: Option<(TempDir, PathBuf)>,
}

pub(super) async fn all() -> Vec<Scenario> {
    let existing = one_by_one(Some(template().await));
    // Dies between the first effect that must not be repeated and its outcome, then again while it recovers from that.
    let recovering = Scenario {
        name: "killed again while recovering",
        earlier_kill: Some(Kill { calls: "recvmsg", files: &[], at: 3 }),
        ..one_by_one(Some(template().await))
    };
    vec![existing, all_in_one_turn(), recovering]
}

/// A state that a daemon made and left in good order.
async fn template() -> (TempDir, PathBuf) {
    let directory = TempDir::with_prefix("palyra-template-").unwrap();
    let root = directory.path().join("state");
    let receiver = Receiver::start().unwrap();
    let options = DaemonOptions::new(Model::Offline).binary(Binary::PalyradProbe).state_root(&root);
    let mut daemon = options.env(probe::SOCKET_VARIABLE, receiver.socket()).start().await.unwrap();
    assert_eq!(daemon.stop().await.unwrap(), Exit::Code(0));
    (directory, root)
}

const NOTES: &str = "first line\nsecond line\nthird line\n";
const NOTES_PATCHED: &str = "first line\nsecond line, patched\nthird line\n";
const PATCH: &str = "*** Begin Patch\n*** Update File: notes.md\n first line\n-second line\n+second line, patched\n third line\n\
                     *** Add File: docs/new.md\n+made by a patch\n*** Delete File: old.md\n*** End Patch\n";

/// A turn for each class of call: reads together, then writes and effects one after the other.
fn one_by_one(template: Option<(TempDir, PathBuf)>) -> Scenario {
    let call = |tool: &str, arguments: Value| json!({ "call": [{ "tool": tool, "arguments": arguments }] });
    Scenario {
        name: "one by one",
        script: json!({ "turn": [
            { "text": ["Let me ", "look."], "call": [
                { "tool": "palyra.fs.list", "arguments": { "path": "." } },
                { "tool": "palyra.fs.read", "arguments": { "path": "notes.md" } },
                { "tool": "probe.read", "arguments": { "n": 1 } },
            ] },
            call("palyra.fs.write", json!({ "path": "out/result.txt", "content": "written once\n" })),
            call("palyra.fs.apply_patch", json!({ "patch": PATCH })),
            call("probe.repeatable", json!({ "n": 2 })),
            call("probe.once", json!({ "n": 3 })),
            call("probe.asked", json!({ "n": 4 })),
            { "text": ["All ", "done."] },
        ] }),
        before: &[("notes.md", NOTES), ("old.md", "goes away\n")],
        after: &[
            ("notes.md", NOTES_PATCHED),
            ("docs/new.md", "made by a patch\n"),
            ("out/result.txt", "written once\n"),
        ],
        effects: &[("probe.read", 1), ("probe.repeatable", 2), ("probe.once", 3), ("probe.asked", 4)],
        earlier_kill: None,
        template,
    }
}

/// Everything proposed at once, on a state that does not exist yet: several questions open together, effects waiting in line.
pub(super) fn all_in_one_turn() -> Scenario {
    Scenario {
        name: "all in one turn, fresh state",
        script: json!({ "turn": [
            { "text": "Everything at once.", "call": [
                { "tool": "probe.read", "arguments": { "n": 1 } },
                { "tool": "probe.read", "arguments": { "n": 2 } },
                { "tool": "palyra.fs.read", "arguments": { "path": "notes.md" } },
                { "tool": "probe.once", "arguments": { "n": 3 } },
                { "tool": "probe.asked", "arguments": { "n": 4 } },
                { "tool": "palyra.fs.apply_patch", "arguments": { "patch": PATCH } },
                { "tool": "probe.asked", "arguments": { "n": 5 } },
                { "tool": "probe.repeatable", "arguments": { "n": 6 } },
                { "tool": "palyra.fs.write", "arguments": { "path": "out/result.txt", "content": "written once\n" } },
                { "tool": "probe.once", "arguments": { "n": 7 } },
            ] },
            { "text": ["All ", "done."] },
        ] }),
        before: &[("notes.md", NOTES), ("old.md", "goes away\n")],
        after: &[
            ("notes.md", NOTES_PATCHED),
            ("docs/new.md", "made by a patch\n"),
            ("out/result.txt", "written once\n"),
        ],
        effects: &[
            ("probe.read", 1),
            ("probe.read", 2),
            ("probe.once", 3),
            ("probe.asked", 4),
            ("probe.asked", 5),
            ("probe.repeatable", 6),
            ("probe.once", 7),
        ],
        earlier_kill: None,
        template: None,
    }
}
