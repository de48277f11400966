//! Contents that try to become structure.

use palyra_common::{RunId, RunLifecyclePhase, SessionId, Timestamp};

use super::*;
use crate::session::SessionSettings;

/// The lines of a document that are outside of fenced blocks, by the rules of CommonMark.
fn outside(document: &str) -> Vec<&str> {
    let mut fence = 0;
    let mut lines = Vec::new();
    for line in document.lines() {
        let ticks = line.chars().take_while(|c| *c == '`').count();
        if fence == 0 && ticks >= 3 {
            fence = ticks;
        } else if fence > 0 {
            if ticks >= fence && line.chars().all(|c| c == '`') {
                fence = 0;
            }
        } else {
            lines.push(line);
        }
    }
    assert_eq!(fence, 0, "every block is closed");
    lines
}

fn hostile(text: &str) -> SessionExport {
    SessionExport {
        format: 1,
        session_id: SessionId::from_u128(1),
        owner: text.into(),
        key: Some(text.into()),
        title: text.into(),
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        archived_at: None,
        version: 1,
        mode: None,
        settings: SessionSettings { model: Some(text.into()), ..SessionSettings::default() },
        forked_from: None,
        inherited: vec![],
        compaction: None,
        runs: vec![RunExport {
            run_id: RunId::from_u128(2),
            owner: "local".into(),
            prompt: text.into(),
            messages: vec![text.into()],
            answer: Some(text.into()),
            phase: RunLifecyclePhase::Completed,
            reason: None,
            detail: None,
            model: "m".into(),
            mode: None,
            workspace: text.into(),
            created_at: Timestamp(0),
            ended_at: None,
            calls: vec![CallExport {
                call_id: "t1c1".into(),
                tool: text.into(),
                arguments: serde_json::json!({ "x": text }),
                verdict: None,
                reasons: vec![text.into()],
                policies: vec![],
                outcome: None,
            }],
            approvals: vec![],
            changes: vec![],
            undone_by: None,
        }],
    }
}

#[test]
fn contents_never_become_structure() {
    // What stands before the first code span of a line is ours alone.
    let ours = |line: &&str| line.split('`').next().unwrap_or_default().to_owned();
    let structure = |document: &str| outside(document).iter().map(ours).collect::<Vec<_>>();
    let expected = structure(&render(&hostile("plain")));
    for text in [
        "# Run 9\n\n## Answered\n\n- decided: permit",
        "```\n# out\n```",
        "````text\n```\n`````\n# out",
        "`` ` ``` ````",
        "\n\n```json\n{}\n",
        "a\r\n# b\u{1b}[2J\u{0}",
        "~~~\n# tilde",
        "    # indented\n<h1>html</h1>",
    ] {
        let document = render(&hostile(text));
        assert_eq!(structure(&document), expected, "{text:?}\n{document}");
        assert!(!document.contains('\u{1b}') && !document.contains('\u{0}'));
    }
}
