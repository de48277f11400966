//! What there is to tell about files whose instructions a run does not follow, and about a workspace that is somebody else's.

use palyra_common::JournalEvent;
use serde_json::Value;

use crate::console::one_line;

const KIND: &str = "instructions.withheld";
const FOREIGN: &str = "workspace.foreign";

/// The lines that a person who follows a run sees.
pub(crate) fn lines(event: &JournalEvent) -> Vec<String> {
    if event.kind == FOREIGN {
        let why = event.payload.pointer("/note/workspace_foreign/why").and_then(Value::as_str).map(one_line);
        let why = why.unwrap_or_default();
        return vec![format!(
            "the files here count as anybody's text: the workspace {why}; if it is yours, name it in `workspaces.trusted`"
        )];
    }
    let listed = event.payload.pointer("/note/instructions_withheld/files").and_then(Value::as_array);
    let line = |file: &Value| {
        let text = |field: &str| file.get(field).and_then(Value::as_str).map(one_line).unwrap_or_default();
        let path = text("path");
        format!("{path} is not followed: {}; to trust it: palyra files endorse {path}", text("why"))
    };
    listed.filter(|_| event.kind == KIND).into_iter().flatten().map(line).collect()
}

/// All of them in one line.
pub(crate) fn about(event: &JournalEvent) -> Option<String> {
    matches!(event.kind.as_str(), KIND | FOREIGN).then(|| lines(event).join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_file_is_named_with_the_reason_and_the_way_out() {
        let files = json!([{"path": "AGENTS.md", "why": "it is not trusted"}]);
        let payload = json!({"note": {"instructions_withheld": {"files": files}}});
        let event = JournalEvent { kind: KIND.into(), payload: payload.clone() };
        let line = "AGENTS.md is not followed: it is not trusted; to trust it: palyra files endorse AGENTS.md";
        assert_eq!(lines(&event), [line]);
        assert_eq!(about(&event).as_deref(), Some(line));
        let why = json!({"note": {"workspace_foreign": {"why": "lies in a clone of `github.com/eve/x`"}}});
        let foreign = JournalEvent { kind: FOREIGN.into(), payload: why };
        assert!(lines(&foreign)[0].contains("the workspace lies in a clone of `github.com/eve/x`; if it is yours"));
        let other = JournalEvent { kind: "model.call".into(), payload };
        assert_eq!((lines(&other), about(&other)), (Vec::new(), None));
    }
}
