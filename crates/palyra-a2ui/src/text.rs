//! A document as lines of text, for terminals. Control characters and characters that turn the direction of text are never written.

use crate::component::{Cell, Component, FieldKind, ListStyle, TextStyle};
use crate::document::Document;
use crate::safe::shown;

/// The document as text.
#[must_use]
pub fn render(document: &Document) -> String {
    let mut lines = Lines::default();
    lines.component(document.root(), 0);
    lines.0
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    /// Writes a text at a depth, each line of it on its own.
    fn text(&mut self, depth: usize, before: &str, text: &str) {
        let mut before = before;
        for line in text.split('\n') {
            self.0.extend(std::iter::repeat_n("  ", depth));
            self.0.push_str(before);
            self.0.extend(line.chars().map(shown).map(|c| if c == '\t' { ' ' } else { c }));
            self.0.push('\n');
            // What follows stands below the text, not below its mark.
            before = if before.is_empty() { "" } else { "  " };
        }
    }

    fn component(&mut self, component: &Component, depth: usize) {
        match component {
            Component::Text(it) => {
                let before = match it.style {
                    TextStyle::Heading => "# ",
                    TextStyle::Error => "! ",
                    TextStyle::Body | TextStyle::Note => "",
                };
                self.text(depth, before, &it.text);
            }
            Component::Markdown(it) => self.text(depth, "", &it.text),
            Component::List(it) => {
                for (index, item) in it.items.iter().enumerate() {
                    match it.style {
                        ListStyle::Plain => self.component(item, depth),
                        ListStyle::Bullets => {
                            self.text(depth, "", "-");
                            self.component(item, depth + 1);
                        }
                        ListStyle::Numbers => {
                            self.text(depth, "", &format!("{}.", index + 1));
                            self.component(item, depth + 1);
                        }
                    }
                }
            }
            Component::Table(it) => {
                if let Some(caption) = &it.caption {
                    self.text(depth, "", caption);
                }
                self.text(depth, "", &one_line(&it.columns.join(" | ")));
                for row in &it.rows {
                    let cells: Vec<&str> = row
                        .iter()
                        .map(|cell| match cell {
                            Cell::Empty => "",
                            Cell::Text(text) | Cell::Number(text) => text,
                        })
                        .collect();
                    self.text(depth, "", &one_line(&cells.join(" | ")));
                }
            }
            Component::Form(it) => {
                let title = it.title.as_deref().map(|title| format!(" {title}")).unwrap_or_default();
                self.text(depth, "", &format!("[form {}]{title}", it.id));
                for field in &it.fields {
                    let what = match &field.kind {
                        FieldKind::Text { .. } => "text".to_owned(),
                        FieldKind::Email { .. } => "email".to_owned(),
                        FieldKind::Number { .. } => "number".to_owned(),
                        FieldKind::Checkbox { .. } => "yes or no".to_owned(),
                        FieldKind::Select { options, .. } => {
                            options.iter().map(|option| option.value.as_str()).collect::<Vec<_>>().join(", ")
                        }
                    };
                    let mark = if field.required { "*" } else { "" };
                    self.text(depth + 1, "", &one_line(&format!("{}{mark}: {} ({what})", field.name, field.label)));
                }
            }
            Component::Chart(it) => {
                if let Some(title) = &it.title {
                    self.text(depth, "", title);
                }
                for series in &it.series {
                    let points: Vec<String> =
                        it.labels.iter().zip(&series.values).map(|(label, value)| format!("{label} {value}")).collect();
                    self.text(depth, "", &one_line(&format!("{}: {}", series.name, points.join(", "))));
                }
            }
            Component::Image(it) => self.text(depth, "", &one_line(&format!("[image: {}]", it.alt))),
            Component::Progress(it) => {
                let label = it.label.as_deref().unwrap_or("progress");
                let done = it.value.map_or_else(|| "in progress".to_owned(), |value| format!("{:.0} %", value * 100.0));
                self.text(depth, "", &one_line(&format!("{label}: {done}")));
            }
            Component::Code(it) => self.text(depth + 2, "", &it.text),
            Component::Diff(it) => self.text(depth, "", &it.text),
            Component::Approval(it) => {
                self.text(depth, "", &format!("[questions {}] see: palyra approvals list", it.id));
            }
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}
