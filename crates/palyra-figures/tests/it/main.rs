//! Reports from the first figure to the page, on a real directory and with the real program.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use palyra_common::ToStableError;
use palyra_figures::{Aim, FiguresError, Report, Summary, read_reports, render_page};
use serde_json::{Value, json};

fn sample(name: &str) -> Report {
    let mut report = Report::new(name);
    report
        .figure("journal.append64", 0.71, "ratio", Some("raw batched inserts"), Aim::AtLeast(0.6), 15, Some(0.082))
        .figure("journal.append1", 1.9, "ratio", Some("one fdatasync"), Aim::AtMost(1.5), 200, Some(0.11))
        .figure("journal.rate64", 12_345.6, "records/s", None, Aim::None, 15, None)
        .note("archived segments were left out");
    report
}

fn finish(report: Report, directory: &Path) -> (Result<Summary, FiguresError>, String) {
    let mut out = Vec::new();
    let result = report.finish_in(directory, &mut out);
    (result, String::from_utf8(out).unwrap())
}

#[test]
fn a_report_is_written_in_the_agreed_form() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("not/there/yet");
    let (summary, _) = finish(sample("journal"), &directory);
    let summary = summary.unwrap();
    assert_eq!((summary.met, summary.missed, summary.not_asked), (1, 1, 1));

    let stored: Value = serde_json::from_str(&fs::read_to_string(directory.join("journal.json")).unwrap()).unwrap();
    assert_eq!(stored["name"], "journal");
    assert!(stored["at"].as_str().unwrap().ends_with('Z'));
    assert!(stored["machine"]["cores"].as_u64().unwrap() >= 1);
    assert_eq!(
        stored["figures"][0],
        json!({
            "id": "journal.append64", "value": 0.71, "unit": "ratio", "reference": "raw batched inserts",
            "aim": 0.6, "better": "higher", "n": 15, "spread": 0.082
        })
    );
    assert_eq!(
        stored["figures"][2],
        json!({
            "id": "journal.rate64", "value": 12_345.6, "unit": "records/s", "reference": null,
            "aim": null, "better": "higher", "n": 15
        })
    );
    let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["journal.json"], "nothing but the report stays behind");
}

#[test]
fn the_printed_table_lines_up_and_judges() {
    let place = tempfile::tempdir().unwrap();
    let (_, printed) = finish(sample("journal"), place.path());
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("journal on "), "{printed}");
    let column = lines[1].find("verdict").unwrap();
    let at_column = |line: &str| line.chars().skip(column).collect::<String>();
    assert!(at_column(lines[2]).starts_with("met "), "{printed}");
    assert!(at_column(lines[3]).starts_with("MISSED "), "{printed}");
    assert!(at_column(lines[4]).starts_with("- "), "{printed}");
    assert!(lines[2].contains("≥ 0.6000") && lines[3].contains("≤ 1.50"), "{printed}");
    assert!(printed.contains("note: archived segments were left out"));
    assert!(printed.contains("1 met, 1 missed, 1 without an aim"));
}

#[test]
fn an_unfit_report_leaves_no_file() {
    let with = |value: f64, ids: &[&str], name: &str| {
        let mut report = Report::new(name);
        for id in ids {
            report.figure(id, value, "ratio", None, Aim::AtLeast(1.0), 1, None);
        }
        report
    };
    let table = [
        (with(1.0, &["a"], "../escape"), "figures_invalid_name"),
        (with(1.0, &["a"], ""), "figures_invalid_name"),
        (with(1.0, &[], "empty"), "figures_empty"),
        (with(1.0, &["a", "b", "a"], "twice"), "figures_duplicate"),
        (with(f64::NAN, &["a"], "nan"), "figures_not_finite"),
        (with(f64::INFINITY, &["a"], "infinite"), "figures_not_finite"),
    ];
    let place = tempfile::tempdir().unwrap();
    for (report, code) in table {
        let (result, printed) = finish(report, place.path());
        assert_eq!(result.unwrap_err().to_stable().code, code);
        assert_eq!(printed, "");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn the_page_shows_every_report_in_order() {
    let place = tempfile::tempdir().unwrap();
    finish(sample("run"), place.path()).0.unwrap();
    finish(sample("journal"), place.path()).0.unwrap();
    let page = render_page(&read_reports(place.path()).unwrap());
    let journal = page.find("\n## journal\n").unwrap();
    assert!(journal < page.find("\n## run\n").unwrap());
    assert!(page.contains("| journal.append64 | 0.7100 | ratio | ≥ 0.6000 | met | 8 % | 15 | raw batched inserts |"));
    assert!(page.contains("- archived segments were left out"));
}

fn figures_page(reports: &Path, target: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_figures-page")).arg(target).env("PALYRA_FIGURES_DIR", reports).output().unwrap()
}

#[test]
fn the_program_writes_the_page_or_says_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    let (reports, target) = (place.path().join("figures"), place.path().join("figures.md"));

    let output = figures_page(&reports, &target);
    assert_eq!(output.status.code(), Some(8));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("[figures_no_reports]; run `make figures` first"), "{message}");

    finish(sample("journal"), &reports).0.unwrap();
    assert!(figures_page(&reports, &target).status.success());
    assert!(fs::read_to_string(&target).unwrap().starts_with("# Figures\n"));

    fs::write(reports.join("broken.json"), "{\"name\": 3}").unwrap();
    let output = figures_page(&reports, &target);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("broken.json"));
}
