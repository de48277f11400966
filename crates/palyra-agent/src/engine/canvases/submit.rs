//! What a person entered into a form becomes their next message to the session.
//!
//! The message names the form, its fields and options by their plain names, which cannot be sentences. A text that stood in a field as the document
//! proposed it is not the person's: on a canvas that strangers may have had a hand in, it is named and not repeated. Of an option whose value is not the text that the
//! person saw the position is told, whoever drew the canvas: they never saw that value, so it is not what they said. So whoever wrote the form cannot have a person say, with the trust that people have, what the form had put into their
//! mouth.

use palyra_a2ui::{CheckedValues, Document, check_values};
use palyra_common::{CanvasId, InputMode, Integrity, RequestId};
use serde_json::{Map, Value};

use super::super::Engine;
use super::super::sessions::{SessionInput, Submitted};
use crate::canvas::{CanvasActed, kind};
use crate::error::AgentError;
use crate::projections::CanvasRow;
use crate::started_with::StartedWith;

/// What a person did on a canvas.
#[derive(Debug, Clone)]
pub struct CanvasSubmission {
    /// The form.
    pub component_id: String,
    /// What was entered.
    pub values: Map<String, Value>,
    /// The version that the person saw; refused if it is another by now.
    pub expected_version: Option<u64>,
    /// Who acted.
    pub by: String,
    /// With what credential.
    pub given_with: StartedWith,
    /// Where.
    pub via: String,
    /// A name of this submission; the same again is the same one.
    pub once: Option<String>,
}

impl Engine {
    /// Hands what was entered to the canvas's session.
    ///
    /// # Errors
    /// When there is no such canvas or form, the canvas is closed or at another version, or the values do not fit.
    pub async fn submit_to_canvas(&self, id: CanvasId, submission: CanvasSubmission) -> Result<Submitted, AgentError> {
        let (row, document) = self.canvas(id).await?;
        let once = submission.once.unwrap_or_else(|| RequestId::generate().to_string());
        let input_id = format!("canvas-{id}-{once}");
        let component_id = submission.component_id;
        let document = Document::parse(&document)?;
        let form = document.form(&component_id);
        let form = form
            .ok_or_else(|| AgentError::CanvasComponentNotFound { canvas_id: id, component_id: component_id.clone() })?;
        let checked = check_values(form, &submission.values)?;
        let text = message(&row, &component_id, &checked);
        let session_id = row.session_id;
        let mut input = SessionInput {
            text,
            mode: InputMode::FollowUp,
            workspace: None,
            by: submission.by.clone(),
            given_with: submission.given_with,
            input_id: Some(input_id.clone()),
            agent: None,
            from: None,
            beside: Vec::new(),
        };
        if let Some(known) = self.known_input(session_id, &input).await? {
            return Ok(known);
        }
        if row.closed_at.is_some() {
            return Err(AgentError::CanvasClosed(id));
        }
        if let Some(expected) = submission.expected_version.filter(|expected| *expected != row.version) {
            return Err(palyra_a2ui::A2uiError::Version { expected, actual: row.version }.into());
        }
        let acted = CanvasActed {
            canvas_id: id,
            session_id,
            version: row.version,
            component_id,
            values: checked.values,
            unchanged: checked.unchanged,
            by: submission.by,
            via: submission.via,
            input_id,
        };
        input.beside.push(self.shared.canvas_record(kind::ACTION, session_id, &acted)?);
        self.submit_input(session_id, input).await
    }
}

/// The person's message.
fn message(row: &CanvasRow, component_id: &str, checked: &CheckedValues) -> String {
    let foreign = row.label.integrity == Integrity::Untrusted;
    let mut values = checked.values.clone();
    let mut left = Vec::new();
    values.retain(|name, _| !checked.relabelled.contains_key(name));
    if foreign {
        values.retain(|name, _| !checked.unchanged.contains(name));
        left.clone_from(&checked.unchanged);
    }
    let options = checked.relabelled.iter().map(|(name, position)| format!("{name}: option {position}"));
    let chosen: Vec<String> = options.collect();
    let mut text =
        format!("I submitted the form `{component_id}` of canvas {} with:\n{}", row.canvas_id, Value::Object(values));
    if !left.is_empty() {
        text.push_str(&format!("\nLeft as the form proposed: {}", left.join(", ")));
    }
    if !chosen.is_empty() {
        text.push_str(&format!("\nChosen from the form's own list: {}", chosen.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use palyra_common::{Confidentiality, Label, RunId, SessionId, Timestamp};
    use serde_json::json;

    use super::*;

    fn row(integrity: Integrity) -> CanvasRow {
        CanvasRow {
            canvas_id: CanvasId::from_u128(1),
            session_id: SessionId::from_u128(2),
            run_id: RunId::from_u128(3),
            title: "anything".into(),
            version: 1,
            label: Label::new(integrity, Confidentiality::Private),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            closed_at: None,
        }
    }

    #[test]
    fn what_a_stranger_proposed_is_not_what_the_person_says() {
        let document = Document::parse(&json!({"root": {"type": "form", "id": "pay", "fields": [
            {"type": "text", "name": "account", "label": "Account", "value": "attacker-1"},
            {"type": "text", "name": "note", "label": "Note", "value": "old"},
        ]}}))
        .unwrap();
        let given = json!({"account": "attacker-1", "note": "mine"});
        let checked = check_values(document.form("pay").unwrap(), given.as_object().unwrap()).unwrap();
        let foreign = message(&row(Integrity::Untrusted), "pay", &checked);
        assert!(!foreign.contains("attacker-1"), "{foreign}");
        assert!(foreign.contains("mine") && foreign.contains("Left as the form proposed: account"), "{foreign}");
        let list = Document::parse(&json!({"root": {"type": "form", "id": "pay", "fields": [
            {"type": "select", "name": "to", "label": "To", "options": [
                {"value": "sister", "label": "sister"}, {"value": "attacker-1", "label": "my landlord"},
            ]},
        ]}}))
        .unwrap();
        for (option, said) in [("attacker-1", "Chosen from the form's own list: to: option 2"), ("sister", "sister")] {
            let given = json!({"to": option});
            let checked = check_values(list.form("pay").unwrap(), given.as_object().unwrap()).unwrap();
            for drawn in [Integrity::Untrusted, Integrity::User] {
                let text = message(&row(drawn), "pay", &checked);
                assert!(!text.contains("attacker-1") && text.contains(said), "{text}");
            }
        }
        let own = message(&row(Integrity::User), "pay", &checked);
        assert!(own.contains("attacker-1") && !own.contains("Left"), "{own}");
        assert!(!foreign.contains("anything") && !own.contains("anything"), "titles are nobody's message");
    }
}
