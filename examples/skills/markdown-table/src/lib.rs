//! Rows as a Markdown table.

use palyra_plugins_sdk::{Failure, tool_plugin};
use serde::{Deserialize, Serialize};

mod tools;

tool_plugin! {
    tools::TOOLS;
    "format" => format_table,
}

#[derive(Deserialize)]
struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    #[serde(default)]
    align: Vec<Align>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
enum Align {
    #[default]
    Left,
    Right,
    Centre,
}

#[derive(Serialize)]
struct Markdown {
    markdown: String,
}

fn format_table(table: Table) -> Result<Markdown, Failure> {
    let columns = table.headings.len();
    if let Some(row) = table.rows.iter().position(|row| row.len() != columns) {
        return Err(Failure::invalid_input(format!("row {} does not have {columns} cells", row + 1)));
    }
    let headings: Vec<String> = table.headings.iter().map(|cell| escape(cell)).collect();
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().map(|row| &row[column]).chain([&headings[column]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
        })
        .collect();
    let align = |column: usize| table.align.get(column).copied().unwrap_or_default();
    let mut markdown = line(&headings, &widths, align);
    markdown.push_str(&rule(&widths, align));
    for row in &rows {
        markdown.push_str(&line(row, &widths, align));
    }
    Ok(Markdown { markdown })
}

/// A cell on one line, in which no bar ends it.
fn escape(cell: &str) -> String {
    cell.replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn line(cells: &[String], widths: &[usize], align: impl Fn(usize) -> Align) -> String {
    let mut text = String::from("|");
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let room = width - cell.chars().count();
        let (before, after) = match align(column) {
            Align::Left => (0, room),
            Align::Right => (room, 0),
            Align::Centre => (room / 2, room - room / 2),
        };
        text.push_str(&format!(" {}{cell}{} |", " ".repeat(before), " ".repeat(after)));
    }
    text.push('\n');
    text
}

fn rule(widths: &[usize], align: impl Fn(usize) -> Align) -> String {
    let mut text = String::from("|");
    for (column, width) in widths.iter().enumerate() {
        let dashes = match align(column) {
            Align::Left => "-".repeat(*width),
            Align::Right => format!("{}:", "-".repeat(width - 1)),
            Align::Centre => format!(":{}:", "-".repeat(width - 2)),
        };
        text.push_str(&format!(" {dashes} |"));
    }
    text.push('\n');
    text
}
