//! Thoughts in every spelling, there and back.

use super::*;
use crate::message::ToolCallRequest;

fn read(deltas: &[Value]) -> (Vec<ModelEvent>, Option<ReasoningBlock>) {
    let mut thoughts = Thoughts::new("here".to_owned(), "m".to_owned());
    let mut events = VecDeque::new();
    for delta in deltas {
        thoughts.read(delta, &mut events);
    }
    (events.into(), thoughts.block())
}

fn returned(block: &ReasoningBlock, place: Place, habit: GiveBack, to: (&str, &str)) -> Value {
    let call = ToolCallRequest { id: "c".into(), name: "t".into(), arguments: "{}".into() };
    let message = Message::assistant("", vec![call]).with_reasoning(vec![block.clone()]);
    let mut fields = Map::new();
    give_back(&mut fields, &message, place, habit, to);
    Value::Object(fields)
}

#[test]
fn plain_thoughts_come_back_in_the_spelling_of_the_server() {
    for field in ["reasoning_content", "reasoning"] {
        let (events, block) = read(&[json!({field: "hm"}), json!({field: ""}), json!({field: " so"}), json!({})]);
        assert_eq!(events, [ModelEvent::ReasoningDelta("hm".into()), ModelEvent::ReasoningDelta(" so".into())]);
        let block = block.unwrap();
        assert_eq!((block.text.as_str(), block.origin.as_str(), block.position), ("hm so", "here", 0));
        let here = ("here", "m");
        assert_eq!(returned(&block, Place::Present, GiveBack::PresentTask, here), json!({field: "hm so"}));
        assert_eq!(returned(&block, Place::Earlier, GiveBack::PresentTask, here), json!({}));
        assert_eq!(returned(&block, Place::Earlier, GiveBack::Everything, here), json!({field: "hm so"}));
        assert_eq!(returned(&block, Place::Present, GiveBack::Everything, ("there", "m")), json!({}));
        assert_eq!(returned(&block, Place::Present, GiveBack::Everything, ("here", "another")), json!({}));
    }
    assert_eq!(read(&[json!({"content": "x"})]), (Vec::new(), None));
}

#[test]
fn details_are_put_together_and_keep_their_signatures() {
    let (events, block) = read(&[
        json!({"reasoning": "fi", "reasoning_details": [
            {"type": "reasoning.text", "text": "fi", "format": "anthropic-claude-v1", "index": 0, "signature": null}]}),
        json!({"reasoning": "rst", "reasoning_details": [{"type": "reasoning.text", "text": "rst", "index": 0}]}),
        json!({"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]}),
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "se", "index": 1, "id": "r1"}]}),
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "aled", "index": 1}, 7]}),
        json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "in short", "index": 2}]}),
    ]);
    let texts: Vec<_> = events.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(texts, ["ReasoningDelta(\"fi\")", "ReasoningDelta(\"rst\")", "ReasoningDelta(\"in short\")"]);
    let block = block.unwrap();
    assert_eq!(
        returned(&block, Place::Earlier, GiveBack::Everything, ("here", "m")),
        json!({"reasoning_details": [
            {"type": "reasoning.text", "text": "first", "format": "anthropic-claude-v1", "index": 0, "signature": "sig"},
            {"type": "reasoning.encrypted", "data": "sealed", "index": 1, "id": "r1"},
            {"type": "reasoning.summary", "summary": "in short", "index": 2},
        ]})
    );
}
