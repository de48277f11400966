//! Fields of forms.

use serde_json::Value;

use super::{Reader, Record};
use crate::component::{Choice, Field, FieldKind};
use crate::limits::{MAX_OPTIONS, MAX_VALUE};
use crate::values::is_address;

impl Reader {
    /// Reads one field.
    pub(super) fn field(&mut self, value: &Value, path: &str) -> Option<Field> {
        let mut record = Record::open(value, path, self)?;
        let kind = record.line("type", self)?;
        let name = record.name("name", self);
        let label = record.line("label", self);
        let help = record.optional_line("help", self);
        let required = record.flag("required", self);
        let kind = match kind.as_str() {
            "text" => self.text_field(&mut record),
            "email" => self.email_field(&mut record),
            "number" => self.number_field(&mut record),
            "select" => self.select_field(&mut record),
            "checkbox" => record.flag("value", self).map(|value| FieldKind::Checkbox { value }),
            _ => {
                self.problem(&record.at("type"), "unknown_type", "is not one of text, email, number, select, checkbox");
                return None;
            }
        };
        record.close(self);
        Some(Field { name: name?, label: label?, help, required: required?, kind: kind? })
    }

    fn text_field(&mut self, record: &mut Record<'_>) -> Option<FieldKind> {
        let max_length = match record.optional_number("max_length", self) {
            None => None,
            // A whole number from 1 to some thousands.
            Some(most) if most.fract() == 0.0 && (1.0..=MAX_VALUE as f64).contains(&most) => Some(most as usize),
            Some(_) => {
                let message = format!("is not a whole number from 1 to {MAX_VALUE}");
                self.problem(&record.at("max_length"), "out_of_range", message);
                return None;
            }
        };
        let value = record.optional_text("value", max_length.unwrap_or(MAX_VALUE), self);
        Some(FieldKind::Text { value, max_length })
    }

    fn email_field(&mut self, record: &mut Record<'_>) -> Option<FieldKind> {
        let value = record.optional_line("value", self);
        if value.as_deref().is_some_and(|value| !is_address(value)) {
            self.problem(&record.at("value"), "not_an_address", "is not an email address");
            return None;
        }
        Some(FieldKind::Email { value })
    }

    fn number_field(&mut self, record: &mut Record<'_>) -> Option<FieldKind> {
        let (min, max) = (record.optional_number("min", self), record.optional_number("max", self));
        let value = record.optional_number("value", self);
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            self.problem(&record.at("min"), "out_of_range", "is above `max`");
            return None;
        }
        let outside = |value: f64| min.is_some_and(|min| value < min) || max.is_some_and(|max| value > max);
        if value.is_some_and(outside) {
            self.problem(&record.at("value"), "out_of_range", "is outside `min` and `max`");
            return None;
        }
        Some(FieldKind::Number { value, min, max })
    }

    fn select_field(&mut self, record: &mut Record<'_>) -> Option<FieldKind> {
        let value = record.optional_line("value", self);
        let path = record.at("options");
        let given = record.list("options", MAX_OPTIONS, self)?;
        let mut options: Vec<Choice> = Vec::with_capacity(given.len());
        for (index, option) in given.iter().enumerate() {
            let path = format!("{path}/{index}");
            let Some(option) = self.option(option, &path) else { continue };
            if options.iter().any(|known| known.value == option.value) {
                self.problem(&format!("{path}/value"), "duplicate_name", "is used twice");
            }
            options.push(option);
        }
        if given.is_empty() {
            self.problem(&path, "empty", "has no entries");
        }
        if value.as_ref().is_some_and(|value| !options.iter().any(|option| option.value == *value)) {
            self.problem(&record.at("value"), "not_a_choice", "is not one of the options");
            return None;
        }
        Some(FieldKind::Select { value, options })
    }

    fn option(&mut self, value: &Value, path: &str) -> Option<Choice> {
        let mut record = Record::open(value, path, self)?;
        let (value, label) = (record.name("value", self), record.line("label", self));
        record.close(self);
        Some(Choice { value: value?, label: label? })
    }
}
