//! What the model gets to see: a pure function of the run's specification and its growing transcript.
//!
//! The order is fixed so that providers can cache the prefix: Palyra's instructions, project files, the run's surroundings, the operator's instructions for the agent, earlier exchanges of the session,
//! then this run's items. Nothing vanishes silently: history that was left out is counted, a tool result that is too long for the
//! window says how much is missing, a summary says how many items it stands for, and all of it is whole on the tape.

use palyra_common::{Digest, Label};
use palyra_models::{ATTACHMENT_MARK, Message, ReasoningBlock, ToolCallRequest};
use serde::{Deserialize, Serialize};

use crate::machine::{Half, withheld};
use crate::spec::{ContextItem, RunSpec};

/// Bytes per token that budgeting assumes. Part of the machine's behaviour: changing it needs a new `MACHINE_VERSION`.
const BYTES_PER_TOKEN: usize = 4;
/// Tokens a message costs besides its text.
const TOKENS_PER_MESSAGE: usize = 4;
/// Bytes of text that an image counts for: about a thousand tokens.
const IMAGE_BYTES: usize = 4_000;
/// Bytes that stand around a summary.
const SUMMARY_FRAME_BYTES: usize = 48;

/// One item of a run's transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A person wrote.
    User {
        /// The text.
        text: String,
        /// Files referred to.
        attachments: Vec<ContextItem>,
        /// Label of the text.
        label: Label,
    },
    /// The model's turn.
    Assistant {
        /// What it said.
        text: String,
        /// What it wanted to do, under the run's own call ids.
        calls: Vec<ToolCallRequest>,
        /// What it thought before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasoning: Vec<ReasoningBlock>,
    },
    /// What the model is told about one call.
    ToolResult {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Output or error in words.
        content: String,
        /// Whether it failed or was refused.
        failed: bool,
        /// Label of the content.
        label: Label,
    },
    /// What the judge of the run's objective said, as the planner may read it.
    Verdict {
        /// The text.
        text: String,
        /// Label of the text.
        label: Label,
    },
    /// Stands for older items.
    Summary {
        /// The summary.
        text: String,
        /// How many items it replaces, summed over earlier summaries.
        replaces: u32,
        /// Join of the labels of what it replaces.
        label: Label,
    },
}

impl Item {
    /// The label of what this item says.
    #[must_use]
    pub fn label(&self) -> Label {
        match self {
            Self::User { attachments, label, .. } => {
                attachments.iter().fold(label.clone(), |joined, item| joined.join(&item.label))
            }
            // What a model says is no better than what it read; the caller joins the context's label.
            Self::Assistant { .. } => Label::system(),
            Self::ToolResult { label, .. } | Self::Verdict { label, .. } | Self::Summary { label, .. } => label.clone(),
        }
    }

    /// Whether a context may begin with this item: a tool result may not be parted from the turn that asked for it.
    fn may_follow_a_cut(&self) -> bool {
        !matches!(self, Self::ToolResult { .. })
    }
}

/// The messages for the model.
#[must_use]
pub fn messages(spec: &RunSpec, items: &[Item]) -> Vec<Message> {
    let mut messages = vec![Message::system(system_text(spec))];
    messages.extend(agent_text(spec).map(Message::system));
    for (index, exchange) in spec.history.iter().enumerate() {
        let asked = withheld(spec, index, Half::Asked);
        messages.push(Message::user(asked.as_deref().unwrap_or(&exchange.prompt)));
        let answered = withheld(spec, index, Half::Answered);
        messages.push(Message::assistant(answered.as_deref().unwrap_or(&exchange.answer), Vec::new()));
    }
    messages.extend(items.iter().map(|item| message(spec, item)));
    messages
}

/// How many of the first messages are the same in every call of the run.
#[must_use]
pub fn stable_messages(spec: &RunSpec) -> u32 {
    // The instructions, the history, and the task itself.
    u32::try_from(task_message(spec) + 1).unwrap_or(u32::MAX)
}

