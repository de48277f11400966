//! Whatever a model answers and whatever a schema says: nothing panics, and what passes is within bounds and fits again.

use palyra_common::AuxiliaryTaskKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::answer_tests::{input, turn};
use super::{AuxiliaryInput, AuxiliaryOutput, fields};

/// Any small JSON document, with the names that the contracts know among its keys.
fn document() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-z]{0,6}", Just("met".to_owned()), Just("c1".to_owned()), Just("Lob".to_owned())];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-0.5_f64..1.5).prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let keys = proptest::sample::select(vec![
        "label",
        "verdict",
        "confidence",
        "grounds",
        "missing",
        "evidence",
        "id",
        "score",
        "why",
        "answer",
        "observations",
        "count",
        "colour",
        "other",
    ]);
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(keys.clone(), inner, 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// Something that is, or nearly is, a schema.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        proptest::sample::select(vec!["string", "integer", "number", "boolean", "null", "array", "object", "odd"])
            .prop_map(|name| json!({"type": name})),
        (0_u8..4).prop_map(|most| json!({"type": "string", "maxLength": most})),
        document().prop_map(|any| json!({"enum": [any]})),
        Just(json!({})),
        document(),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.clone().prop_map(|one| json!({"anyOf": [one, {"type": "null"}]})),
            (inner.clone(), inner).prop_map(|(one, other)| {
                json!({"type": "object", "properties": {"label": one, "other": other}, "required": ["label"]})
            }),
        ]
    })
}

fn kind() -> impl Strategy<Value = AuxiliaryTaskKind> {
    proptest::sample::select(AuxiliaryTaskKind::ALL.to_vec())
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(kind in kind(), text in "\\PC{0,200}") {
        let _ = input(kind).read_answer(&turn(&text));
    }

    #[test]
    fn what_passes_is_within_bounds_and_passes_again(kind in kind(), document in document()) {
        let input = input(kind);
        if let Ok(output) = input.read_answer(&turn(&document.to_string())) {
            let value = output.to_value();
            prop_assert!(value.to_string().len() < 64 << 10);
            match &output {
                AuxiliaryOutput::Classification(chosen) => prop_assert!(["Lob", "Ärger", "Öde"].contains(&&*chosen.label)),
                AuxiliaryOutput::ObjectiveJudge(judged) => prop_assert!((0.0..=1.0).contains(&judged.confidence)),
                AuxiliaryOutput::RecallSearch(recall) => {
                    prop_assert!(recall.evidence.iter().all(|found| ["m-1", "m-2"].contains(&&*found.id)));
                    prop_assert!(recall.evidence.is_sorted_by(|one, next| one.score >= next.score));
                }
                _ => {}
            }
            if kind != AuxiliaryTaskKind::RecallSearch && kind != AuxiliaryTaskKind::Summary {
                prop_assert_eq!(input.read_answer(&turn(&value.to_string())), Ok(output));
            }
        }
    }

    #[test]
    fn no_schema_and_no_input_is_too_odd_to_refuse(schema in schema(), document in document(), kind in kind()) {
        if fields::check_schema(&schema).is_ok() {
            let fits = fields::fits(&schema, &document);
            // Objects are closed: one more field never passes.
            if let (Ok(()), Value::Object(mut fields)) = (fits, document.clone()) {
                fields.insert("never named".to_owned(), Value::Null);
                prop_assert!(fields::fits(&schema, &Value::Object(fields)).is_err());
            }
        }
        let _ = fields::fits(&schema, &document);
        let _ = AuxiliaryInput::read(kind, document);
    }
}
