//! The desk without a daemon: what is shown, what is taken for an answer.

use std::path::Path;

use palyra_client::Endpoint;
use palyra_common::{ErrorCategory, Risk, RunId, StableErrorEnvelope};

use super::*;

fn question(id: u128) -> Question {
    Question {
        approval_id: ApprovalId::from_u128(id),
        run_id: Some(RunId::from_u128(9)),
        asked_by: None,
        risk: Risk::High,
        summary: format!("question {id}"),
        reason: "because".to_owned(),
        tool: None,
        arguments: None,
        evidence: Vec::new(),
        offer: None,
    }
}

/// A desk with two questions, the first of them on the screen of a terminal.
fn with_desk(test: impl FnOnce(&mut Desk<'_>)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let client = Client::new(Endpoint::unix(Path::new("/nonexistent")));
    let console = Console::for_tests();
    let mut desk = Desk::new(&client, &console, QuestionPolicy::Ask(Unattended::Leave));
    desk.answering = Answering::Person;
    desk.asked(question(1));
    desk.asked(question(2));
    desk.asked(question(1));
    assert!(desk.has_news());
    desk.present();
    assert!(!desk.has_news());
    test(&mut desk);
}

fn line(text: &str, read_at: Instant) -> Step {
    Step::Typed(Some(Line { text: text.to_owned(), read_at }))
}

fn deciding(desk: &Desk<'_>) -> Option<u128> {
    desk.deciding.as_ref().map(|deciding| deciding.id.to_u128())
}

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let early = Instant::now();
    with_desk(|desk| {
        desk.step(line("a", early)).unwrap();
        assert_eq!(deciding(desk), None);
        desk.step(line("maybe", Instant::now())).unwrap();
        assert_eq!(deciding(desk), None);
        desk.step(line("a", Instant::now())).unwrap();
        assert_eq!(deciding(desk), Some(1));
    });
}

#[test]
fn an_answer_given_twice_does_not_reach_the_next_question() {
    with_desk(|desk| {
        let doubled = Instant::now();
        desk.answered(ApprovalId::from_u128(1));
        desk.step(line("a", doubled)).unwrap();
        assert_eq!(deciding(desk), None, "the next question is not on the screen yet");
        desk.present();
        desk.step(line("a", doubled)).unwrap();
        assert_eq!(deciding(desk), None, "it was typed for the one before");
        desk.step(line("d", Instant::now())).unwrap();
        assert_eq!(deciding(desk), Some(2));
    });
}

#[test]
fn the_end_of_input_answers_nothing() {
    with_desk(|desk| {
        desk.step(Step::Typed(None)).unwrap();
        assert_eq!((deciding(desk), desk.answering()), (None, Answering::Nobody));
        assert!(!desk.is_empty());
    });
}

#[test]
fn a_refused_answer_asks_again_unless_the_question_is_closed() {
    with_desk(|desk| {
        let first = ApprovalId::from_u128(1);
        let refused = |code: &str| {
            let envelope = StableErrorEnvelope::new(code, ErrorCategory::Policy, "no");
            Step::Decided(first, Err(ClientError::Refused(envelope.into())))
        };
        desk.step(refused("approval_not_permitted")).unwrap();
        assert_eq!(desk.questions.len(), 2);
        assert_eq!(desk.shown.map(|shown| shown.id), Some(first));
        desk.step(refused("approval_not_found")).unwrap();
        assert_eq!(desk.shown.map(|shown| shown.id), Some(ApprovalId::from_u128(2)));
    });
}