/// Position of the message that holds the person's task.
#[must_use]
pub(crate) fn task_message(spec: &RunSpec) -> usize {
    instruction_messages(spec) + 2 * spec.history.len()
}

/// How many of the first messages hold instructions.
#[must_use]
pub(crate) fn instruction_messages(spec: &RunSpec) -> usize {
    1 + usize::from(spec.instructions().is_some())
}

/// Digest of what the model sees, as named in the `call_model` action.
#[must_use]
pub fn digest(messages: &[Message]) -> Digest {
    let parts: Vec<Vec<u8>> = messages.iter().map(|message| serde_json::to_vec(message).unwrap_or_default()).collect();
    Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Estimated tokens of the whole context.
#[must_use]
pub fn tokens(spec: &RunSpec, items: &[Item]) -> u32 {
    let fixed = message_tokens(system_text(spec).len())
        + agent_text(spec).map_or(0, |text| message_tokens(text.len()))
        + spec.history.iter().map(|e| message_tokens(e.prompt.len()) + message_tokens(e.answer.len())).sum::<usize>();
    let growing: usize = items.iter().map(|item| item_tokens(spec, item)).sum();
    u32::try_from(fixed + growing).unwrap_or(u32::MAX)
}

/// Estimated tokens of one item.
#[must_use]
pub fn tokens_of(spec: &RunSpec, item: &Item) -> u32 {
    u32::try_from(item_tokens(spec, item)).unwrap_or(u32::MAX)
}

/// Estimated tokens of a summary in a context.
#[must_use]
pub fn summary_tokens(text: &str) -> u32 {
    u32::try_from(message_tokens(text.len() + SUMMARY_FRAME_BYTES)).unwrap_or(u32::MAX)
}

/// How many items after the first one a summary should replace so that about a quarter of the window stays verbatim.
/// The first item, the person's task, is never summarised. Zero means that nothing can be gained.
#[must_use]
pub fn compactable(spec: &RunSpec, items: &[Item]) -> u32 {
    let keep = spec.room() as usize / 4;
    let mut kept = 0;
    let mut cut = items.len();
    for (index, item) in items.iter().enumerate().skip(1).rev() {
        kept += item_tokens(spec, item);
        if kept > keep {
            break;
        }
        if item.may_follow_a_cut() {
            cut = index;
        }
    }
    let replaced = items.get(1..cut).unwrap_or_default();
    match replaced {
        [] | [Item::Summary { .. }] => 0,
        some => u32::try_from(some.len()).unwrap_or(0),
    }
}

/// The text of items that are about to be summarised.
#[must_use]
pub fn transcript_text(spec: &RunSpec, items: &[Item]) -> String {
    let mut text = String::new();
    for item in items {
        let (who, content) = match item {
            Item::User { .. } => ("user".to_owned(), message(spec, item).content),
            Item::Assistant { text, calls, .. } => {
                let calls: String =
                    calls.iter().map(|call| format!("\n[calls {} {}]", call.name, call.arguments)).collect();
                ("assistant".to_owned(), format!("{text}{calls}"))
            }
            Item::ToolResult { tool, .. } => (format!("result of {tool}"), message(spec, item).content),
            Item::Verdict { text, .. } => ("judge of the objective".to_owned(), text.clone()),
            Item::Summary { text, .. } => ("earlier summary".to_owned(), text.clone()),
        };
        text.push_str(&format!("## {who}\n{content}\n\n"));
    }
    text
}

fn system_text(spec: &RunSpec) -> String {
    let mut text = spec.system.clone();
    for item in &spec.project {
        text.push_str(&format!("\n\n# {}\n{}", item.source, item.text));
    }
    if let Some(surroundings) = &spec.surroundings {
        text.push_str(&format!("\n\n{}", surroundings.text));
    }
    if spec.history_omitted > 0 {
        text.push_str(&format!(
            "\n\n({} earlier exchange(s) of this session are not shown here; they are on the journal.)",
            spec.history_omitted
        ));
    }
    text
}

/// What the operator says in runs of this agent; a message of its own, so that what files say is never taken for it.
fn agent_text(spec: &RunSpec) -> Option<String> {
    let instructions = spec.instructions()?;
    Some(format!(
        "The operator of this installation says about the agent `{}`, which you are:\n{instructions}",
        spec.agent
    ))
}

/// One item as the model reads it.
pub(crate) fn message(spec: &RunSpec, item: &Item) -> Message {
    match item {
        Item::User { text, attachments, .. } => {
            let mut content = text.clone();
            for attachment in attachments {
                content.push_str(&format!(
                    "{ATTACHMENT_MARK}{}]\n{}\n[end of {}]",
                    attachment.source, attachment.text, attachment.source
                ));
            }
            Message::user(content)
        }
        Item::Assistant { text, calls, reasoning } => {
            Message::assistant(text, calls.clone()).with_reasoning(reasoning.clone())
        }
        Item::ToolResult { call_id, tool, content, failed, .. } => {
            let content = shorten(content, spec.room() as usize);
            if *failed {
                Message::tool_error(call_id, tool, content)
            } else {
                Message::tool_result(call_id, tool, content)
            }
        }
        // No provider takes anything but a user's turn here; the text itself says who speaks.
        Item::Verdict { text, .. } => Message::user(text),
        Item::Summary { text, replaces, .. } => {
            Message::system(format!("Summary of {replaces} earlier step(s) of this task:\n{text}"))
        }
    }
}

/// Keeps head and tail of a result that would take more than a quarter of the window (`window` tokens are about four times as many bytes).
fn shorten(content: &str, window: usize) -> String {
    shortened(content, window * BYTES_PER_TOKEN / 4, "here to fit the model's window; the whole result is on the tape")
}

/// Head and tail of a text that has more bytes than the limit, with a note between them of how much is left out.
pub(crate) fn shortened(content: &str, limit: usize, why: &str) -> String {
    if content.len() <= limit {
        return content.to_owned();
    }
    let head = floor_boundary(content, limit * 3 / 4);
    let tail = ceil_boundary(content, content.len() - limit / 4);
    format!(
        "{}\n[… {} bytes left out {why} …]\n{}",
        content.get(..head).unwrap_or_default(),
        tail.saturating_sub(head),
        content.get(tail..).unwrap_or_default()
    )
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while at > 0 && !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil_boundary(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn item_tokens(spec: &RunSpec, item: &Item) -> usize {
    let bytes = match item {
        Item::User { text, attachments, .. } => {
            let image = |a: &ContextItem| if a.image.is_some() { IMAGE_BYTES } else { 0 };
            text.len() + attachments.iter().map(|a| a.text.len() + 2 * a.source.len() + 24 + image(a)).sum::<usize>()
        }
        Item::Assistant { text, calls, reasoning } => {
            text.len()
                + calls.iter().map(|call| call.name.len() + call.arguments.len() + 16).sum::<usize>()
                + reasoning.iter().map(reasoning_bytes).sum::<usize>()
        }
        Item::ToolResult { content, tool, .. } => {
            tool.len() + content.len().min(spec.room() as usize * BYTES_PER_TOKEN / 4 + 128)
        }
        Item::Verdict { text, .. } => text.len(),
        Item::Summary { text, .. } => text.len() + SUMMARY_FRAME_BYTES,
    };
    message_tokens(bytes)
}

/// What a block of reasoning costs: its text, or what stands for it where it is sealed.
fn reasoning_bytes(block: &ReasoningBlock) -> usize {
    if block.payload.is_null() { block.text.len() } else { block.text.len().max(block.payload.to_string().len()) }
}

const fn message_tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE
}
