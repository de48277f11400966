//! Ways out of the workspace, tried with every tool that takes a path.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use palyra_tools::{CallResource, Roots, Workspace};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::support::{ANYWHERE, Bench, snapshot};

/// A bench with a secret next to the workspace and links of every kind to it.
fn surrounded() -> Bench {
    let bench = Bench::new();
    let outside = bench.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "SECRET\n").unwrap();
    bench.file("inside.txt", "inside\n");
    bench.file("sub/file.txt", "sub\n");
    let root = bench.root();
    symlink(outside.join("secret.txt"), root.join("abs_file")).unwrap();
    symlink("../outside/secret.txt", root.join("rel_file")).unwrap();
    symlink(&outside, root.join("abs_dir")).unwrap();
    symlink("../outside", root.join("rel_dir")).unwrap();
    symlink("/", root.join("slash")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    symlink("/proc/self/cwd", root.join("magic_cwd")).unwrap();
    symlink("abs_dir", root.join("chain")).unwrap();
    symlink("loop_b", root.join("loop_a")).unwrap();
    symlink("loop_a", root.join("loop_b")).unwrap();
    symlink("sub/../../outside/secret.txt", root.join("dotted")).unwrap();
    symlink("sub", root.join("good_dir")).unwrap();
    symlink("inside.txt", root.join("good_file")).unwrap();
    bench
}

fn escapes(bench: &Bench) -> Vec<(String, &'static [&'static str])> {
    const OUT: &[&str] = &["path_outside_workspace"];
    const LOOP: &[&str] = &["invalid_path"];
    let secret = bench.dir.path().join("outside/secret.txt");
    let mut table: Vec<(String, &[&str])> = [
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "./.././outside/secret.txt",
        "abs_file",
        "rel_file",
        "abs_dir/secret.txt",
        "rel_dir/secret.txt",
        "chain/secret.txt",
        "dotted",
        "good_dir/../../outside/secret.txt",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/Cargo.toml",
        "/etc/passwd",
        "slash/etc/passwd",
        "magic/etc/passwd",
        "magic_cwd/Cargo.toml",
        "..",
        "/",
        "\\x2E\\x2E/outside/secret.txt",
    ]
    .into_iter()
    .map(|path| (path.to_owned(), OUT))
    .collect();
    table.push((secret.display().to_string(), OUT));
    table.push((format!("{}/../outside/secret.txt", bench.root().display()), OUT));
    table.push((format!("{}x/secret.txt", bench.root().display()), OUT));
    table.push(("loop_a".to_owned(), LOOP));
    table.push(("loop_a/x".to_owned(), LOOP));
    table.push(("inside\0.txt".to_owned(), LOOP));
    table.push(("inside.txt\\x00".to_owned(), LOOP));
    table.push((String::new(), LOOP));
    table
}

