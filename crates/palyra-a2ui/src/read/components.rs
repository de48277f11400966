//! One function for each type of component.

use serde_json::Value;

use super::{Reader, Record, bounded, number};
use crate::component::{
    Approval, Cell, Chart, ChartKind, Code, Component, Diff, Form, Image, List, ListStyle, Markdown, Progress, Series,
    Table, Text, TextStyle,
};
use crate::limits::{
    MAX_CELLS, MAX_COLUMNS, MAX_COMPONENTS, MAX_DEPTH, MAX_FIELDS, MAX_IMAGE, MAX_LINE, MAX_POINTS, MAX_ROWS,
    MAX_SERIES, MAX_TEXT,
};
use crate::safe::is_picture;

impl Reader {
    /// Reads one component and everything below it; `depth` counts from 1.
    pub(crate) fn component(&mut self, value: &Value, path: &str, depth: usize) -> Option<Component> {
        if depth > MAX_DEPTH {
            self.problem(path, "too_deep", format!("is nested deeper than {MAX_DEPTH} levels"));
            return None;
        }
        self.components += 1;
        if self.components > MAX_COMPONENTS {
            if self.components == MAX_COMPONENTS + 1 {
                self.problem(path, "too_many", format!("exceeds the limit of {MAX_COMPONENTS} components"));
            }
            return None;
        }
        let mut record = Record::open(value, path, self)?;
        let kind = record.line("type", self)?;
        let component = match kind.as_str() {
            "text" => self.text(&mut record).map(Component::Text),
            "markdown" => self.markdown(&mut record).map(Component::Markdown),
            "list" => self.list(&mut record, depth).map(Component::List),
            "table" => self.table(&mut record).map(Component::Table),
            "form" => self.form(&mut record).map(Component::Form),
            "chart" => self.chart(&mut record).map(Component::Chart),
            "image" => self.image(&mut record).map(Component::Image),
            "progress" => self.progress(&mut record).map(Component::Progress),
            "code" => self.code(&mut record).map(Component::Code),
            "diff" => self.diff(&mut record).map(Component::Diff),
            "approval" => self.approval(&mut record).map(Component::Approval),
            _ => {
                let known = "text, markdown, list, table, form, chart, image, progress, code, diff, approval";
                self.problem(&record.at("type"), "unknown_type", format!("is not one of {known}"));
                return None;
            }
        };
        record.close(self);
        component
    }

    fn text(&mut self, record: &mut Record<'_>) -> Option<Text> {
        let id = record.optional_id(self);
        let words = [
            ("body", TextStyle::Body),
            ("heading", TextStyle::Heading),
            ("note", TextStyle::Note),
            ("error", TextStyle::Error),
        ];
        let style = record.choice("style", &words, self);
        Some(Text { id, text: record.text("text", MAX_TEXT, self)?, style: style? })
    }

    fn markdown(&mut self, record: &mut Record<'_>) -> Option<Markdown> {
        let id = record.optional_id(self);
        Some(Markdown { id, text: record.text("text", MAX_TEXT, self)? })
    }

    fn list(&mut self, record: &mut Record<'_>, depth: usize) -> Option<List> {
        let id = record.optional_id(self);
        let words = [("plain", ListStyle::Plain), ("bullets", ListStyle::Bullets), ("numbers", ListStyle::Numbers)];
        let style = record.choice("style", &words, self);
        let path = record.at("items");
        let given = record.list("items", MAX_COMPONENTS, self)?;
        let mut items = Vec::with_capacity(given.len());
        for (index, item) in given.iter().enumerate() {
            items.extend(self.component(item, &format!("{path}/{index}"), depth + 1));
        }
        Some(List { id, style: style?, items })
    }

    fn table(&mut self, record: &mut Record<'_>) -> Option<Table> {
        let id = record.optional_id(self);
        let caption = record.optional_line("caption", self);
        let columns = self.lines(record, "columns", MAX_COLUMNS)?;
        let path = record.at("rows");
        let given = record.list("rows", MAX_ROWS, self)?;
        let mut rows = Vec::with_capacity(given.len());
        for (index, row) in given.iter().enumerate() {
            let path = format!("{path}/{index}");
            let Value::Array(cells) = row else {
                self.problem(&path, "not_a_list", "is not a list");
                continue;
            };
            if cells.len() != columns.len() {
                let message = format!("has {} cells, but there are {} columns", cells.len(), columns.len());
                self.problem(&path, "wrong_width", message);
                continue;
            }
            self.cells += cells.len();
            if self.cells > MAX_CELLS {
                self.problem(&path, "too_many", format!("exceeds the limit of {MAX_CELLS} cells in all tables"));
                return None;
            }
            rows.push(
                cells.iter().enumerate().filter_map(|(at, cell)| self.cell(cell, &format!("{path}/{at}"))).collect(),
            );
        }
        Some(Table { id, caption, columns, rows })
    }

