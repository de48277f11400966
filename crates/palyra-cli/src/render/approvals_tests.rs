//! Approvals and patterns as a person sees them.

use palyra_client::api::ApprovalAnswer;
use palyra_common::{
    ApprovalEvidence, ApprovalId, ApprovalSubject, Provenance, Risk, RunId, SessionId, SinkKind, Timestamp,
};
use serde_json::json;

use super::*;

const AT: Timestamp = Timestamp(1_794_700_000_123);

pub(in crate::render) fn approval() -> ApprovalView {
    ApprovalView {
        approval_id: ApprovalId::from_u128(1),
        run_id: Some(RunId::from_u128(2)),
        session_id: Some(SessionId::from_u128(3)),
        asked_by: None,
        call_id: Some("t2c1".to_owned()),
        subject: ApprovalSubject::Tool,
        risk: Risk::High,
        summary: "send money".to_owned(),
        reason: "untrusted text chose the recipient".to_owned(),
        tool: Some("mcp.bank.send_money".to_owned()),
        arguments: Some(json!({ "recipient": "US133" })),
        evidence: vec![ApprovalEvidence {
            argument: "recipient".to_owned(),
            sink: SinkKind::Destination,
            value: "US133".to_owned(),
            provenance: Provenance::Untrusted,
            source: Some("the result of mcp.bank.read_file (t1c1)".to_owned()),
            sentence: Some("IBAN: US133".to_owned()),
        }],
        offer: Some("mcp.bank.send_money `US133`".to_owned()),
        requested_at: AT,
        expires_at: None,
        answer: None,
        withdrawn_at: None,
    }
}

fn pattern() -> PatternView {
    PatternView {
        approval_id: ApprovalId::from_u128(1),
        session_id: SessionId::from_u128(3),
        tool: "mcp.bank.send_money".to_owned(),
        sentence: "mcp.bank.send_money `US133` in this session".to_owned(),
        scope: ApprovalScope::Session,
        until: None,
        by: "me".to_owned(),
        at: AT,
        revoked_at: None,
    }
}

#[test]
fn a_list_has_a_column_for_what_steers() {
    let plain = ApprovalView { evidence: Vec::new(), withdrawn_at: Some(AT), ..approval() };
    let mut two = approval();
    two.evidence.push(ApprovalEvidence { value: "x".repeat(100), ..two.evidence[0].clone() });
    two.evidence.reverse();
    assert_eq!(
        list(&[approval(), plain, two]),
        [
            "APPROVAL                    ASKED (UTC)          RISK  ANSWER     VALUES TO CHECK                                \
             QUESTION",
            "00000000000000000000000001  2026-11-14 23:46:40  high  pending    US133                                          \
             send money",
            "00000000000000000000000001  2026-11-14 23:46:40  high  withdrawn  -                                              \
             send money",
            "00000000000000000000000001  2026-11-14 23:46:40  high  pending    xxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxx and 1 more  \
             send money",
        ]
    );
}

#[test]
fn a_page_shows_what_an_answer_turns_on_and_how_to_give_it() {
    let id = ApprovalId::from_u128(1);
    assert_eq!(
        page(&approval(), None).join("\n"),
        format!(
            "approval   {id}\nquestion   send money\nrisk       high\nwhy        untrusted text chose the recipient\n\
             subject    tool\nrun        {run}, call t2c1\nsession    {session}\nasked      2026-11-14 23:46:40 UTC\n\
             answer     none yet\n\n\
             1 value to check\n  recipient = US133\n    decides where it goes\n    \
             found in the result of mcp.bank.read_file (t1c1): «IBAN: US133»\n\
             mcp.bank.send_money with\n  {{\n    \"recipient\": \"US133\"\n  }}\n\
             to stop being asked, allow\n  mcp.bank.send_money `US133`\n\
             answer with\n  \
             palyra approvals decide {id} allow                    this call\n  \
             palyra approvals decide {id} allow --scope session    and calls like it in this session\n  \
             palyra approvals decide {id} allow --scope timeboxed  and calls like it for an hour, in all your sessions\n  \
             palyra approvals decide {id} deny                     not this call",
            run = RunId::from_u128(2),
            session = SessionId::from_u128(3),
        )
    );
}

#[test]
fn an_answered_one_says_who_when_and_what_was_agreed_to() {
    let answer = ApprovalAnswer {
        decision: ApprovalDecision::Allow,
        scope: ApprovalScope::Session,
        by: "user:me".to_owned(),
        via: Some("unix socket".to_owned()),
        at: AT,
    };
    let answered = ApprovalView { answer: Some(answer), ..approval() };
    let taken_back = PatternView { revoked_at: Some(AT), ..pattern() };
    let text = page(&answered, Some(&taken_back)).join("\n");
    assert!(
        text.contains("\nanswer     allow (session) by user:me (unix socket) at 2026-11-14 23:46:40 UTC\n"),
        "{text}"
    );
    assert!(
        text.contains("\nallowed    mcp.bank.send_money `US133` in this session; revoked at 2026-11-14 23:46:40 UTC\n"),
        "{text}"
    );
    assert!(!text.contains("answer with"), "nothing is left to answer: {text}");
    assert!(closed(&answered).ends_with("  allow (session) by user:me  send money"), "{}", closed(&answered));
    assert_eq!(decided(ApprovalDecision::Deny, ApprovalScope::Session), "deny", "a refusal reaches no further");
}

#[test]
fn patterns_are_shown_whole_with_the_way_back() {
    let long = PatternView { sentence: format!("mcp.bank.send_money `{}`", "x".repeat(900)), ..pattern() };
    assert!(patterns(std::slice::from_ref(&long))[0].ends_with(&long.sentence));
    assert_eq!(
        agreed_to(&pattern()),
        [
            "allowed: mcp.bank.send_money `US133` in this session",
            "  to revoke it: palyra approvals revoke 00000000000000000000000001",
        ]
    );
}
