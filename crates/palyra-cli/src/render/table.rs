//! Tables: aligned columns as narrow as their content, fitted to the terminal.
//!
//! A table that is too wide gives up width in its last columns, whose text breaks between words. Where even that leaves too little, each
//! row becomes a block of `HEADING  value` lines.

use super::text::wrapped;
use crate::console::{self, one_line};

/// Blanks between two columns.
const GAP: usize = 2;
/// Fewest characters that a column with broken lines has; less is hard to read.
const NARROWEST: usize = 12;

/// Lines of a table: a heading and rows, no trailing blanks, no wider than the terminal if results go to one.
pub(crate) fn lines<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    fitted(heading, rows, console::columns())
}

fn fitted<const N: usize>(heading: [&str; N], rows: &[[String; N]], columns: Option<usize>) -> Vec<String> {
    // Cells hold what servers, models and files say: none of it may drive the terminal or look like a row of its own.
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(|cell| one_line(cell))).collect();
    let rows = rows.as_slice();
    let (mut widths, mut words) = (heading.map(width), heading.map(width));
    for row in rows {
        for ((column, word), cell) in widths.iter_mut().zip(&mut words).zip(row) {
            *column = (*column).max(width(cell));
            *word = (*word).max(longest_word(cell));
        }
    }
    let Some(columns) = columns else { return aligned(heading, rows, widths) };
    match shrunk(widths, words, heading.map(width), columns) {
        Some(widths) => aligned(heading, rows, widths),
        None => blocks(heading, rows, columns),
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(width).max().unwrap_or_default()
}

/// The widths with so much taken from the last two columns that all fit, if that leaves each of them enough. They hold prose; an id or
/// a time that breaks cannot be copied. The last may even break a long word, such as a path.
fn shrunk<const N: usize>(
    mut widths: [usize; N],
    words: [usize; N],
    headings: [usize; N],
    columns: usize,
) -> Option<[usize; N]> {
    let whole = widths.iter().sum::<usize>() + GAP * N.saturating_sub(1);
    let mut excess = whole.saturating_sub(columns);
    let last = N.saturating_sub(1);
    for (at, ((column, word), heading)) in widths.iter_mut().zip(words).zip(headings).enumerate().rev().take(2) {
        let least = if at == last { heading.max(NARROWEST) } else { word };
        let given = excess.min(column.saturating_sub(least));
        *column -= given;
        excess -= given;
    }
    (excess == 0).then_some(widths)
}

fn aligned<const N: usize>(heading: [&str; N], rows: &[[String; N]], widths: [usize; N]) -> Vec<String> {
    let rows = rows.iter().map(|row| row.each_ref().map(String::as_str));
    std::iter::once(heading).chain(rows).flat_map(|cells| row_lines(cells, widths)).collect()
}

/// One row, on as many lines as its longest cell needs.
fn row_lines<const N: usize>(cells: [&str; N], widths: [usize; N]) -> Vec<String> {
    let cells: Vec<Vec<String>> = cells.iter().zip(widths).map(|(cell, width)| wrapped(cell, width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    (0..height)
        .map(|at| {
            let padded = cells.iter().zip(widths).map(|(lines, width)| {
                let text = lines.get(at).map_or("", String::as_str);
                format!("{text:width$}")
            });
            padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
        })
        .collect()
}

/// Each row as a block of lines, with an empty line between two blocks.
fn blocks<const N: usize>(heading: [&str; N], rows: &[[String; N]], columns: usize) -> Vec<String> {
    let label = heading.iter().map(|name| width(name)).max().unwrap_or_default();
    let beside = columns.saturating_sub(label + GAP);
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        for (name, cell) in heading.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
            if longest_word(cell) <= beside {
                for (at, text) in wrapped(cell, beside).into_iter().enumerate() {
                    let name = if at == 0 { *name } else { "" };
                    lines.push(format!("{name:label$}  {text}").trim_end().to_owned());
                }
            } else {
                // An id that fits below its heading is better than one that is cut beside it.
                lines.push((*name).to_owned());
                lines.extend(wrapped(cell, columns.saturating_sub(GAP)).into_iter().map(|text| format!("  {text}")));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> [[String; 3]; 1] {
        [["01KM4Q9C2JTT8N7V0B3XWZ5R6D".to_owned(), "failed".to_owned(), "replace the old name everywhere".to_owned()]]
    }

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [["ä".to_owned(), "one".to_owned()], ["long cell".to_owned(), String::new()]];
        assert_eq!(fitted(["A", "B"], &rows, None), ["A          B", "ä          one", "long cell"]);
    }

    #[test]
    fn a_table_that_is_too_wide_breaks_its_last_column_between_words() {
        assert_eq!(
            fitted(["RUN", "OUTCOME", "TASK"], &rows(), Some(56)),
            [
                "RUN                         OUTCOME  TASK",
                "01KM4Q9C2JTT8N7V0B3XWZ5R6D  failed   replace the old",
                "                                     name everywhere",
            ]
        );
    }

    #[test]
    fn a_cell_can_neither_drive_the_terminal_nor_pass_for_a_row() {
        let hostile = "gpt\u{1b}[2J\u{9b}31m\r\u{202e}\u{061c}x\n01KM4Q9C  completed";
        for columns in [None, Some(30), Some(100)] {
            let lines = fitted(["MODEL", "STATE"], &[[hostile.to_owned(), "ok".to_owned()]], columns);
            assert!(lines.iter().flat_map(|line| line.chars()).all(|c| !c.is_control()), "{lines:?}");
            assert!(!lines.concat().contains(['\u{202e}', '\u{061c}']), "{lines:?}");
        }
        assert_eq!(fitted(["MODEL", "STATE"], &[[hostile.to_owned(), "ok".to_owned()]], None).len(), 2);
    }

    #[test]
    fn a_narrow_terminal_gets_blocks() {
        let two = [rows()[0].clone(), rows()[0].clone()];
        let lines = fitted(["RUN", "OUTCOME", "TASK"], &two, Some(40));
        assert_eq!(
            lines[..4],
            ["RUN      01KM4Q9C2JTT8N7V0B3XWZ5R6D", "OUTCOME  failed", "TASK     replace the old name everywhere", "",]
        );
        assert_eq!(lines.len(), 7);
        let narrow = fitted(["RUN", "LAST ACTIVE (UTC)", "TASK"], &rows(), Some(40));
        assert_eq!(narrow[..2], ["RUN", "  01KM4Q9C2JTT8N7V0B3XWZ5R6D"]);
        for columns in 20..100 {
            let lines = fitted(["RUN", "LAST ACTIVE (UTC)", "TASK"], &rows(), Some(columns));
            assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:?}");
        }
    }
}
