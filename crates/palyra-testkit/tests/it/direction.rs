//! Dependencies point one way. Crates stand in groups, ordered from left to right; a crate depends only on groups to its
//! left. Crates of one group do not know each other: they meet in a group to their right.
//!
//! The rule is checked over `cargo metadata`, so an edge that nobody noticed in review is still named here.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// The groups from left to right. A crate that is in none of them fails the test until somebody places it.
const GROUPS: [(&str, &[&str]); 6] = [
    ("common", &["palyra-common", "palyra-plugins"]),
    ("deciders", &["palyra-budget", "palyra-flow", "palyra-policy", "palyra-policy-prove", "palyra-safety"]),
    (
        "mechanisms",
        &[
            "palyra-journal",
            "palyra-secrets",
            "palyra-vault",
            "palyra-identity",
            "palyra-models",
            "palyra-memory",
            "palyra-tools",
            "palyra-mcp",
            "palyra-egress",
            "palyra-sandbox",
            "palyra-proto",
            "palyra-plugins-build",
            "palyra-plugins-runtime",
            "palyra-plugins-sdk",
            "palyra-skills",
            "palyra-a2ui",
            "palyra-telemetry",
        ],
    ),
    ("engine", &["palyra-agent", "palyra-control-plane", "palyra-executors"]),
    ("surfaces", &["palyra-connectors", "palyra-client", "palyra-cli"]),
    ("daemon", &["palyra-daemon"]),
];

/// Crates for tests and measurements: they may depend on anything, product code may not depend on them.
const SUPPORT: [&str; 3] = ["palyra-testkit", "palyra-figures", "palyra-attack-search"];

/// Edges inside one group that are meant: the command line is the first user of the typed client, proofs about policies need the
/// policies but are too heavy to stand beside them, and information flow normalises text as the scans do.
const WITHIN_GROUP: [(&str, &str); 3] =
    [("palyra-cli", "palyra-client"), ("palyra-flow", "palyra-safety"), ("palyra-policy-prove", "palyra-policy")];

/// The same for tests alone: what the guest compilers make is run in the real runtime, and neither knows the other.
const WITHIN_GROUP_IN_TESTS: [(&str, &str); 1] = [("palyra-plugins-build", "palyra-plugins-runtime")];

/// What a dependency is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Product,
    TestsOnly,
}

/// One crate and the workspace crates it depends on.
type Edges = BTreeMap<String, Vec<(String, Use)>>;

fn group_of(name: &str) -> Option<usize> {
    GROUPS.iter().position(|(_, members)| members.contains(&name))
}

/// Every edge that points the wrong way and every crate without a place, each as a sentence.
fn complaints(edges: &Edges) -> Vec<String> {
    let mut found = Vec::new();
    for (from, dependencies) in edges {
        if SUPPORT.contains(&from.as_str()) {
            continue;
        }
        let Some(from_group) = group_of(from) else {
            found.push(format!("{from} stands in no group: place it in GROUPS of this test and in ARCHITECTURE.md"));
            continue;
        };
        for (to, purpose) in dependencies {
            if SUPPORT.contains(&to.as_str()) {
                if *purpose == Use::Product {
                    found.push(format!("{from} → {to}: support crates are for dev-dependencies only"));
                }
                continue;
            }
            let Some(to_group) = group_of(to) else {
                continue; // Named above, as a crate of its own.
            };
            let edge = (from.as_str(), to.as_str());
            let meant =
                WITHIN_GROUP.contains(&edge) || (*purpose == Use::TestsOnly && WITHIN_GROUP_IN_TESTS.contains(&edge));
            if to_group >= from_group && !meant {
                let (from_name, to_name) = (GROUPS[from_group].0, GROUPS[to_group].0);
                found.push(format!("{from} ({from_name}) → {to} ({to_name}): only groups further left are allowed"));
            }
        }
    }
    found
}

