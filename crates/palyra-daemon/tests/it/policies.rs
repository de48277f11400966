//! Policies and the daemon: nothing starts without them, and a bad file changes nothing but says so.

use std::time::{Duration, Instant};

use palyra_client::api::RunDetail;
use palyra_common::{HealthStatus, RunLifecyclePhase};

use crate::support::{Daemon, Place};

const FORBID: &str = r#"@id("no_writes")
@reason_person("this installation only reads")
@reason_model("writing is not permitted here")
forbid (principal, action == Action::"tool.write", resource);"#;

const WRITE: &str = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
[[turn]]
echo = "last_result"
"#;

fn place() -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let directory = place.path().join("policies");
    std::fs::create_dir(&directory).unwrap();
    let name = directory.display().to_string();
    (place.with("PALYRA_POLICY_DIRECTORY", &name).with_script(WRITE), directory)
}

/// What a daemon says that does not start.
fn stderr(place: &Place) -> String {
    String::from_utf8_lossy(&place.refused().stderr).into_owned()
}

/// Follows a run to its end and gives what became of it.
async fn over(daemon: &Daemon) -> RunDetail {
    let run = daemon.create("write it").await;
    daemon.follow(run.run_id, 1).await;
    daemon.client.run(run.run_id).await.unwrap()
}

async fn until(daemon: &Daemon, wanted: HealthStatus) -> String {
    let began = Instant::now();
    loop {
        let health = daemon.client.health().await.unwrap();
        let policy = health.components.into_iter().find(|component| component.component == "policy").unwrap();
        if policy.status == wanted {
            return policy.summary;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "the policies stay {}: {}", policy.status, policy.summary);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_operators_policy_holds_at_once_and_a_bad_file_keeps_the_old_ones() {
    let (place, directory) = place();
    let daemon = place.start().await;
    assert_eq!(over(&daemon).await.run.phase, RunLifecyclePhase::Completed);
    assert!(place.workspace().join("a.txt").exists());
    std::fs::remove_file(place.workspace().join("a.txt")).unwrap();

    std::fs::write(directory.join("own.cedar"), FORBID).unwrap();
    let began = Instant::now();
    loop {
        let answer = over(&daemon).await.answer.unwrap_or_default();
        if answer.contains("writing is not permitted here") {
            break;
        }
        std::fs::remove_file(place.workspace().join("a.txt")).unwrap();
        assert!(began.elapsed() < Duration::from_secs(30), "the policy is not in force: {answer}");
    }

    std::fs::write(directory.join("own.cedar"), "permit (principal, action, resource").unwrap();
    let complaint = until(&daemon, HealthStatus::Degraded).await;
    assert!(complaint.contains("own.cedar") && complaint.contains("the previous ones still apply"), "{complaint}");
    let answer = over(&daemon).await.answer.unwrap_or_default();
    assert!(answer.contains("writing is not permitted here"), "the old set stays in force: {answer}");
    assert!(!place.workspace().join("a.txt").exists());

    std::fs::remove_file(directory.join("own.cedar")).unwrap();
    until(&daemon, HealthStatus::Ok).await;
}

#[test]
fn nothing_starts_with_policies_that_do_not_load() {
    for (name, text) in [
        ("own.cedar", "permit (principal, action, resource".to_owned()),
        ("own.cedar", r#"permit (principal == Ghost::"x", action, resource);"#.to_owned()),
        ("own.cedar", "// long\n".repeat(2_000_000)),
    ] {
        let (place, directory) = place();
        std::fs::write(directory.join(name), text).unwrap();
        let refused = stderr(&place);
        assert!(refused.contains("[policy_"), "{refused}");
        assert_eq!(refused.lines().filter(|line| line.starts_with("error:")).count(), 1, "{refused}");
    }
    let (place, directory) = place();
    std::fs::remove_dir(&directory).unwrap();
    assert!(stderr(&place).contains("[policy_"), "a directory that is not there is not an empty one");
}
