//! What the server refuses, and answers that break off.

use palyra_models::{ModelError, ModelErrorClass};

use super::{KEY, Spoken, request, start};
use crate::vendors::ask;

async fn refused(wire: Spoken, server: &super::Outside, key: &str, words: &str) -> ModelError {
    let (_, error) = ask(&*wire.provider(server, key), request(words)).await;
    error.unwrap_or_else(|| panic!("{wire:?} answered `{words}`"))
}

#[tokio::test]
async fn refusals_mean_the_same_over_every_wire() {
    let server = start();
    for wire in Spoken::ALL {
        for (words, class, status) in [
            ("bad key", ModelErrorClass::Auth, 401),
            ("too many calls", ModelErrorClass::RateLimit, 429),
            // OpenRouter has a status of its own for that.
            (
                "no money left",
                if wire == Spoken::OpenRouter { ModelErrorClass::RateLimit } else { ModelErrorClass::Quota },
                429,
            ),
            ("server fails", ModelErrorClass::Transient, 500),
            ("overloaded", ModelErrorClass::Transient, 529),
        ] {
            let error = refused(wire, &server, KEY, words).await;
            assert_eq!((error.class, error.status), (class, Some(status)), "{wire:?}, {words}: {error}");
            if words == "too many calls" {
                assert_eq!(error.retry_after_ms, Some(7_000), "{wire:?}: {error}");
            }
        }
        let wrong = refused(wire, &server, "sk-wrong", "say hello").await;
        assert_eq!(wrong.class, ModelErrorClass::Auth, "{wire:?}: {wrong}");
        assert!(!wrong.message.contains("sk-wrong"), "{wire:?}: {wrong}");
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_known_in_each_vendors_words() {
    let server = start();
    for wire in Spoken::ALL {
        let error = refused(wire, &server, KEY, wire.words_for_too_long()).await;
        assert_eq!(error.class, ModelErrorClass::ContextTooLong, "{wire:?}: {error}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_taken_for_a_whole_one() {
    let server = start();
    for wire in Spoken::ALL {
        // Gemini and Ollama send a call in one piece, so there is no middle of it.
        let in_pieces = !matches!(wire, Spoken::Gemini | Spoken::Ollama);
        let cut = ["hang up on words", "leave before a word", "hang up on a call"];
        for words in cut.iter().take(if in_pieces { 3 } else { 2 }) {
            let error = refused(wire, &server, KEY, words).await;
            let broken = [ModelErrorClass::Network, ModelErrorClass::Malformed];
            assert!(broken.contains(&error.class), "{wire:?}, {words}: {error}");
        }
        let error = refused(wire, &server, KEY, "break the document").await;
        assert_eq!(error.class, ModelErrorClass::Malformed, "{wire:?}: {error}");
        let error = refused(wire, &server, KEY, "drop the call").await;
        assert_eq!(error.class, ModelErrorClass::Transient, "{wire:?}: {error}");
    }
}
