//! The conversation on the wire: blocks in turns, and the marks for the provider's cache.
//!
//! A turn of the model is written as it was: what it thought, its words and its calls in their old order. Thinking goes
//! back only if it came from this wire; its payload holds the block and how much had been said before it.
//!
//! Marks: the provider keeps everything up to a marked block at the ready, and looks back only so far from each mark. One stands at the end
//! of what never changes within a run, one where the call before this one ended, and one at the end, for the next call. The fourth that
//! is allowed belongs to instructions or tools, see `encode`.

use serde_json::{Map, Value, json};

use super::ORIGIN;
use super::dialect::Thoughts;
use crate::attachment;
use crate::dialogue::{CallResult, Dialogue, ModelSaid, NO_RESULT, Said, Turn};
use crate::message::Message;
use crate::part::{Part, PartKind};
use crate::wire::ToolNames;

/// Pictures that the API takes.
const PICTURES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// A block, and the position of the message that it comes from.
struct Block {
    role: &'static str,
    value: Value,
    at: usize,
}

/// The turns of a conversation.
pub(super) fn encode(dialogue: &Dialogue<'_>, stable: usize, names: &ToolNames, thoughts: Thoughts) -> Vec<Value> {
    let mut blocks = Vec::new();
    for turn in &dialogue.turns {
        match turn {
            Turn::Person(turn) => {
                blocks.extend(turn.results.iter().map(tool_result));
                blocks.extend(turn.said.iter().flat_map(said));
            }
            Turn::Model(messages) => {
                for message in messages {
                    model(message, names, thoughts, &mut blocks);
                }
            }
        }
    }
    let settled = blocks.iter().take_while(|block| block.at < stable).count();
    for end in [settled, before_last_answer(&blocks), blocks.len()] {
        mark(blocks.get_mut(..end));
    }
    in_turns(blocks)
}

/// How many blocks the call before this one had: those before the model's newest turn.
fn before_last_answer(blocks: &[Block]) -> usize {
    let Some(newest) = blocks.iter().rposition(|block| block.role == "assistant") else { return 0 };
    let turn = blocks.iter().take(newest).rev().take_while(|block| block.role == "assistant").count();
    newest - turn
}

/// Whether every turn of the model since the person last spoke without giving results began with thinking, as a model with a budget for it
/// demands of turns that called tools.
pub(super) fn thought_throughout(dialogue: &Dialogue<'_>) -> bool {
    let open = dialogue.turns.iter().rev().take_while(|turn| match turn {
        Turn::Model(_) => true,
        Turn::Person(turn) => !turn.results.is_empty(),
    });
    open.filter_map(|turn| match turn {
        Turn::Model(messages) => messages.first(),
        Turn::Person(_) => None,
    })
    .all(|said| own_thoughts(said.message).any(|(_, block)| block.position == 0))
}

