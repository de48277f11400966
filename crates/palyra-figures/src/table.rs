//! Figures as people read them: numbers with three or four digits that matter, columns that line up.

use crate::report::Figure;

/// Column titles of every table of figures.
pub(crate) const TITLES: [&str; 8] = ["id", "value", "unit", "aim", "verdict", "spread", "n", "reference"];

/// The cells of one figure, in the order of [`TITLES`].
pub(crate) fn cells(figure: &Figure) -> [String; 8] {
    let aim = match (figure.aim, figure.aim_sign()) {
        (Some(bound), sign) => format!("{sign} {}", number(bound)),
        (None, _) => "-".to_owned(),
    };
    [
        figure.id.clone(),
        number(figure.value),
        figure.unit.clone(),
        aim,
        figure.verdict().to_string(),
        figure.spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.0} %", spread * 100.0)),
        figure.n.to_string(),
        figure.reference.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

/// The table with aligned columns, one line per figure, under a line of titles.
pub(crate) fn aligned(figures: &[Figure]) -> String {
    let mut rows: Vec<[String; 8]> = vec![TITLES.map(str::to_owned)];
    rows.extend(figures.iter().map(cells));
    let mut widths = [0_usize; 8];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let line: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A number with thousands separators when large and about three significant digits when small.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        return grouped(&format!("{value:.0}"));
    }
    match size {
        size if size >= 1000.0 => grouped(&format!("{value:.0}")),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let count = digits.chars().count();
    let mut text = sign.to_owned();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (count - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_keep_the_digits_that_matter() {
        let table = [
            (0.0, "0"),
            (200.0, "200"),
            (1_234_567.8, "1,234,568"),
            (-1000.0, "-1,000"),
            (123.456, "123.5"),
            (1.234, "1.23"),
            (0.61239, "0.6124"),
            (0.000_012, "1.20e-5"),
        ];
        for (value, text) in table {
            assert_eq!(number(value), text);
        }
    }
}
