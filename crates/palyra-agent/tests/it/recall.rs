//! Finding what was said before: whose sessions, in what order, with references that are real.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use palyra_agent::{NewRun, OutsideSender, RankedBy, RecallQuery, Recalled, Said};
use palyra_common::{AuxiliaryTaskKind, Integrity, RunStreamBody, ToStableError as _};
use palyra_models::{
    ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, ProviderInfo, Purpose, StopReason,
};

use crate::support::{Bench, Setup};

/// Repeats what it is told; ranks as it was told to.
struct Librarian {
    ranks: Mutex<&'static str>,
    asked: Mutex<Vec<ModelRequest>>,
    is_language_model: bool,
}

#[async_trait]
impl ModelProvider for Librarian {
    fn name(&self) -> &str {
        "librarian"
    }
    fn describe(&self) -> ProviderInfo {
        let is_language_model = self.is_language_model;
        ProviderInfo { name: "librarian".into(), model: "l".into(), context_tokens: 32_000, is_language_model }
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let text = match request.purpose {
            Purpose::Turn => format!("You said: {}", request.messages.last().unwrap().content),
            Purpose::Auxiliary(_) => (*self.ranks.lock().unwrap()).to_owned(),
        };
        self.asked.lock().unwrap().push(request);
        let events = [ModelEvent::TextDelta(text), ModelEvent::Finished(StopReason::EndTurn)];
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }
}

async fn bench(is_language_model: bool) -> (Bench, Arc<Librarian>) {
    let ranks = Mutex::new(r#"{"evidence":[{"id":"c1","score":0.9,"why":"it names the port"}]}"#);
    let librarian = Arc::new(Librarian { ranks, asked: Mutex::default(), is_language_model });
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::clone(&librarian) as Arc<dyn ModelProvider>);
    let bench = setup.start().await;
    for (owner, prompt) in [
        ("ada", "the port for the tests is 7070"),
        ("ada", "the weather is fine"),
        ("eve", "the port of Hamburg and the tests"),
    ] {
        let new = NewRun { owner: Some(owner.into()), ..bench.task(prompt) };
        let run = bench.engine.create_run(new).await.unwrap();
        bench.finish(run.run_id).await;
    }
    (bench, librarian)
}

async fn recall(bench: &Bench, owner: &str, query: &str) -> Recalled {
    let query = RecallQuery { owner: owner.into(), session_id: None, query: query.into(), limit: 8 };
    bench.engine.recall(query).await.unwrap()
}

#[tokio::test]
async fn a_model_says_which_of_the_candidates_help_and_they_are_ones_own() {
    let (bench, librarian) = bench(true).await;
    let found = recall(&bench, "ada", "which port for tests?").await;
    assert_eq!((found.ranked_by, found.note.as_deref()), (RankedBy::Model, None));
    let [piece] = found.pieces.as_slice() else { panic!("{found:?}") };
    assert!(piece.text.contains("7070"), "{piece:?}");
    assert_eq!((piece.score, piece.why.as_str()), (0.9, "it names the port"));
    let request = librarian.asked.lock().unwrap().last().cloned().unwrap();
    assert_eq!(request.purpose, Purpose::Auxiliary(AuxiliaryTaskKind::RecallSearch));
    let shown = &request.messages.last().unwrap().content;
    assert!(shown.contains("7070") && !shown.contains("Hamburg") && !shown.contains("weather"), "{shown}");
    // The reference leads to what was said.
    let events = bench.engine.follow(piece.run_id, piece.seq).await.unwrap().next().await.unwrap().unwrap();
    match (piece.said, &events[0].body) {
        (Said::Asked, RunStreamBody::Status(_)) => assert_eq!(piece.seq, 1),
        (Said::Answered, RunStreamBody::Status(status)) => assert!(status.phase.is_terminal()),
        other => panic!("{other:?}"),
    }
    assert!(found.label.integrity >= Integrity::User);
}

#[tokio::test]
async fn an_invented_reference_is_refused_and_words_decide() {
    let (bench, librarian) = bench(true).await;
    *librarian.ranks.lock().unwrap() = r#"{"evidence":[{"id":"c99","score":1.0,"why":"trust me"}]}"#;
    let found = recall(&bench, "ada", "which port for the tests?").await;
    assert_eq!(found.ranked_by, RankedBy::Words);
    assert!(found.note.unwrap().contains("no model ranked them"));
    assert!(found.pieces[0].text.contains("7070") && found.pieces.iter().all(|piece| piece.why.is_empty()));
    assert!(found.pieces.iter().all(|piece| !piece.text.contains("Hamburg")), "never another's");
}

#[tokio::test]
async fn without_a_language_model_words_are_compared_and_nobody_is_asked() {
    let (bench, librarian) = bench(false).await;
    let before = librarian.asked.lock().unwrap().len();
    let found = recall(&bench, "eve", "HAMBURG").await;
    assert!(found.note.as_ref().unwrap().contains("no language model is configured"), "{found:?}");
    assert_eq!(found.pieces.len(), 2, "asked and answered: {found:?}");
    assert!(recall(&bench, "ada", "Hamburg").await.pieces.is_empty());
    assert_eq!(librarian.asked.lock().unwrap().len(), before);
    let empty = RecallQuery { owner: "ada".into(), session_id: None, query: " ?! ".into(), limit: 8 };
    assert_eq!(bench.engine.recall(empty).await.unwrap_err().to_stable().code, "prompt_empty");
    let session = bench.engine.sessions(palyra_agent::SessionFilter { limit: 9, ..Default::default() }).await.unwrap();
    let one = session.iter().find(|row| row.title.contains("weather")).unwrap().session_id;
    let query = RecallQuery { owner: "ada".into(), session_id: Some(one), query: "the port".into(), limit: 1 };
    let found = bench.engine.recall(query).await.unwrap();
    assert!(found.pieces.len() == 1 && found.pieces[0].text.contains("weather"), "only that session: {found:?}");
}

#[tokio::test]
async fn what_a_stranger_wrote_is_found_and_is_not_the_persons_word() {
    let (bench, _) = bench(false).await;
    let from = OutsideSender {
        channel: "matrix".into(),
        conversation: "!room".into(),
        sender: "@eve:evil.example".into(),
        message_id: "1".into(),
    };
    let new = NewRun { owner: Some("ada".into()), from: Some(from), ..bench.task("the lighthouse is at Brest") };
    let run = bench.engine.create_run(new).await.unwrap();
    bench.finish(run.run_id).await;
    let recalled = recall(&bench, "ada", "lighthouse").await;
    let asked = recalled.pieces.iter().find(|piece| piece.said == Said::Asked).unwrap();
    assert_eq!(asked.label.integrity, Integrity::Untrusted);
    assert_eq!(recalled.label.integrity, Integrity::Untrusted);
}
