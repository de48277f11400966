//! `palyra run --attach`: files from anywhere go with a task, and a wrong one is told before anything begins.

use palyra_testkit::TestContext;
use serde_json::json;

#[test]
fn files_from_anywhere_go_with_a_task() {
    let script = json!({ "turn": [{ "echo": "user" }] });
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let outside = context.root().join("elsewhere");
    std::fs::create_dir(&outside).unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = outside.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (text, empty) = (file("note.txt", b"the heron landed at noon"), file("empty.txt", b""));
    let (large, binary) = (file("large.txt", &vec![b'x'; (5 << 20) + 1]), file("a.bin", b"\x00\x01\x02"));

    let ran = context.run(["run", "--attach", &text, "what happened?"]).unwrap();
    assert!(ran.code == 0 && ran.stdout.contains("the heron landed at noon"), "{ran}");
    assert!(ran.stdout.contains("attachment note.txt"), "{ran}");
    // Bytes that are kept already are kept once; the name is the task's own.
    let again = context.run(["run", "-a", &text, "-a", &text, "and now?"]).unwrap();
    assert!(again.code == 0 && again.stdout.contains("attachment note.txt (2)"), "{again}");

    let missing = outside.join("nothing.txt").display().to_string();
    let directory = outside.display().to_string();
    for (path, why) in [
        (&missing, "it does not exist"),
        (&directory, "it is not a regular file"),
        (&empty, "it is empty"),
        (&large, "more than 5 MiB"),
    ] {
        let refused = context.run(["run", "--attach", path, "look"]).unwrap();
        assert!(refused.code == 2 && refused.stderr.contains(why), "{path}: {refused}");
    }
    let refused = context.run(["run", "--attach", &binary, "look"]).unwrap();
    assert!(refused.code == 2 && refused.stderr.contains("error: `attachment a.bin` is a binary file"), "{refused}");
    context.finish().unwrap();
}