#[test]
fn no_path_leads_out_and_nothing_is_written_outside() {
    let bench = surrounded();
    let outside = bench.dir.path().join("outside");
    let before = (snapshot(&outside), snapshot(&bench.root()));
    let mut tried = 0;
    for (path, expected) in escapes(&bench) {
        let patch = |body: &str| json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch")});
        let mut calls: Vec<(&str, Value)> = vec![
            ("fs.read", json!({"path": path})),
            ("fs.list", json!({"path": path})),
            ("fs.search", json!({"path": path, "pattern": "SECRET"})),
            ("fs.write", json!({"path": path, "content": "OWNED"})),
        ];
        // An empty name or a NUL is a malformed patch before it is a bad path.
        if !path.is_empty() {
            calls.push(("fs.apply_patch", patch(&format!("*** Add File: {path}\n+OWNED"))));
            calls.push(("fs.apply_patch", patch(&format!("*** Delete File: {path}"))));
            calls.push(("fs.apply_patch", patch(&format!("*** Update File: {path}\n-SECRET\n+OWNED"))));
            calls.push(("fs.apply_patch", patch(&format!("*** Update File: inside.txt\n*** Move to: {path}"))));
        }
        for (tool, arguments) in calls {
            let code = bench.refusal(tool, arguments.clone());
            assert!(expected.contains(&code.as_str()), "{tool} {arguments}: {code}");
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
    assert_eq!(before, (snapshot(&outside), snapshot(&bench.root())), "nothing was touched");
}

#[test]
fn links_that_stay_inside_work_and_are_kept() {
    let bench = surrounded();
    assert_eq!(bench.content("fs.read", json!({"path": "good_file"})), "inside\n");
    assert_eq!(bench.content("fs.read", json!({"path": "good_dir/file.txt"})), "sub\n");
    let absolute = bench.root().join("sub/file.txt");
    assert_eq!(bench.content("fs.read", json!({"path": absolute})), "sub\n");
    let output = bench.call("fs.write", json!({"path": "good_file", "content": "changed\n"})).unwrap();
    assert_eq!(output.changes[0].path, "inside.txt", "the file is changed where it is");
    assert_eq!(bench.text("inside.txt").unwrap(), "changed\n");
    assert!(bench.root().join("good_file").symlink_metadata().unwrap().is_symlink());
    bench.call("fs.write", json!({"path": "good_dir/new/deep.txt", "content": "x"})).unwrap();
    assert_eq!(bench.text("sub/new/deep.txt").unwrap(), "x");
}

#[test]
fn a_link_to_nothing_is_not_written_through() {
    let bench = Bench::new();
    symlink("nowhere", bench.root().join("dangling")).unwrap();
    assert_eq!(bench.refusal("fs.write", json!({"path": "dangling", "content": "x"})), "invalid_path");
    assert!(!bench.root().join("nowhere").exists());
}

#[test]
fn a_workspace_given_through_a_link_takes_both_spellings() {
    let bench = Bench::new();
    bench.file("a", "x");
    let link = bench.dir.path().join("link");
    symlink(bench.root(), &link).unwrap();
    let workspace = Workspace::open(&link, &ANYWHERE, &[]).unwrap();
    for path in [link.join("a"), bench.root().canonicalize().unwrap().join("a")] {
        assert_eq!(workspace.path(path.to_str().unwrap()).unwrap().to_string(), "a");
    }
}

#[test]
fn a_missing_workspace_says_so() {
    let bench = Bench::new();
    bench.file("file", "x");
    for (path, reason) in [("nowhere", "does not exist"), ("file", "is not a directory")] {
        let error = Workspace::open(bench.root().join(path), &ANYWHERE, &[]).unwrap_err();
        assert_eq!(error.code(), "workspace_not_found");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn granted_roots_do_not_tell_what_else_exists() {
    let bench = surrounded();
    bench.file("file", "x");
    let granted = Roots::Below(vec![bench.root().canonicalize().unwrap()]);
    assert!(Workspace::open(bench.root().join("sub"), &granted, &[]).is_ok());
    let outside = bench.dir.path().join("outside");
    let inside: Vec<_> = ["abs_dir", "rel_dir", "slash", "magic", "chain", "nowhere", "file", "../outside"]
        .into_iter()
        .map(|name| bench.root().join(name))
        .collect();
    for path in [outside.as_path(), &outside.join("missing"), bench.dir.path()]
        .into_iter()
        .chain(inside.iter().map(AsRef::as_ref))
    {
        let error = Workspace::open(path, &granted, &[]).unwrap_err();
        assert_eq!(error.to_string(), format!("workspace `{}` is not available to this principal", path.display()));
        assert_eq!(error.code(), "workspace_not_granted");
    }
}

#[test]
fn swapping_a_directory_for_a_link_never_lets_a_call_out() {
    let bench = surrounded();
    let root = bench.root();
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/secret.txt"), "harmless\n").unwrap();
    symlink("../outside", root.join("evil")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (root, stop) = (root.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) {
                // The directory and the link change places in one step, again and again.
                let (one, two) = (root.join("dir"), root.join("evil"));
                renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        })
    };
    let outside = bench.dir.path().join("outside");
    let before = snapshot(&outside);
    let mut read = 0;
    for round in 0..150 {
        if let Ok(output) = bench.call("fs.read", json!({"path": "dir/secret.txt"})) {
            assert_eq!(output.content, "harmless\n");
            read += 1;
        }
        if let Ok(output) = bench.call("fs.search", json!({"pattern": "SECRET"})) {
            assert!(!output.content.contains("SECRET"), "{}", output.content);
        }
        if let Ok(output) = bench.call("fs.list", json!({"depth": 4, "hidden": true})) {
            assert!(!output.content.contains("secret.txt  7"), "{}", output.content);
        }
        let _ = bench.call("fs.write", json!({"path": format!("dir/w{}.txt", round % 3), "content": "OWNED"}));
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swapper.join().unwrap();
    assert!(swaps > 10 && read <= 150, "{swaps} {read}");
    assert_eq!(before, snapshot(&outside));
}

#[test]
fn an_absolute_path_inside_is_accepted_however_it_gets_there_and_named_like_the_relative_one() {
    let bench = Bench::new();
    let root = bench.workspace.root().to_owned();
    std::fs::create_dir(root.join("sub")).unwrap();
    let link = bench.dir.path().join("spelled-otherwise");
    symlink(&root, &link).unwrap();
    for path in [root.join("sub/new.txt"), link.join("sub/new.txt")] {
        let text = path.display().to_string();
        assert_eq!(bench.workspace.path(&text).unwrap().to_string(), "sub/new.txt", "{text}");
        assert_eq!(bench.workspace.named(&text).unwrap().to_string(), "sub/new.txt");
    }
    for out in ["/etc/passwd".to_owned(), link.join("../outside").display().to_string()] {
        let error = bench.workspace.path(&out).unwrap_err();
        assert_eq!(palyra_common::ToStableError::to_stable(&error).code, "path_outside_workspace", "{out}");
        assert!(bench.workspace.named(&out).is_err());
    }
}

#[test]
fn a_file_has_one_name_whichever_link_leads_to_it() {
    let bench = Bench::new();
    bench.file("sub/a.txt", "1");
    bench.file("with,comma", "1");
    symlink("sub", bench.root().join("linked")).unwrap();
    symlink("sub/a.txt", bench.root().join("a-link")).unwrap();
    let far = bench.dir.path().join("far");
    symlink(bench.root().join("linked"), &far).unwrap();
    let absolute = bench.root().join("linked/a.txt").display().to_string();
    let far = far.join("a.txt").display().to_string();
    let named = |text: &str| bench.workspace.named(text).unwrap().to_string();
    for path in ["sub/a.txt", "./linked/../linked/a.txt", "linked/a.txt", "a-link", &absolute, &far] {
        assert_eq!(named(path), "sub/a.txt", "{path}");
    }
    assert_eq!(named("linked/new/file"), "sub/new/file");
    assert_eq!(named("linked"), "sub");
    let patch = "*** Begin Patch\n*** Delete File: with,comma\n*** End Patch\n";
    let tool = bench.registry.get("palyra.fs.apply_patch").unwrap();
    let resource = tool.resource(&json!({ "patch": patch }), &bench.workspace).unwrap();
    let CallResource::Files(files) = &resource else { panic!("{resource:?}") };
    assert_eq!(files.iter().map(ToString::to_string).collect::<Vec<_>>(), ["with,comma"], "one file and not two");
    let patch = "*** Begin Patch\n*** Delete File: sub/a.txt\n*** Delete File: linked/a.txt\n*** Delete File: z\n*** End Patch\n";
    let resource = tool.resource(&json!({ "patch": patch }), &bench.workspace).unwrap();
    assert_eq!(resource.to_string(), "files:sub/a.txt,z", "two ways to one file");
}

#[test]
fn what_lies_outside_looks_the_same_whether_it_is_there_or_not() {
    let bench = Bench::new();
    let outside = bench.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "x").unwrap();
    std::fs::create_dir(outside.join("directory")).unwrap();
    symlink(&outside, bench.root().join("out")).unwrap();
    let direct = outside.display().to_string();
    for prefix in ["out", "../outside", direct.as_str()] {
        for name in ["file", "directory", "absent", "absent/deeper", "file/deeper"] {
            let path = format!("{prefix}/{name}");
            for tool in ["fs.read", "fs.list", "fs.edit", "fs.write"] {
                let arguments = match tool {
                    "fs.edit" => json!({"path": path, "old": "x", "new": "y"}),
                    "fs.write" => json!({"path": path, "content": "y"}),
                    _ => json!({ "path": path }),
                };
                let error = bench.call(tool, arguments).unwrap_err();
                assert_eq!(error.code(), "path_outside_workspace", "{tool} {path}: {error}");
            }
            let error = bench.workspace.directory(&path).unwrap_err();
            assert_eq!(error.code(), "path_outside_workspace", "{path}: {error}");
        }
    }
}