/// The edges between crates of this workspace, as cargo sees them.
fn workspace_edges() -> Edges {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    let names: Vec<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("a package lists dependencies");
            let inside = dependencies.iter().filter_map(|dependency| {
                let name = dependency["name"].as_str().unwrap();
                let purpose = if dependency["kind"] == "dev" { Use::TestsOnly } else { Use::Product };
                names.contains(&name).then(|| (name.to_owned(), purpose))
            });
            (package["name"].as_str().unwrap().to_owned(), inside.collect())
        })
        .collect()
}

#[test]
fn every_edge_of_the_workspace_points_left() {
    let edges = workspace_edges();
    let count: usize = edges.values().map(Vec::len).sum();
    assert!(edges.len() > 1 && count > 0, "found {} crates and {count} edges: nothing was checked", edges.len());
    let found = complaints(&edges);
    assert!(found.is_empty(), "wrong dependencies:\n  {}", found.join("\n  "));
}

#[test]
fn wrong_edges_are_named() {
    use Use::{Product, TestsOnly};
    let table = [
        ("palyra-journal", "palyra-common", Product, None),
        ("palyra-agent", "palyra-journal", Product, None),
        ("palyra-cli", "palyra-journal", Product, None),
        ("palyra-cli", "palyra-client", Product, None),
        ("palyra-daemon", "palyra-agent", Product, None),
        ("palyra-journal", "palyra-testkit", TestsOnly, None),
        ("palyra-testkit", "palyra-daemon", Product, None),
        ("palyra-journal", "palyra-figures", Product, Some("support crates")),
        ("palyra-tools", "palyra-journal", Product, Some("palyra-tools (mechanisms) → palyra-journal (mechanisms)")),
        ("palyra-tools", "palyra-journal", TestsOnly, Some("palyra-tools (mechanisms)")),
        ("palyra-plugins-build", "palyra-plugins-runtime", TestsOnly, None),
        ("palyra-plugins-build", "palyra-plugins-runtime", Product, Some("palyra-plugins-build (mechanisms)")),
        ("palyra-client", "palyra-cli", Product, Some("palyra-client (surfaces)")),
        ("palyra-common", "palyra-agent", Product, Some("palyra-common (common) → palyra-agent (engine)")),
        ("palyra-agent", "palyra-daemon", Product, Some("palyra-agent (engine) → palyra-daemon (daemon)")),
        ("palyra-new", "palyra-common", Product, Some("palyra-new stands in no group")),
    ];
    for (from, to, purpose, expected) in table {
        let edges = Edges::from([(from.to_owned(), vec![(to.to_owned(), purpose)])]);
        let found = complaints(&edges);
        match expected {
            None => assert!(found.is_empty(), "{found:?}"),
            Some(words) => assert!(found.len() == 1 && found[0].contains(words), "{from} → {to}: {found:?}"),
        }
    }
}

/// What lets checks be taken away is for the search for attacks alone: whatever asks for it would carry it into what is shipped.
#[test]
fn checks_can_be_removed_for_the_search_alone() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let asks = |package: &&Value| {
        let dependencies = package["dependencies"].as_array().expect("a package lists dependencies");
        dependencies.iter().any(|dependency| {
            let features = dependency["features"].as_array().expect("a dependency lists features");
            dependency["name"].as_str().is_some_and(|name| name.starts_with("palyra-"))
                && features.iter().any(|feature| feature == "testing")
        })
    };
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    let asking: Vec<&Value> = packages.iter().filter(asks).map(|package| &package["name"]).collect();
    assert_eq!(asking, ["palyra-attack-search"]);
    let built: Vec<&str> = metadata["workspace_default_members"]
        .as_array()
        .expect("metadata lists what is built")
        .iter()
        .filter_map(Value::as_str)
        .filter(|id| id.contains("palyra-attack-search"))
        .collect();
    assert!(built.is_empty(), "{built:?}");
}
