//! Programs and the real daemon: what they print, what they change, what they cannot reach, and that none outlives its call, its run or the daemon.

use std::path::Path;
use std::time::{Duration, Instant};

use palyra_client::Follow;
use palyra_common::{RunLifecyclePhase, RunStreamBody, RunStreamEvent, SandboxTier, ToolAttestation, ToolResult};
use palyra_testkit::{DaemonOptions, Model, TestDaemon};
use serde_json::{Value, json};

use super::{PATIENCE, call, finish, names, task, workspace};

async fn daemon(script: Value) -> TestDaemon {
    DaemonOptions::new(Model::Scripted(script)).start().await.unwrap()
}

fn run(argv: &[&str]) -> Value {
    let shell = argv.first() == Some(&"sh");
    call("palyra.process.run", json!({ "argv": argv, "shell": shell }))
}

fn results(events: &[RunStreamEvent]) -> Vec<ToolResult> {
    let result = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::ToolResult(result) => Some(result.clone()),
        _ => None,
    };
    events.iter().filter_map(result).collect()
}

fn attestations(events: &[RunStreamEvent]) -> Vec<ToolAttestation> {
    let attestation = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::ToolAttestation(attestation) => Some(attestation.clone()),
        _ => None,
    };
    events.iter().filter_map(attestation).collect()
}

