//! What reaches the model: references, project files, summaries.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_agent::context::Item;
use palyra_common::{RunLifecyclePhase, RunStreamBody, ToStableError as _};
use palyra_models::{
    ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, ProviderInfo, Purpose, StopReason,
};

use crate::support::{Setup, tool_result};

#[tokio::test]
async fn referenced_and_project_files_are_part_of_the_run() {
    let bench = Setup::script("[[turn]]\necho = \"user\"").start().await;
    bench.endorsed("PALYRA.md", "Always be brief.").await;
    std::fs::write(bench.file("notes.md"), "remember the milk").unwrap();
    let (run, _) = bench.run("what is in @file:notes.md?").await;
    assert!(run.answer.unwrap().contains("remember the milk"));
    let spec = bench.engine.replay(run.run_id).await.unwrap().machine.spec().clone();
    assert_eq!(spec.project[0].text, "Always be brief.");
    assert_eq!(spec.attachments[0].source, "notes.md");
}

#[tokio::test]
async fn a_reference_that_cannot_be_read_refuses_the_run() {
    let bench = Setup::script("[[turn]]\ntext = \"ok\"").start().await;
    for (prompt, code) in [
        ("see @file:gone.md", "file_reference_invalid"),
        ("see @file:../../etc/passwd", "file_reference_invalid"),
        ("  ", "prompt_empty"),
    ] {
        let error = bench.engine.create_run(bench.task(prompt)).await.unwrap_err();
        assert_eq!(error.to_stable().code, code);
    }
    assert_eq!(bench.journal.head().count, 0, "nothing was recorded");
}

#[tokio::test]
async fn a_small_window_is_kept_by_summaries_that_are_on_the_tape() {
    let mut setup = Setup::script("");
    setup.provider = Some(Arc::new(ReadsOneFilePerTurn));
    let bench = setup.start().await;
    for n in 1..=FILES {
        std::fs::write(bench.file(&format!("f{n}.txt")), format!("{n} {}", "lorem ipsum ".repeat(70))).unwrap();
    }
    let (run, events) = bench.run("read them all").await;
    assert_eq!(run.phase, RunLifecyclePhase::Completed, "{:?}", run.detail);
    let compacted: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            RunStreamBody::JournalEvent(event) if event.kind == "context.compacted" => Some(event.payload.to_string()),
            _ => None,
        })
        .collect();
    assert!(compacted.len() >= 2, "a summary is summarised in its turn: {compacted:?}");
    assert!(compacted[0].contains("files were read") && compacted[0].contains("\"method\":\"model\""));
    let replayed = bench.engine.replay(run.run_id).await.unwrap();
    assert!(matches!(&replayed.machine.items()[0], Item::User { text, .. } if text == "read them all"));
}

#[tokio::test]
async fn what_belongs_to_palyra_is_not_there_for_tools() {
    let script = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.read"
arguments = { path = ".palyra/key" }
[[turn.call]]
tool = "palyra.fs.read"
arguments = { path = "innocent" }
[[turn.call]]
tool = "palyra.fs.list"
arguments = { hidden = true, depth = 5 }
[[turn.call]]
tool = "palyra.fs.search"
arguments = { pattern = "topsecret", hidden = true }
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = ".palyra/palyra.toml", content = "version = 1" }
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "door/palyra.toml", content = "version = 1" }
[[turn]]
text = "done"
"#;
    let bench = Setup::script(script).start().await;
    std::fs::create_dir(bench.file(".palyra")).unwrap();
    std::fs::write(bench.file(".palyra/key"), "topsecret").unwrap();
    std::fs::write(bench.file("open.txt"), "not topsecret").unwrap();
    std::os::unix::fs::symlink(".palyra/key", bench.file("innocent")).unwrap();
    std::os::unix::fs::symlink(".palyra", bench.file("door")).unwrap();
    let (_, events) = bench.run("look").await;
    for call in ["t1c1", "t1c2", "t1c5", "t1c6"] {
        assert_eq!(tool_result(&events, call).error.unwrap().code, "path_protected", "{call}");
    }
    let found = tool_result(&events, "t1c4").content;
    assert!(found.contains("open.txt") && !found.contains("key"), "the search finds what it may: {found}");
    let listed = tool_result(&events, "t1c3").content;
    assert!(listed.contains("innocent") && !listed.lines().any(|line| line.trim().starts_with(".palyra")), "{listed}");
    assert!(!bench.file(".palyra/palyra.toml").exists());
    let inside = palyra_agent::NewRun { workspace: bench.file(".palyra").display().to_string(), ..bench.task("x") };
    assert_eq!(bench.engine.create_run(inside).await.unwrap_err().to_stable().code, "workspace_not_found");
}

const FILES: u32 = 14;

/// Reads file after file by the number of the turn, whatever the context still shows; summarises when asked to.
struct ReadsOneFilePerTurn;

#[async_trait]
impl ModelProvider for ReadsOneFilePerTurn {
    fn name(&self) -> &str {
        "reader"
    }

    fn describe(&self) -> ProviderInfo {
        ProviderInfo { name: "reader".into(), model: "reader".into(), context_tokens: 1_500, is_language_model: false }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let size: usize = request.messages.iter().map(|message| message.content.len()).sum();
        assert!(size < 1_500 * 4, "the window was overrun");
        let first = match request.purpose {
            Purpose::Auxiliary(_) => ModelEvent::TextDelta("files were read".into()),
            Purpose::Turn if request.turn > FILES => ModelEvent::TextDelta("all read".into()),
            Purpose::Turn => ModelEvent::ToolCallDelta {
                index: Some(0),
                id: Some("c".into()),
                name: Some("palyra.fs.read".into()),
                arguments: format!("{{\"path\":\"f{}.txt\"}}", request.turn),
            },
        };
        let events = [first, ModelEvent::Finished(StopReason::EndTurn)];
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }
}
