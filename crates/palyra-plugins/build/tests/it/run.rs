//! What was built does what its cases say, in the real runtime, under the limits of its manifest.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::Timestamp;
use palyra_plugins_build::{Case, GuestTools, Language, NewSkill, Reuse, SkillCases, SkillKind, new_skill};
use palyra_plugins_runtime::{
    CacheKey, CallOptions, ExecutionMode, Failed, HookCall, Plugin, PluginError, PluginRuntime, PluginUsage,
    RuntimeOptions, ToolCall,
};

use crate::host::{CaseHost, asked_for};
use crate::support::{available, build, copy, examples};

/// The fixed moment of these calls.
const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// A runtime that keeps what it compiled beside the guest compilers: an interpreter takes a minute. It is also larger than the default limit on modules.
fn runtime() -> PluginRuntime {
    let folder = GuestTools::of_user().unwrap().root().join("compiled");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
    let key = CacheKey::load_or_create(&folder.join("key")).unwrap();
    let options = RuntimeOptions {
        max_module_bytes: 24 << 20,
        compile_deadline: Duration::from_secs(600),
        ..RuntimeOptions::cached(folder.join("code"), key)
    };
    PluginRuntime::new(options).unwrap()
}

/// Builds the skill in a folder and runs all its cases.
async fn run_cases(folder: &Path) {
    let built = build(folder, Reuse::Cached);
    let runtime = runtime();
    let plugin = runtime.prepare(&built.modules[0].bytes).unwrap();
    describes_itself(&runtime, &plugin, folder).await;
    for file in SkillCases::read_all(folder).unwrap() {
        for case in &file.cases {
            let host = Arc::new(CaseHost::new(case));
            let (outcome, usage) = call(&runtime, &plugin, folder, case, host.clone()).await;
            let requests = host.requests().unwrap_or_else(|surprise| panic!("{}: {surprise}", case.name));
            let outcome = outcome.as_deref().map_err(String::as_str);
            case.check(outcome, requests, &host.stored()).unwrap_or_else(|failure| panic!("{}: {failure}", case.name));
            eprintln!("{}: {} fuel, {} KiB, {:?}", case.name, usage.fuel, usage.memory_bytes / 1024, usage.wall);
        }
    }
}

fn options(folder: &Path, host: Arc<CaseHost>) -> CallOptions {
    let (grants, limits) = asked_for(folder);
    let mode = ExecutionMode::Deterministic { now: NOW, seed: 7 };
    CallOptions { limits, grants, services: host, mode, ..CallOptions::default() }
}

async fn call(
    runtime: &PluginRuntime,
    plugin: &Plugin,
    folder: &Path,
    case: &Case,
    host: Arc<CaseHost>,
) -> (Result<String, String>, PluginUsage) {
    let options = options(folder, host);
    let words = |failed: Failed| match failed.error {
        PluginError::InvalidInput(why) | PluginError::GuestFailed(why) => (Err(why), *failed.usage),
        error => (Err(error.to_string()), *failed.usage),
    };
    match (&case.tool, &case.hook) {
        (Some(tool), _) => {
            let call = ToolCall { tool: tool.clone(), input: case.input_text(), options };
            runtime.call_tool(plugin, call).await.map_or_else(words, |done| (Ok(done.value), done.usage))
        }
        (None, Some(hook)) => {
            let call = HookCall {
                event: hook.event.parse().unwrap(),
                at: NOW,
                run_id: hook.run_id.clone(),
                payload: hook.payload.to_string(),
                options,
            };
            runtime.call_hook(plugin, call).await.map_or_else(words, |done| {
                let answer = serde_json::json!({
                    "verdict": done.value.verdict.as_str(),
                    "reason": done.value.reason,
                    "text": done.value.text,
                });
                (Ok(answer.to_string()), done.usage)
            })
        }
        (None, None) => panic!("{} is neither", case.name),
    }
}

/// What the plugin says about its tools is what the manifest says.
async fn describes_itself(runtime: &PluginRuntime, plugin: &Plugin, folder: &Path) {
    if !plugin.exports_tool() || Language::of(folder).unwrap() == Language::Wat {
        return;
    }
    let manifest = palyra_plugins_build::SkillSummary::read(folder).unwrap();
    let (_, limits) = asked_for(folder);
    let options = CallOptions { limits, ..CallOptions::default() };
    let described = runtime.describe(plugin, options).await.unwrap().value;
    assert_eq!(described.len(), manifest.tools.len());
    for (says, tool) in described.iter().zip(&manifest.tools) {
        assert_eq!((&says.id, &says.name, &says.description), (&tool.id, &tool.name, &tool.description));
        assert_eq!((&says.input_schema, &says.output_schema), (&tool.input_schema, &tool.output_schema));
    }
}

async fn run_example(name: &str) {
    let source = examples().join(name);
    if !available(Language::of(&source).unwrap()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    copy(&source, folder.path());
    run_cases(folder.path()).await;
}

async fn run_template(language: Language) {
    run_template_of(language, SkillKind::Tool).await;
}

async fn run_template_of(language: Language, kind: SkillKind) {
    if !available(language) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    new_skill(&NewSkill { language, kind, skill_id: "acme.greeter", publisher: None }, folder.path()).unwrap();
    run_cases(folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn echo_http_passes_its_cases() {
    run_example("echo-http").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kv_notes_passes_its_cases() {
    run_example("kv-notes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_table_passes_its_cases() {
    run_example("markdown-table").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_guard_passes_its_cases() {
    run_example("policy-guard").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_webhook_passes_its_cases() {
    run_example("secret-webhook").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn word_count_passes_its_cases() {
    run_example("word-count").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_template_passes_its_cases() {
    run_template(Language::Rust).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_c_template_passes_its_cases() {
    run_template(Language::C).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_template_passes_its_cases() {
    run_template(Language::JavaScript).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_template_passes_its_cases() {
    run_template(Language::Python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_template_passes_its_cases() {
    run_template(Language::Wat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_hook_passes_its_cases() {
    run_template_of(Language::Rust, SkillKind::Hook).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_c_hook_passes_its_cases() {
    run_template_of(Language::C, SkillKind::Hook).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_hook_passes_its_cases() {
    run_template_of(Language::JavaScript, SkillKind::Hook).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_hook_passes_its_cases() {
    run_template_of(Language::Python, SkillKind::Hook).await;
}