/// Runs a script with everything allowed and gives the tape.
async fn played(prompt: &str, place: &Path, script: Value) -> (TestDaemon, Vec<RunStreamEvent>) {
    let daemon = daemon(script).await;
    let run = daemon.client().create_run(&task(prompt, place)).await.unwrap();
    let (detail, events) = finish(&daemon.client(), run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    (daemon, events)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_the_user_wrote_runs_unasked_in_tier_c_and_everything_it_said_is_returned() {
    let place = workspace();
    let script = json!({ "turn": [run(&["wc", "-l", "notes.md", "missing"]), { "text": "done" }] });
    let (daemon, events) = played("run `wc -l notes.md missing` for me", place.path(), script).await;
    assert!(!names(&events).contains(&"question".to_owned()), "{:?}", names(&events));
    let [result] = results(&events).try_into().unwrap();
    assert!(!result.ok && result.error.is_none(), "the program failed, and the tool did not: {}", result.content);
    for part in ["exit code 1", "2 notes.md", "--- stderr", "missing: No such file"] {
        assert!(result.content.contains(part), "{part}: {}", result.content);
    }
    assert!(!result.content.contains("--- sandbox"), "it did not fail because of the sandbox: {}", result.content);
    let [attested] = attestations(&events).try_into().unwrap();
    assert_eq!((attested.executor.as_str(), attested.tier), ("sandbox", Some(SandboxTier::C)));
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_the_sandbox_denies_something_is_told_of_the_sandbox() {
    let place = workspace();
    let script = json!({ "turn": [run(&["touch", "/usr/made"]), { "text": "done" }] });
    let (daemon, events) = played("run `touch /usr/made` for me", place.path(), script).await;
    let [result] = results(&events).try_into().unwrap();
    for part in ["exit code 1", "--- sandbox (tier ", "no network; only the workspace"] {
        assert!(result.content.contains(part), "{part}: {}", result.content);
    }
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_the_model_made_up_or_a_shell_is_shown_to_a_person_first() {
    let place = workspace();
    let script = json!({ "turn": [run(&["ls", "-a"]), run(&["sh", "-c", "echo hi"]), { "text": "done" }] });
    // With network a program is not contained.
    let options = DaemonOptions::new(Model::Scripted(script)).env("PALYRA_PROCESS_NETWORK", "https://crates.io");
    let daemon = options.start().await.unwrap();
    let prompt = "what is here? sh -c 'echo hi' is what I would type";
    let run = daemon.client().create_run(&task(prompt, place.path())).await.unwrap();
    let (detail, events) = finish(&daemon.client(), run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    let asked: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            RunStreamBody::ToolApprovalRequest(request) => Some((request.summary.clone(), request.reason.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[0].0, "run `ls -a` in `.`");
    assert!(asked[0].1.contains("chosen by the model"), "{}", asked[0].1);
    assert!(asked[0].1.contains("it would have network"), "{}", asked[0].1);
    assert!(asked[1].1.contains("a shell"), "{}", asked[1].1);
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_changed_is_told_and_taken_back_with_the_run() {
    let place = workspace();
    let line = "echo new > made; mkdir -p .git/hooks deep; echo x > deep/file; echo changed >> notes.md; echo x > build.rs; \
                echo x > .git/hooks/pre-commit; echo x > .git/config";
    let script = json!({ "turn": [run(&["sh", "-c", line]), { "text": "done" }] });
    let (daemon, events) = played("go", place.path(), script).await;
    let [result] = results(&events).try_into().unwrap();
    for part in [
        "--- files (6 changed)",
        "created made",
        "created deep/file",
        "changed notes.md",
        "created build.rs (note:",
        "created .git/hooks/pre-commit (note:",
        "created .git/config (note:",
    ] {
        assert!(result.content.contains(part), "{part}: {}", result.content);
    }
    let run = events[0].run_id;
    daemon.client().undo_run(run).await.unwrap();
    assert_eq!(std::fs::read_to_string(place.path().join("notes.md")).unwrap(), "first line\nsecond line\n");
    for gone in ["made", "deep", "build.rs", ".git"] {
        assert!(!place.path().join(gone).exists(), "{gone}");
    }
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_does_while_a_program_sleeps_survives_an_undo() {
    let place = workspace();
    let root = place.path().to_owned();
    std::fs::write(root.join("unwanted"), "a person's").unwrap();
    let made = std::process::Command::new("mkfifo").arg(root.join("gate")).status().unwrap();
    assert!(made.success());
    // The program sleeps in a read until the person is done.
    let person = std::thread::spawn(move || {
        let pause = || std::thread::sleep(Duration::from_secs(1));
        while !root.join("own").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        pause();
        std::fs::write(root.join("notes.md"), "a person's").unwrap();
        std::fs::write(root.join("person.txt"), "a person's").unwrap();
        std::fs::remove_file(root.join("unwanted")).unwrap();
        pause();
        std::fs::write(root.join("gate"), "go on\n").unwrap();
    });
    let line = "echo own > own; read go < gate; echo end";
    let script = json!({ "turn": [run(&["sh", "-c", line]), { "text": "done" }] });
    let (daemon, events) = played("go", place.path(), script).await;
    person.join().unwrap();
    let [result] = results(&events).try_into().unwrap();
    for part in ["created own\n", "changed notes.md (also changed by someone else", "deleted unwanted (also"] {
        assert!(result.content.contains(part), "{part}: {}", result.content);
    }
    assert!(!result.content.contains("person.txt"), "{}", result.content);
    let refused = daemon.client().undo_run(events[0].run_id).await.unwrap_err();
    let refused = format!("{refused:?}");
    for part in ["undo_conflict", "`notes.md`", "`unwanted`"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let text = |name: &str| std::fs::read_to_string(place.path().join(name)).ok();
    for name in ["notes.md", "person.txt"] {
        assert_eq!(text(name).as_deref(), Some("a person's"), "{name}");
    }
    assert_eq!((text("own").as_deref(), text("unwanted")), (Some("own\n"), None));
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_sees_the_workspace_and_nothing_of_its_user_or_the_network() {
    let place = workspace();
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let probe = format!(
        "import os, socket\n\
         print('home', os.path.exists('/etc/shadow'), os.listdir('/proc/self/fd').__len__() < 8)\n\
         print('state', any('PALYRA' in name for name in os.environ))\n\
         s = socket.socket()\n\
         s.settimeout(2)\n\
         print('connect', s.connect_ex(('127.0.0.1', {port})) == 0)\n"
    );
    let script = json!({ "turn": [run(&["python3", "-c", &probe]), { "text": "done" }] });
    let (daemon, events) = played("go", place.path(), script).await;
    let [result] = results(&events).try_into().unwrap();
    for part in ["home False True", "state False", "connect False"] {
        assert!(result.content.contains(part), "{part}: {}", result.content);
    }
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_time_is_up_the_output_so_far_is_returned() {
    let place = workspace();
    let argv = ["sh", "-c", "echo early; sleep 60"];
    let call = call("palyra.process.run", json!({ "argv": argv, "timeout_seconds": 1, "shell": true }));
    let (daemon, events) = played("go", place.path(), json!({ "turn": [call, { "text": "done" }] })).await;
    let [result] = results(&events).try_into().unwrap();
    assert!(
        !result.ok && result.content.contains("early") && result.content.contains("its time was over"),
        "{}",
        result.content
    );
    assert!(attestations(&events)[0].timed_out);
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_calls_start_nothing_and_say_why() {
    let place = workspace();
    let with = |arguments: Value| call("palyra.process.run", arguments);
    let script = json!({ "turn": [
        run(&["no-such-program"]),
        run(&["./notes.md"]),
        with(json!({ "argv": [] })),
        with(json!({ "argv": ["sh", "-c", "true"] })),
        with(json!({ "argv": ["true"], "timeout_seconds": 0 })),
        with(json!({ "argv": ["true"], "cwd": "../.." })),
        with(json!({ "argv": ["true"], "cwd": "gone" })),
        with(json!({ "argv": ["true", "a\u{0}b"] })),
        with(json!({ "argv": ["true"], "env": { "LD_PRELOAD": "/x.so" } })),
        call("palyra.process.logs", json!({ "id": "p99" })),
        { "text": "done" },
    ] });
    let (daemon, events) = played("go", place.path(), script).await;
    let codes: Vec<_> = results(&events).into_iter().map(|result| result.error.map(|error| error.code)).collect();
    let expected = [
        "sandbox_program_not_found",
        "sandbox_program_not_executable",
        "invalid_arguments",
        "invalid_arguments",
        "invalid_arguments",
        "path_outside_workspace",
        "path_not_found",
        "sandbox_argument_invalid",
        "sandbox_variable_not_granted",
        "process_not_found",
    ];
    let codes: Vec<_> = codes.iter().map(|code| code.as_deref().unwrap_or("ok")).collect();
    assert_eq!(codes, expected, "{:?}", names(&events));
    daemon.finish().await.unwrap();
}

/// A program that goes on writing to a file, and a grandchild of it that does the same to another and tries to get away.
const HEARTBEAT: &str = "setsid sh -c 'while :; do date +%N > grandchild; sleep 0.02; done' & while :; do date +%N > child; sleep 0.02; done";

fn beats(place: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(place.join(name)).ok().filter(|text| !text.is_empty())
}

/// Waits until both write.
async fn wait_alive(place: &Path) {
    let began = Instant::now();
    while beats(place, "child").is_none() || beats(place, "grandchild").is_none() {
        assert!(began.elapsed() < PATIENCE, "the program never wrote");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until neither writes any more.
async fn wait_dead(place: &Path) {
    let began = Instant::now();
    loop {
        let before = ["child", "grandchild"].map(|name| beats(place, name));
        tokio::time::sleep(Duration::from_millis(300)).await;
        if before == ["child", "grandchild"].map(|name| beats(place, name)) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "something still writes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_and_its_grandchildren_die_when_the_run_is_stopped() {
    let place = workspace();
    let daemon = daemon(json!({ "turn": [run(&["sh", "-c", HEARTBEAT]), { "text": "done" }] })).await;
    let client = daemon.client();
    let run = client.create_run(&task("go", place.path())).await.unwrap();
    let person = tokio::spawn({
        let client = daemon.client();
        async move { finish(&client, run.run_id).await }
    });
    wait_alive(place.path()).await;
    client.abort_run(run.run_id, &Default::default()).await.unwrap();
    person.await.unwrap();
    wait_dead(place.path()).await;
    let mut tape = client.tape(run.run_id, 1, Follow::No);
    let mut events = Vec::new();
    while let Some(event) = tape.next().await.unwrap() {
        events.push(event);
    }
    let [result] = results(&events).try_into().unwrap();
    // On a busy machine the daemon does not wait for the report; it then says that it does not know.
    let told = ["it was stopped", "its outcome is unknown"];
    assert!(told.iter().any(|told| result.content.contains(told)), "{}", result.content);
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_dies_with_the_daemon() {
    let place = workspace();
    let mut daemon = daemon(json!({ "turn": [run(&["sh", "-c", HEARTBEAT]), { "text": "done" }] })).await;
    let client = daemon.client();
    let run = client.create_run(&task("go", place.path())).await.unwrap();
    let person = tokio::spawn(async move { palyra_testkit::Person::new(run.run_id).follow(&client).await });
    wait_alive(place.path()).await;
    daemon.kill9().unwrap();
    wait_dead(place.path()).await;
    let _ = person.await;
    daemon.restart().await.unwrap();
    let (detail, _) = finish(&daemon.client(), run.run_id).await;
    assert!(detail.run.phase.is_terminal());
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_program_can_be_watched_and_stopped_and_ends_with_its_run() {
    let place = workspace();
    let id = |tool: &str, id: &str| call(tool, json!({ "id": id }));
    let start = |line: &str| call("palyra.process.start", json!({ "argv": ["sh", "-c", line], "shell": true }));
    let script = json!({ "turn": [
        start("echo one; echo two >&2; echo made > made; sleep 600"),
        run(&["sleep", "0.3"]),
        id("palyra.process.status", "p1"),
        id("palyra.process.logs", "p1"),
        call("palyra.process.logs", json!({ "id": "p1", "stream": "stderr", "from": 1 })),
        id("palyra.process.stop", "p1"),
        start(HEARTBEAT),
        run(&["sleep", "0.5"]),
        { "text": "done" },
    ] });
    let (daemon, events) = played("go", place.path(), script).await;
    let contents: Vec<_> = results(&events).into_iter().map(|result| result.content).collect();
    assert!(contents[0].contains("as `p1`"), "{}", contents[0]);
    assert!(contents[2].contains("runs; it printed 4 bytes, and 4 to standard error"), "{}", contents[2]);
    assert!(contents[3].ends_with("\none\n"), "{}", contents[3]);
    assert!(contents[4].ends_with("\nwo\n"), "{}", contents[4]);
    assert!(
        contents[5].contains("ended: signal 9 (killed)") && contents[5].contains("changed 1 files"),
        "{}",
        contents[5]
    );
    assert!(place.path().join("child").exists() && place.path().join("grandchild").exists(), "the second one ran");
    wait_dead(place.path()).await;
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_prints_is_shown_while_it_runs() {
    let place = workspace();
    let probe =
        "import os, time\nprint('early', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('late')";
    let daemon = daemon(json!({ "turn": [run(&["python3", "-c", probe]), { "text": "done" }] })).await;
    let client = daemon.client();
    let run = client.create_run(&task("go", place.path())).await.unwrap();
    let person = tokio::spawn({
        let client = daemon.client();
        async move { finish(&client, run.run_id).await }
    });
    let mut tape = client.tape(run.run_id, 1, Follow::UntilEnd).with_progress();
    let mut shown = String::new();
    while let Some(event) = tape.next().await.unwrap() {
        if let Some(progress) = event.progress() {
            shown.push_str(&progress.output);
            if shown.contains("early") {
                // The program goes on once somebody has seen its first line.
                std::fs::write(place.path().join("go"), "").unwrap();
            }
        }
    }
    assert!(shown.contains("early"), "{shown}");
    let (_, events) = person.await.unwrap();
    let [result] = results(&events).try_into().unwrap();
    assert!(result.content.contains("early\nlate"), "{}", result.content);
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_cut_in_the_middle_and_kept_as_an_artifact_and_a_terminal_is_one() {
    let place = workspace();
    let flood = "import sys\nfor n in range(200000): print(n)\nprint('the end', file=sys.stderr)";
    let terminal = "import os, sys\nprint(os.isatty(0), os.isatty(1), os.get_terminal_size().columns)\nsys.stderr.write('same stream')";
    let script = json!({ "turn": [
        run(&["python3", "-c", flood]),
        call("palyra.process.run", json!({ "argv": ["python3", "-c", terminal], "terminal_columns": 97 })),
        call("palyra.process.run", json!({ "argv": ["cat"], "stdin": "first\nsecond\n" })),
        { "text": "done" },
    ] });
    let (daemon, events) = played("go", place.path(), script).await;
    let [flood, terminal, fed] = results(&events).try_into().unwrap();
    assert!(flood.truncated && flood.artifact.is_some());
    for part in
        ["--- stdout (1288890 bytes)", "\n0\n1\n2\n", "bytes left out", "\n199999\n", "the end", "palyra.artifact.read"]
    {
        assert!(flood.content.contains(part), "{part}");
    }
    assert!(
        terminal.content.contains("True True 97") && terminal.content.contains("same stream"),
        "{}",
        terminal.content
    );
    assert!(!terminal.content.contains("--- stderr"), "{}", terminal.content);
    assert!(fed.content.contains("first\nsecond\n"), "{}", fed.content);
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_that_failed_or_lacks_a_tier_is_made_again() {
    let place = workspace();
    let script = json!({ "turn": [run(&["true"]), { "text": "done" }] });
    let mut daemon = daemon(script).await;
    let kept = daemon.state_root().join("processes/sandbox-proof.json");
    let began = Instant::now();
    while !kept.exists() {
        assert!(began.elapsed() < PATIENCE, "the sandbox was never proven: {}", daemon.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    daemon.stop().await.unwrap();
    let mut proof: Value = serde_json::from_slice(&std::fs::read(&kept).unwrap()).unwrap();
    let mut without_tier_c = proof.clone();
    for tier in proof["proofs"].as_array_mut().unwrap() {
        assert!(tier["checks"].as_array().unwrap().len() > 45);
        tier["checks"][0]["held"] = json!(false);
    }
    without_tier_c["proofs"].as_array_mut().unwrap().retain(|proof| proof["tier"] == "B");
    assert_eq!(without_tier_c["proofs"].as_array().unwrap().len(), 1, "{without_tier_c}");
    for stale in [proof, without_tier_c] {
        std::fs::write(&kept, stale.to_string()).unwrap();
        daemon.restart().await.unwrap();
        let began = Instant::now();
        let is_repaired = || {
            let repaired: Option<Value> =
                std::fs::read(&kept).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            repaired.is_some_and(|repaired| {
                let proofs = repaired["proofs"].as_array().unwrap();
                let held =
                    |proof: &Value| proof["checks"].as_array().unwrap().iter().all(|check| check["held"] == true);
                proofs.len() == 2 && proofs.iter().all(held)
            })
        };
        while !is_repaired() {
            assert!(began.elapsed() < PATIENCE, "the proof was not made again: {}", daemon.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let run = daemon.client().create_run(&task("go", place.path())).await.unwrap();
    let (_, events) = finish(&daemon.client(), run.run_id).await;
    let [result] = results(&events).try_into().unwrap();
    assert!(result.ok, "{result:?}");
    daemon.finish().await.unwrap();
}

/// Nobody has decided yet when a call is checked, so nothing may be learned from the check about files outside of the workspace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whether_a_file_of_the_host_is_there_is_not_learned() {
    let (place, outside) = (workspace(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("there"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), place.path().join("out")).unwrap();
    let path = |name: &str| outside.path().join(name).display().to_string();
    let within = |cwd: &str| call("palyra.process.run", json!({ "argv": ["true"], "cwd": cwd }));
    let script = json!({ "turn": [
        run(&[&path("there")]),
        run(&[&path("absent")]),
        within("out/there"),
        within("out/absent"),
        within(&path("there")),
        within(&path("absent")),
        { "text": "done" },
    ] });
    let (daemon, events) = played("go", place.path(), script).await;
    let questions = names(&events).iter().filter(|name| *name == "question").count();
    // The programs would be contained; a working directory outside is refused before anyone is asked.
    assert_eq!(questions, 0, "{:?}", names(&events));
    let codes: Vec<_> = results(&events).into_iter().map(|result| result.error.map(|error| error.code)).collect();
    for pair in codes.chunks(2) {
        assert_eq!(pair[0], pair[1], "{codes:?}");
    }
    daemon.finish().await.unwrap();
}
