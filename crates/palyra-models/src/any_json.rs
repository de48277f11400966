//! Any JSON made of a wire's own words, for tests: what a decoder must stand without losing its head.

use std::collections::VecDeque;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use crate::assembler::TurnAssembler;
use crate::event::ModelEvent;
use crate::wire::{Decode, Flow};

/// Documents whose keys and texts are taken from these words.
pub(crate) fn any_json(keys: &'static [&'static str], words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => select(words).prop_map(Value::from),
        2 => (0_u64..4).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => "\\PC{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, move |inner| {
        prop_oneof![
            4 => prop::collection::vec((select(keys), inner.clone()), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>())),
            1 => prop::collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    })
}

/// Feeds documents to a decoder and holds it to its contract: a good end is a `Finished` at the end and nowhere else, and what came can
/// be put together.
pub(crate) fn stands(mut decoder: impl Decode, documents: &[Value]) {
    let mut events = VecDeque::new();
    for document in documents {
        match decoder.read(&document.to_string(), &mut events) {
            Ok(Flow::More) => {}
            Ok(Flow::Ended) => break,
            Err(_) => return,
        }
    }
    let ended = decoder.finish(&mut events);
    let finishes = events.iter().filter(|event| matches!(event, ModelEvent::Finished(_))).count();
    assert_eq!(finishes, usize::from(ended.is_ok()), "{events:?}");
    assert!(ended.is_err() || matches!(events.back(), Some(ModelEvent::Finished(_))), "{events:?}");
    let mut assembler = TurnAssembler::new();
    for event in &events {
        assembler.push(event).unwrap();
    }
    let turn = assembler.finish();
    let ids: std::collections::BTreeSet<_> = turn.tool_calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids.len(), turn.tool_calls.len(), "{turn:?}");
}
