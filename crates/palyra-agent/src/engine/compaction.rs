//! Summarising the older part of a context.
//!
//! A model writes the summary; if it cannot, the beginnings of the items are kept instead. Either way the record says how it was made, and the
//! items themselves stay on the tape.

use std::pin::Pin;

use futures::StreamExt as _;
use palyra_common::AuxiliaryTaskKind;
use palyra_models::{Message, ModelRequest, Purpose, TurnAssembler};

use super::{EngineOptions, model_call};
use crate::context;
use crate::machine::{Input, Machine};

/// Budget of a summary, from the auxiliary contract for summaries.
const SUMMARY_TOKENS: u32 = 1_200;
/// Characters of each line that an extractive summary keeps.
const EXTRACT_CHARS: usize = 160;

const INSTRUCTION: &str = "Summarise the following part of an agent's work so that it can go on without it. Keep decisions, facts found, \
                           file names, open tasks and errors. Plain text, no preamble.";

/// A summary under way.
pub(super) struct Compaction(Pin<Box<dyn Future<Output = Input> + Send>>);

impl Compaction {
    pub(super) fn begin(options: &EngineOptions, machine: &Machine, replaces: u32) -> Self {
        let spec = machine.spec();
        let end = (1 + replaces as usize).min(machine.items().len());
        let text = context::transcript_text(spec, machine.items().get(1..end).unwrap_or_default());
        let request = ModelRequest {
            model: spec.model.name.clone(),
            max_output_tokens: Some(SUMMARY_TOKENS),
            ..ModelRequest::new(
                spec.run_id,
                machine.counters().turns,
                Purpose::Auxiliary(AuxiliaryTaskKind::Summary),
                vec![Message::system(INSTRUCTION), Message::user(&text)],
            )
        };
        let mut stream = model_call::open(options, request);
        Self(Box::pin(async move {
            let mut assembler = TurnAssembler::new();
            while let Some(event) = stream.next().await {
                match event {
                    Ok(event) if assembler.push(&event).is_ok() => {}
                    _ => return extractive(&text, replaces),
                }
            }
            let summary = assembler.finish().text;
            if summary.trim().is_empty() {
                return extractive(&text, replaces);
            }
            let summary = bounded(&summary);
            Input::Compacted { replaces, summary, method: "model".to_owned() }
        }))
    }

    /// The summary, once it is there.
    pub(super) async fn next(compaction: &mut Option<Self>) -> Input {
        let summary = match compaction {
            Some(under_way) => under_way.0.as_mut().await,
            None => std::future::pending().await,
        };
        *compaction = None;
        summary
    }
}

fn extractive(text: &str, replaces: u32) -> Input {
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.chars().take(EXTRACT_CHARS).collect())
        .collect();
    Input::Compacted { replaces, summary: bounded(&lines.join("\n")), method: "extractive".to_owned() }
}

/// No summary may be longer than its contract allows, whoever wrote it.
fn bounded(summary: &str) -> String {
    summary.chars().take(SUMMARY_TOKENS as usize * 4).collect()
}
