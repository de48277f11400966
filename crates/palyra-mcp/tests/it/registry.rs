//! The directory of servers: what is kept, what is noticed, what is refused.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use palyra_common::{Consequence, Environment, SinkKind};
use palyra_mcp::{ClassificationFile, ClassificationSource, McpError, McpRegistry, Reload, ServerName};

use crate::place::{Place, echo_works, options, played};

#[tokio::test]
async fn a_classification_counts_once_it_is_reviewed() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let source = |set: &palyra_mcp::ToolSet| set.offered.iter().map(|tool| tool.source).collect::<Vec<_>>();
    assert!(source(&server.tools().await.unwrap()).iter().all(|source| *source == ClassificationSource::Cautious));

    let tools = server.list_tools().await.unwrap();
    place.registry.propose_classification(&played(), &tools, &ClassificationFile::default()).unwrap();
    assert!(source(&server.tools().await.unwrap()).iter().all(|source| *source == ClassificationSource::Cautious));

    let path = place.registry.accept_classification(&played()).unwrap();
    let set = server.tools().await.unwrap();
    assert!(source(&set).iter().all(|source| *source == ClassificationSource::Reviewed));
    let echo = set.offered.iter().find(|tool| tool.name == "mcp.played.echo").unwrap();
    assert_eq!(echo.classification.consequence, Consequence::Contained);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    // A file that cannot be understood takes all tools away, pinned or not.
    std::fs::write(&path, "reviewed = true\nopen = \"sesame\"\n").unwrap();
    assert_eq!(place.registry.reload_if_changed().unwrap(), Reload::Changed);
    assert_eq!(server.tools().await.unwrap_err().code(), "mcp_classification_invalid");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(place.registry.directory().join("played.pins.json"), "{}").unwrap();
    place.registry.reload_if_changed().unwrap();
    assert_eq!(server.tools().await.unwrap_err().code(), "mcp_pins_invalid");
}

#[tokio::test]
async fn an_entry_of_another_tool_does_not_count() {
    let place = Place::new(options());
    let server = place.pinned("2025").await;
    let tools = server.list_tools().await.unwrap();
    let path = place.registry.propose_classification(&played(), &tools, &ClassificationFile::default()).unwrap();
    place.registry.accept_classification(&played()).unwrap();
    let echo = tools.iter().find(|tool| tool.name == "echo").unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let other = tools.iter().find(|tool| tool.name == "wait").unwrap().digest().to_string();
    std::fs::write(&path, text.replace(&echo.digest().to_string(), &other)).unwrap();
    place.registry.reload_if_changed().unwrap();
    let set = server.tools().await.unwrap();
    let echo = set.offered.iter().find(|tool| tool.description.name == "echo").unwrap();
    assert_eq!(echo.source, ClassificationSource::Cautious);
    assert_eq!(echo.classification.sinks.get("text"), Some(&SinkKind::Destination));
}

#[tokio::test]
async fn another_process_sees_changes_and_keeps_what_stayed_the_same() {
    let place = Place::new(options());
    let directory = place.registry.directory().to_owned();
    let daemon = McpRegistry::open(&directory, Environment::of_process(), options()).unwrap();
    assert!(daemon.servers().is_empty());
    assert_eq!(daemon.reload_if_changed().unwrap(), Reload::Unchanged);

    let server = place.pinned("2025").await;
    assert_eq!(daemon.reload_if_changed().unwrap(), Reload::Changed);
    assert_eq!(daemon.reload_if_changed().unwrap(), Reload::Unchanged);
    let theirs = daemon.server(&played()).unwrap();
    echo_works(&theirs).await;

    let other = ServerName::new("other").unwrap();
    place.registry.add(&other, server.config()).unwrap();
    daemon.reload_if_changed().unwrap();
    assert!(Arc::ptr_eq(&theirs, &daemon.server(&played()).unwrap()));
    assert!(theirs.status().connected);

    // A list that cannot be understood is said so, and what was there stays.
    let servers = directory.join("servers.toml");
    let good = std::fs::read_to_string(&servers).unwrap();
    std::fs::write(&servers, "version = 1\nnonsense = true\n").unwrap();
    assert!(matches!(daemon.reload_if_changed(), Err(McpError::ConfigInvalid { .. })));
    assert_eq!(daemon.servers().len(), 2);
    assert!(McpRegistry::open(&directory, Environment::default(), options()).is_err());
    std::fs::write(&servers, good).unwrap();

    place.registry.reload_if_changed().unwrap();
    place.registry.remove(&played()).unwrap();
    daemon.reload_if_changed().unwrap();
    assert!(daemon.server(&played()).is_err());
    assert_eq!(theirs.tools().await.unwrap_err().code(), "mcp_server_not_found");
    assert!(!directory.join("played.pins.json").exists());
}

#[tokio::test]
async fn a_new_server_of_an_old_name_inherits_nothing() {
    let place = Place::new(options());
    place.pinned("2025").await;
    let pins = std::fs::read(place.registry.directory().join("played.pins.json")).unwrap();
    place.registry.remove(&played()).unwrap();
    std::fs::write(place.registry.directory().join("played.pins.json"), pins).unwrap();
    let again = place.add("2025");
    assert!(again.tools().await.unwrap().offered.is_empty());
}
