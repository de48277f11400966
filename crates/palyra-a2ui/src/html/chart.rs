//! Charts: SVG out of numbers that we format, with the same numbers as a table for those who do not see it.

use std::fmt::Write as _;

use super::writer::Html;
use crate::component::{Chart, ChartKind};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
/// One for each series; see `MAX_SERIES`.
const COLOURS: [&str; 8] = ["#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#0891b2", "#65a30d", "#dc2626"];

pub(super) fn write(html: &mut Html, chart: &Chart, attributes: &[(&'static str, &str)]) {
    html.open("figure", attributes);
    if let Some(title) = &chart.title {
        html.literal("<figcaption>").text(title).literal("</figcaption>");
    }
    html.literal("<svg viewBox=\"0 0 640 220\" role=\"img\" aria-hidden=\"true\">");
    draw(html, chart);
    html.literal("</svg><p class=\"note\">");
    for (index, series) in chart.series.iter().enumerate() {
        html.literal("<svg class=\"key\" viewBox=\"0 0 10 10\">")
            .open("rect", &[("width", "10"), ("height", "10"), ("fill", colour(index))])
            .literal("</rect></svg> ")
            .text(&series.name)
            .literal(" ");
    }
    html.literal("</p><details><summary>Numbers</summary><div class=\"wide\"><table><thead><tr><th></th>");
    for series in &chart.series {
        html.literal("<th scope=\"col\">").text(&series.name).literal("</th>");
    }
    html.literal("</tr></thead><tbody>");
    for (index, label) in chart.labels.iter().enumerate() {
        html.literal("<tr><th scope=\"row\">").text(label).literal("</th>");
        for series in &chart.series {
            let number = series.values.get(index).map(ToString::to_string).unwrap_or_default();
            html.literal("<td class=\"number\">").text(&number).literal("</td>");
        }
        html.literal("</tr>");
    }
    html.literal("</tbody></table></div></details></figure>");
}

fn colour(index: usize) -> &'static str {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or("#000")
}

/// The picture. Zero is always on it, so that bars are as long as what they stand for.
fn draw(html: &mut Html, chart: &Chart) {
    let all = || chart.series.iter().flat_map(|series| series.values.iter().copied());
    let (low, high) = (all().fold(0.0_f64, f64::min), all().fold(0.0_f64, f64::max));
    let span = if high - low > 0.0 { high - low } else { 1.0 };
    let y = |value: f64| HEIGHT - 10.0 - (value - low) / span * (HEIGHT - 20.0);
    let step = WIDTH / chart.labels.len().max(1) as f64;
    let zero = coordinate(y(0.0));
    html.open("line", &[("x1", "0"), ("x2", "640"), ("y1", &zero), ("y2", &zero), ("stroke", "#9ca3af")]).close("line");
    for (index, series) in chart.series.iter().enumerate() {
        match chart.kind {
            ChartKind::Bar => {
                let width = step * 0.8 / chart.series.len().max(1) as f64;
                for (at, value) in series.values.iter().enumerate() {
                    let x = at as f64 * step + step * 0.1 + index as f64 * width;
                    let (top, bottom) = (y(value.max(0.0)), y(value.min(0.0)));
                    html.open(
                        "rect",
                        &[
                            ("x", &coordinate(x)),
                            ("y", &coordinate(top)),
                            ("width", &coordinate(width)),
                            ("height", &coordinate(bottom - top)),
                            ("fill", colour(index)),
                        ],
                    )
                    .close("rect");
                }
            }
            ChartKind::Line => {
                let points = series.values.iter().enumerate().fold(String::new(), |mut points, (at, value)| {
                    let _ = write!(points, "{},{} ", coordinate((at as f64 + 0.5) * step), coordinate(y(*value)));
                    points
                });
                let drawn =
                    [("points", points.trim_end()), ("fill", "none"), ("stroke", colour(index)), ("stroke-width", "2")];
                html.open("polyline", &drawn).close("polyline");
            }
        }
    }
}

fn coordinate(value: f64) -> String {
    format!("{value:.2}")
}