/// Puts the mark on the last of these blocks that can carry one.
fn mark(blocks: Option<&mut [Block]>) {
    let carries = |block: &&mut Block| !is_thinking(&block.value);
    let last = blocks.into_iter().flatten().rev().find(carries);
    if let Some(fields) = last.and_then(|block| block.value.as_object_mut()) {
        fields.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

fn is_thinking(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("thinking"))
}

fn in_turns(blocks: Vec<Block>) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for block in blocks {
        match turns.last_mut() {
            Some((role, content)) if *role == block.role => content.push(block.value),
            _ => turns.push((block.role, vec![block.value])),
        }
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn tool_result(result: &CallResult<'_>) -> Block {
    let mut block = Map::new();
    block.insert("type".to_owned(), "tool_result".into());
    block.insert("tool_use_id".to_owned(), result.id.as_str().into());
    let content = match result.message {
        Some(message) => content(&message.content, &message.parts),
        None => vec![text(NO_RESULT)],
    };
    // No content at all is a valid result; a blank text is not.
    if !content.is_empty() {
        block.insert("content".to_owned(), content.into());
    }
    if result.message.is_none_or(|message| message.failed) {
        block.insert("is_error".to_owned(), true.into());
    }
    Block { role: "user", value: Value::Object(block), at: result.at }
}

fn said(said: &Said<'_>) -> Vec<Block> {
    let block = |value| Block { role: "user", value, at: said.at };
    content(&said.text, said.parts).into_iter().map(block).collect()
}

/// Parts first: the documentation advises to ask after showing.
fn content(words: &str, parts: &[Part]) -> Vec<Value> {
    let mut blocks: Vec<Value> = parts.iter().map(part).collect();
    if !words.trim().is_empty() {
        blocks.push(text(words));
    }
    blocks
}

fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

fn part(part: &Part) -> Value {
    let media_type = attachment::essence(part);
    let source =
        |kind: &str, media_type: &str, data: &str| json!({ "type": kind, "media_type": media_type, "data": data });
    let document = |source: Value| {
        let mut block = json!({ "type": "document", "source": source });
        if let (Some(fields), Some(name)) = (block.as_object_mut(), &part.name) {
            fields.insert("title".to_owned(), name.as_str().into());
        }
        block
    };
    match part.kind {
        PartKind::Image if PICTURES.contains(&media_type.as_str()) => {
            json!({ "type": "image", "source": source("base64", &media_type, &part.data) })
        }
        PartKind::File if media_type == "application/pdf" => document(source("base64", &media_type, &part.data)),
        PartKind::Image | PartKind::File => match attachment::text_of(part).filter(|text| !text.trim().is_empty()) {
            Some(words) => document(source("text", "text/plain", &words)),
            None => text(&attachment::in_words(part)),
        },
    }
}

/// The thinking of a turn that this wire wrote, with how much of the text stood before each block.
fn own_thoughts(message: &Message) -> impl Iterator<Item = (usize, &crate::reasoning::ReasoningBlock)> {
    message.reasoning.iter().filter(|block| block.origin == ORIGIN && block.payload.get("block").is_some()).map(
        |block| {
            let before = block.payload.get("text_before").and_then(Value::as_u64);
            (before.and_then(|before| usize::try_from(before).ok()).unwrap_or(0), block)
        },
    )
}

fn model(said: &ModelSaid<'_>, names: &ToolNames, thoughts: Thoughts, blocks: &mut Vec<Block>) {
    let message = said.message;
    let given: Vec<_> = own_thoughts(message).filter(|_| thoughts == Thoughts::Given).collect();
    let mut values = Vec::new();
    let mut rest = message.content.as_str();
    for (before, block) in given.iter().filter(|(_, block)| block.position == 0) {
        // What was said before this thought. A payload may say anything: a place inside a character or beyond the end cuts nothing.
        let said = message.content.len() - rest.len();
        let cut = before.checked_sub(said).and_then(|cut| rest.split_at_checked(cut));
        if let Some((words, after)) = cut.filter(|(words, _)| !words.trim().is_empty()) {
            values.push(text(words));
            rest = after;
        }
        values.extend(block.payload.get("block").cloned());
    }
    if !rest.trim().is_empty() {
        values.push(text(rest));
    }
    for (index, (call, id)) in message.tool_calls.iter().zip(&said.ids).enumerate() {
        let between = given.iter().filter(|(_, block)| index > 0 && block.position as usize == index);
        values.extend(between.filter_map(|(_, block)| block.payload.get("block").cloned()));
        values.push(json!({
            "type": "tool_use",
            "id": id,
            "name": names.to_wire(&call.name),
            "input": input(&call.arguments),
        }));
    }
    blocks.extend(values.into_iter().map(|value| Block { role: "assistant", value, at: said.at }));
}

/// The arguments of an earlier call. They have to be an object: what the model got wrong goes back to it inside one.
fn input(written: &str) -> Value {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        Ok(_) | Err(_) => json!({ "malformed_arguments": written }),
    }
}
