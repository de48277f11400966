//! The generated reference page.

use palyra_tools::{Registry, tool_reference};

#[test]
fn every_tool_and_argument_is_on_the_page() {
    let page = tool_reference(&[]).unwrap();
    for tool in Registry::builtin().unwrap().declarations() {
        let section = page.split("\n## ").find(|section| section.starts_with(&format!("`{}`", tool.name))).unwrap();
        for name in tool.input_schema["properties"].as_object().unwrap().keys() {
            assert!(section.contains(&format!("| `{name}` |")), "{}: {name}", tool.name);
        }
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells.len(), 5, "{row}");
            assert!(cells.iter().all(|cell| !cell.is_empty()), "{row}");
        }
    }
    assert!(page.contains("\n context line\n-old line\n+new line\n"), "the notation keeps its spaces:\n{page}");
}
