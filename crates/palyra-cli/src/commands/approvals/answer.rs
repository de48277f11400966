//! What an answer is: what a typed line means, and how an answer is given to the daemon.
//!
//! INVARIANT: only a whole, unmistakable answer decides. Anything else asks again.

use palyra_client::api::{ApprovalView, DecideApprovalParams, ListPatternsParams, PatternView, RunView};
use palyra_client::{Client, ClientError};
use palyra_common::{ApprovalDecision, ApprovalId, ApprovalScope};
use serde::Serialize;

use crate::render::text::shortened;

/// An answer that can be given with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This call may run.
    Once,
    /// So may calls like it in this session.
    Session,
    /// So may calls like it for an hour.
    Hour,
    /// This call may not run.
    Deny,
}

/// What a typed line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// An answer.
    Answer(Answer),
    /// The call may not run, for this reason, which the model is told.
    DenyBecause(String),
    /// Show everything.
    More,
    /// Nothing that could be understood.
    Unclear,
}

/// What a line means for a question with this offer. What was not offered cannot be agreed to.
pub(crate) fn understand(line: &str, offer: Option<&str>) -> Typed {
    match line.trim().to_ascii_lowercase().as_str() {
        "a" | "allow" | "y" | "yes" => Typed::Answer(Answer::Once),
        "s" | "session" if offer.is_some() => Typed::Answer(Answer::Session),
        "t" | "timeboxed" if offer.is_some() => Typed::Answer(Answer::Hour),
        "d" | "deny" | "n" | "no" => Typed::Answer(Answer::Deny),
        "m" | "more" => Typed::More,
        _ => reason_to_deny(line).map_or(Typed::Unclear, |reason| Typed::DenyBecause(reason.to_owned())),
    }
}

/// The reason in `d because …`, `deny: …` or `no, …`.
fn reason_to_deny(line: &str) -> Option<&str> {
    let line = line.trim();
    let end = line.find(|c: char| !c.is_ascii_alphabetic())?;
    let (word, rest) = line.split_at_checked(end)?;
    if !["d", "deny", "n", "no"].iter().any(|known| word.eq_ignore_ascii_case(known)) {
        return None;
    }
    let (marked, rest) = match rest.strip_prefix([':', ',']) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, rest.trim_start()),
    };
    let because = rest.split_at_checked("because".len()).filter(|(word, reason)| {
        word.eq_ignore_ascii_case("because") && (reason.is_empty() || reason.starts_with(char::is_whitespace))
    });
    let reason = match because {
        Some((_, reason)) => reason.trim_start(),
        None if marked => rest,
        None => return None,
    };
    (!reason.is_empty()).then_some(reason)
}

/// Why a line is not an answer, and which answers there are.
pub(crate) fn explain_unclear(line: &str, offer: Option<&str>) -> String {
    let answers = match offer {
        Some(_) => {
            "a (allow once), s (this session), t (one hour), d (deny), `d because …` (deny and tell the model why) or m (show everything)"
        }
        None => "a (allow once), d (deny), `d because …` (deny and tell the model why) or m (show everything)",
    };
    match shortened(line, 40).as_str() {
        "" => format!("type {answers}"),
        typed => format!("`{typed}` is not an answer; type {answers}"),
    }
}

impl Answer {
    /// The answer as the daemon takes it.
    pub(crate) fn params(self) -> DecideApprovalParams {
        let (decision, scope, minutes) = match self {
            Self::Once => (ApprovalDecision::Allow, ApprovalScope::Once, None),
            Self::Session => (ApprovalDecision::Allow, ApprovalScope::Session, None),
            Self::Hour => (ApprovalDecision::Allow, ApprovalScope::Timeboxed, Some(60)),
            Self::Deny => (ApprovalDecision::Deny, ApprovalScope::Once, None),
        };
        DecideApprovalParams { decision, scope, minutes, reason: None }
    }
}

/// The answer of a person who says why not.
pub(crate) fn denied_because(reason: String) -> DecideApprovalParams {
    DecideApprovalParams { reason: Some(reason), ..Answer::Deny.params() }
}

/// The answer of `--on-approval deny`. It says so itself, since nobody was asked.
pub(crate) fn denied_unasked() -> DecideApprovalParams {
    DecideApprovalParams { reason: Some("`--on-approval deny`".to_owned()), ..Answer::Deny.params() }
}

