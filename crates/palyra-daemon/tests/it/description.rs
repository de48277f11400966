//! The description of the API against the daemon that serves it, driven by a program that knows nothing else.

use std::process::Command;

use crate::clients::python;
use crate::raw::unix;
use crate::support::Place;

/// The program may ask for anything, and it does; only the end would end the test.
const STAY: &str = r#"@id("stay")
@reason_person("this daemon stays up")
@reason_model("this daemon stays up")
forbid (principal, action == Action::"command.administer", resource) when { context.command == "daemon.stop" };"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_described_is_what_is_served() {
    let place = Place::new().with_script("[[turn]]\ntext = \"done\"");
    let directory = place.path().join("policies");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("stay.cedar"), STAY).unwrap();
    let place = place.with("PALYRA_POLICY_DIRECTORY", &directory.display().to_string());
    let daemon = place.start().await;
    let document = unix(&daemon, "GET /openapi.json", b"");
    assert_eq!(document.status, 200);
    let file = place.path().join("openapi.json");
    std::fs::write(&file, &document.body).unwrap();
    let interpreter = python("schemathesis");
    let run = |which: &[&str], checks: &str| {
        Command::new(&interpreter)
            .current_dir(place.path())
            .args(["-m", "schemathesis.cli", "run"])
            .arg(&file)
            .args(["--url", &format!("http://{}", daemon.address())])
            .args(["--header", &format!("Authorization: Bearer {}", daemon.token())])
            .args(["--checks", checks])
            .args(which)
            .args(["--phases", "coverage,fuzzing", "--max-examples", "6", "--workers", "1", "--request-timeout", "30"])
            .args(["--generation-deterministic", "--no-color"])
            .output()
            .unwrap()
    };
    let drive = |which: &[&str], checks: &str| {
        let mut output = tokio::task::block_in_place(|| run(which, checks));
        // Python 3.11 now and then fails to parse its own sources beside other threads; that says nothing about the daemon.
        if String::from_utf8_lossy(&output.stdout).contains("SystemError: AST constructor") {
            output = tokio::task::block_in_place(|| run(which, checks));
        }
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(report.contains("generated"), "nothing was asked: {report}");
    };
    let conforming = "status_code_conformance,content_type_conformance,response_schema_conformance";
    let every = format!("not_a_server_error,{conforming}");
    // Stopping would end the test, and a tail that is followed does not end. The other two are asked for by themselves below.
    let apart = ["daemon.stop", "journal.tail", "openai.embeddings", "approval.get"];
    let most: Vec<&str> = apart.iter().flat_map(|name| ["--exclude-operation-id", name]).collect();
    drive(&most, &every);
    // In one go with the rest, the program would remember questions that it asked and wait for somebody to answer them.
    drive(&["--include-operation-id", "approval.get"], &every);
    // Where no server is configured that has them, the answer is 501 by design; it has to be the one that is described.
    drive(&["--include-operation-id", "openai.embeddings"], conforming);
    assert_eq!(daemon.client.health().await.unwrap().pid, daemon.pid(), "the daemon is still the same");
}
