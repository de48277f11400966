//! Tables with aligned columns, as narrow as their content.

/// Lines of a table: a heading and rows, cells separated by two spaces, no trailing blanks.
pub(crate) fn lines<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let mut widths = heading.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    std::iter::once(line(heading)).chain(rows.iter().map(|row| line(row.each_ref().map(String::as_str)))).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [["ä".to_owned(), "one".to_owned()], ["long cell".to_owned(), String::new()]];
        assert_eq!(super::lines(["A", "B"], &rows), ["A          B", "ä          one", "long cell"]);
    }
}
