//! What a compiler made is as repeatable as what was written by hand: the same seed and the same input give the same bytes, fuel and memory.

use std::path::Path;

use palyra_common::Timestamp;
use palyra_plugins_build::{Language, NewSkill, Reuse, SkillKind, new_skill};
use palyra_plugins_runtime::{CallOptions, ExecutionMode, Finished, Plugin, PluginRuntime, RuntimeOptions, ToolCall};

use crate::support::{available, build};

/// Random bytes, the clock and floating-point numbers become part of the answer, and the random bytes also decide how much work is done.
const C: &str = r#"
  palyra_bytes dice = palyra_random(32);
  double sum = 0.5;
  for (size_t i = 0; i < dice.length; i++) {
    for (unsigned char n = 0; n < (unsigned char)dice.data[i]; n++) sum = sum / 3 + n * 0.1;
    palyra_append_number(&greeting, (unsigned char)dice.data[i]);
    palyra_append(&greeting, " ");
  }
  palyra_append_number(&greeting, (long long)(sum * 1e12));
  palyra_append(&greeting, " ");
  palyra_append_number(&greeting, (long long)palyra_now());
  palyra_append(&greeting, name);
"#;

const RUST: &str = r#"
    let dice = palyra_plugins_sdk::random::bytes(32);
    let mut sum = 0.5_f64;
    for die in &dice {
        for n in 0..*die {
            sum = sum / 3.0 + f64::from(n) * 0.1;
        }
    }
    let mut counted = std::collections::HashMap::new();
    dice.iter().for_each(|die| *counted.entry(*die).or_insert(0) += 1);
    let now = palyra_plugins_sdk::clock::now();
    // The order of a map shows the seed of its hasher.
    let person = Person { name: format!("{} {dice:?} {sum:?} {counted:?} {now:?}", person.name) };
"#;

fn write_skill(language: Language, folder: &Path) {
    new_skill(&NewSkill { language, kind: SkillKind::Tool, skill_id: "acme.dice", publisher: None }, folder).unwrap();
    let (file, before, code) = match language {
        Language::C => ("src/skill.c", "  palyra_append(&greeting, \"Hello, \");", C),
        _ => ("src/lib.rs", "    Ok(Greeting", RUST),
    };
    let path = folder.join(file);
    let source = std::fs::read_to_string(&path).unwrap();
    assert!(source.contains(before));
    std::fs::write(&path, source.replace(before, &format!("{code}{before}"))).unwrap();
    if language == Language::C {
        let world = "package local:skill;\nworld skill {\n  import palyra:host/clock@1.0.0;\n  import palyra:host/random@1.0.0;\n  \
                     export palyra:plugin/tool@1.0.0;\n}\n";
        std::fs::write(folder.join("wit/world.wit"), world).unwrap();
    }
}

async fn call(runtime: &PluginRuntime, plugin: &Plugin, name: &str, mode: ExecutionMode) -> Finished<String> {
    let options = CallOptions { mode, ..CallOptions::default() };
    let input = serde_json::json!({ "name": name }).to_string();
    runtime.call_tool(plugin, ToolCall { tool: "greet".to_owned(), input, options }).await.unwrap()
}

async fn repeats(language: Language) {
    if !available(language) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_skill(language, folder.path());
    let wasm = build(folder.path(), Reuse::Cached).modules.remove(0).bytes;
    let mode = |seed| ExecutionMode::Deterministic { now: Timestamp(1_794_700_000_123), seed };
    let seen = |done: &Finished<String>| (done.value.clone(), done.usage.fuel, done.usage.memory_bytes);
    let mut all = Vec::new();
    // Two runtimes, so that nothing which one of them remembers can be the reason.
    for _ in 0..2 {
        let runtime = PluginRuntime::new(RuntimeOptions::default()).unwrap();
        let plugin = runtime.prepare(&wasm).unwrap();
        for _ in 0..3 {
            all.push(seen(&call(&runtime, &plugin, "Ada", mode(7)).await));
        }
        let other = seen(&call(&runtime, &plugin, "Ada", mode(8)).await);
        assert_ne!((&other.0, other.1), (&all[0].0, all[0].1), "another seed");
        assert_ne!(call(&runtime, &plugin, "Eve", mode(7)).await.value, all[0].0, "another input");
        let live = call(&runtime, &plugin, "Ada", ExecutionMode::Live).await.value;
        assert_ne!(live, call(&runtime, &plugin, "Ada", ExecutionMode::Live).await.value, "live");
    }
    assert!(all.iter().all(|one| *one == all[0]), "{all:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_in_c_repeats_itself() {
    repeats(Language::C).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_in_rust_repeats_itself() {
    repeats(Language::Rust).await;
}