/// An answer that was accepted.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Decided {
    /// The run that asked, if one did.
    #[serde(flatten)]
    pub(crate) run: Option<RunView>,
    /// The question of a client, if one asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<ApprovalView>,
    /// What was agreed to, if the answer reaches further than one call and could be read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pattern: Option<PatternView>,
}

/// Gives an answer, and reads back what was agreed to.
pub(crate) async fn give(
    client: &Client,
    id: ApprovalId,
    params: &DecideApprovalParams,
) -> Result<Decided, ClientError> {
    let decided = client.decide_approval(id, params).await?;
    let mut pattern = None;
    if reaches_further(params) {
        // The answer counts whether or not this works; `palyra approvals patterns` tells later.
        let agreed = client.patterns(&ListPatternsParams::default()).await;
        pattern = agreed.ok().and_then(|page| page.patterns.into_iter().find(|pattern| pattern.approval_id == id));
    }
    let approval = decided.run.is_none().then_some(decided.approval);
    Ok(Decided { run: decided.run, approval, pattern })
}

/// Whether an answer is about more than the one call.
pub(crate) fn reaches_further(params: &DecideApprovalParams) -> bool {
    params.decision == ApprovalDecision::Allow && params.scope != ApprovalScope::Once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unmistakable_answer_decides() {
        for offer in [None, Some("calls like this")] {
            assert_eq!(understand(" A\n", offer), Typed::Answer(Answer::Once));
            assert_eq!(understand("deny", offer), Typed::Answer(Answer::Deny));
            assert_eq!(understand("yes", offer), Typed::Answer(Answer::Once), "no more than this call");
            assert_eq!(understand("N", offer), Typed::Answer(Answer::Deny));
            assert_eq!(understand("m", offer), Typed::More);
            for unclear in ["", "yn", "allow deny", "aa", "as", "always", "show", "\u{1b}[A"] {
                assert_eq!(understand(unclear, offer), Typed::Unclear, "{unclear:?}");
            }
        }
    }

    #[test]
    fn a_refusal_may_say_why() {
        for (line, reason) in [
            ("d because it is the wrong Ada", "it is the wrong Ada"),
            ("deny: Write to the Staging copy", "Write to the Staging copy"),
            ("No, because I said so\n", "I said so"),
            ("n, use the other one", "use the other one"),
            ("D BECAUSE yes", "yes"),
            ("d: because: of that", "because: of that"),
        ] {
            assert_eq!(understand(line, None), Typed::DenyBecause(reason.to_owned()), "{line}");
        }
        for unclear in [
            "d:",
            "d because",
            "d because  ",
            "do because x",
            "d x",
            "deny it",
            "a because it is fine",
            "because",
            "d becausex",
        ] {
            assert_eq!(understand(unclear, None), Typed::Unclear, "{unclear}");
        }
        assert_eq!(
            serde_json::to_string(&denied_because("no".to_owned())).unwrap(),
            r#"{"decision":"deny","scope":"once","reason":"no"}"#
        );
    }

    #[test]
    fn only_what_was_offered_can_last() {
        for (key, answer) in [("s", Answer::Session), ("Session", Answer::Session), ("t", Answer::Hour)] {
            assert_eq!(understand(key, Some("calls like this")), Typed::Answer(answer));
            assert_eq!(understand(key, None), Typed::Unclear, "{key}");
        }
    }

    #[test]
    fn what_is_no_answer_is_explained_with_the_answers_that_there_are() {
        let without = explain_unclear("maybe\u{1b}[2J", None);
        assert_eq!(
            without,
            "`maybe\u{fffd}[2J` is not an answer; type a (allow once), d (deny), `d because …` (deny and tell the model why) or m (show everything)"
        );
        assert!(explain_unclear("ok", Some("calls like this")).contains("s (this session), t (one hour)"));
        assert!(explain_unclear(" ", None).starts_with("type a"));
    }

    #[test]
    fn each_key_means_exactly_what_it_says() {
        let sent = |answer: Answer| serde_json::to_string(&answer.params()).unwrap();
        assert_eq!(sent(Answer::Once), r#"{"decision":"allow","scope":"once"}"#);
        assert_eq!(sent(Answer::Session), r#"{"decision":"allow","scope":"session"}"#);
        assert_eq!(sent(Answer::Hour), r#"{"decision":"allow","scope":"timeboxed","minutes":60}"#);
        assert_eq!(sent(Answer::Deny), r#"{"decision":"deny","scope":"once"}"#);
        assert!(reaches_further(&Answer::Session.params()) && !reaches_further(&Answer::Deny.params()));
    }
}
