//! `SKILL.md` folders and the real daemon: a model reads the instructions, and a script beside them runs in the sandbox or not at all.

use std::os::unix::fs::PermissionsExt as _;

use palyra_common::{RunLifecyclePhase, RunStreamBody, SandboxTier};
use palyra_testkit::{DaemonOptions, Model};
use serde_json::json;
use tempfile::TempDir;

use super::{call, finish, names, task, workspace};

/// A directory with one folder of instructions; gives the script in it too.
fn folder() -> (TempDir, String) {
    let directory = TempDir::with_prefix("palyra-instructions-").unwrap();
    let scripts = directory.path().join("greet/scripts");
    std::fs::create_dir_all(&scripts).unwrap();
    let text = "---\nname: greet\ndescription: How people are greeted here.\n---\nRun the script that lies beside this text.\n";
    std::fs::write(directory.path().join("greet/SKILL.md"), text).unwrap();
    let script = scripts.join("hello.sh");
    std::fs::write(
        &script,
        "#!/bin/sh\necho \"a greeting\"\ntouch \"$(dirname \"$0\")/written\" || echo \"read only\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.display().to_string();
    (directory, script)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instructions_are_read_on_demand_and_their_script_runs_in_tier_c_once_somebody_wants_it() {
    let (directory, script) = folder();
    let turns = json!({ "turn": [
        call("palyra.skill.read", json!({ "name": "greet" })),
        call("palyra.process.run", json!({ "argv": [script.clone()] })),
        { "text": "done" },
    ] });
    let daemon = DaemonOptions::new(Model::Scripted(turns))
        .env("PALYRA_SKILLS_DIRECTORIES", directory.path())
        .start()
        .await
        .unwrap();
    // The command is the person's own word in the first task, and that of the instructions in the second; contained, it is nobody's business which.
    for (prompt, is_asked) in [(format!("run {script}"), false), ("greet somebody".to_owned(), false)] {
        let place = workspace();
        let run = daemon.client().create_run(&task(&prompt, place.path())).await.unwrap();
        let (detail, events) = finish(&daemon.client(), run.run_id).await;
        assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
        assert_eq!(names(&events).contains(&"question".to_owned()), is_asked, "{prompt}: {:?}", names(&events));
        let results: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.body {
                RunStreamBody::ToolResult(result) => Some(result.content.clone()),
                _ => None,
            })
            .collect();
        let [read, ran] = results.try_into().unwrap();
        assert!(read.contains("Run the script") && read.contains(&script), "{read}");
        assert!(ran.contains("a greeting") && ran.contains("read only"), "{ran}");
        let in_tier_c = events.iter().any(|event| {
            matches!(&event.body, RunStreamBody::ToolAttestation(attested) if attested.tier == Some(SandboxTier::C))
        });
        assert!(in_tier_c, "{:?}", names(&events));
    }
    assert!(!directory.path().join("greet/scripts/written").exists());
    daemon.finish().await.unwrap();
}