    fn cell(&mut self, value: &Value, path: &str) -> Option<Cell> {
        match value {
            Value::Null => Some(Cell::Empty),
            Value::Bool(flag) => Some(Cell::Text(if *flag { "yes" } else { "no" }.to_owned())),
            Value::Number(number) => Some(Cell::Number(number.to_string())),
            Value::String(_) => bounded(value, path, MAX_TEXT, self).map(Cell::Text),
            Value::Array(_) | Value::Object(_) => {
                self.problem(path, "not_a_cell", "must be a string, number, boolean or null");
                None
            }
        }
    }

    fn form(&mut self, record: &mut Record<'_>) -> Option<Form> {
        let id = record.id(self);
        let title = record.optional_line("title", self);
        let submit = record.optional_line("submit", self);
        let path = record.at("fields");
        let given = record.list("fields", MAX_FIELDS, self)?;
        let mut fields: Vec<crate::component::Field> = Vec::with_capacity(given.len());
        for (index, field) in given.iter().enumerate() {
            let path = format!("{path}/{index}");
            let Some(field) = self.field(field, &path) else { continue };
            if fields.iter().any(|known| known.name == field.name) {
                let message = format!("is `{}`, which is used twice", field.name);
                self.problem(&format!("{path}/name"), "duplicate_name", message);
            }
            fields.push(field);
        }
        if given.is_empty() {
            self.problem(&path, "empty", "has no entries");
        }
        Some(Form { id: id?, title, submit, fields })
    }

    fn chart(&mut self, record: &mut Record<'_>) -> Option<Chart> {
        let id = record.optional_id(self);
        let kind = record.choice("kind", &[("bar", ChartKind::Bar), ("line", ChartKind::Line)], self);
        let title = record.optional_line("title", self);
        let labels = self.lines(record, "labels", MAX_POINTS)?;
        let path = record.at("series");
        let given = record.list("series", MAX_SERIES, self)?;
        let mut series = Vec::with_capacity(given.len());
        for (index, one) in given.iter().enumerate() {
            series.extend(self.series(one, &format!("{path}/{index}"), labels.len()));
        }
        Some(Chart { id, kind: kind?, title, labels, series })
    }

    fn series(&mut self, value: &Value, path: &str, points: usize) -> Option<Series> {
        let mut record = Record::open(value, path, self)?;
        let name = record.line("name", self);
        let at = record.at("values");
        let given = record.list("values", MAX_POINTS, self);
        record.close(self);
        let given = given?;
        if given.len() != points {
            let message = format!("has {} numbers, but there are {points} labels", given.len());
            self.problem(&at, "wrong_width", message);
            return None;
        }
        let values: Option<Vec<f64>> =
            given.iter().enumerate().map(|(index, value)| number(value, &format!("{at}/{index}"), self)).collect();
        Some(Series { name: name?, values: values? })
    }

    fn image(&mut self, record: &mut Record<'_>) -> Option<Image> {
        let id = record.optional_id(self);
        let alt = record.line("alt", self);
        let src = record.text("src", MAX_IMAGE, self)?;
        if !is_picture(&src) {
            let message =
                "must be an inline image: `data:image/png;base64,…`, jpeg, gif or webp; remote images are not loaded";
            self.problem(&record.at("src"), "not_a_picture", message);
            return None;
        }
        Some(Image { id, src, alt: alt? })
    }

    fn progress(&mut self, record: &mut Record<'_>) -> Option<Progress> {
        let id = record.optional_id(self);
        let label = record.optional_line("label", self);
        let value = record.optional_number("value", self);
        if value.is_some_and(|value| !(0.0..=1.0).contains(&value)) {
            self.problem(&record.at("value"), "out_of_range", "is not between 0 and 1");
            return None;
        }
        Some(Progress { id, label, value })
    }

    fn code(&mut self, record: &mut Record<'_>) -> Option<Code> {
        let id = record.optional_id(self);
        let language = record.optional_line("language", self);
        Some(Code { id, text: record.text("text", MAX_TEXT, self)?, language })
    }

    fn diff(&mut self, record: &mut Record<'_>) -> Option<Diff> {
        let id = record.optional_id(self);
        Some(Diff { id, text: record.text("text", MAX_TEXT, self)? })
    }

    fn approval(&mut self, record: &mut Record<'_>) -> Option<Approval> {
        let id = record.id(self);
        let approval_id = record.optional_text("approval_id", MAX_LINE, self);
        if approval_id.as_ref().is_some_and(|id| id.parse::<palyra_common::ApprovalId>().is_err()) {
            self.problem(&record.at("approval_id"), "not_an_id", "is not the id of an approval");
            return None;
        }
        Some(Approval { id: id?, approval_id })
    }

    /// A list of single lines.
    fn lines(&mut self, record: &mut Record<'_>, name: &'static str, most: usize) -> Option<Vec<String>> {
        let path = record.at(name);
        let given = record.list(name, most, self)?;
        if given.is_empty() {
            self.problem(&path, "empty", "has no entries");
            return None;
        }
        given
            .iter()
            .enumerate()
            .map(|(index, line)| bounded(line, &format!("{path}/{index}"), MAX_LINE, self))
            .collect()
    }
}
