//! Items that a client names instead of sending them again, as some packages do by default: `{"type": "item_reference", "id": …}`.
//!
//! Ids say what they belong to. A call needs no more than its name; the text of a message is read again from the tape of its run.

use std::collections::HashMap;
use std::sync::Arc;

use palyra_common::{ErrorCategory, StableErrorEnvelope};

use super::ids;
use super::items::Item;
use super::messages::Said;
use super::retrieve::{End, begun, tell};
use crate::app::App;
use crate::dispatch::{Caller, Refusal, Result};

/// Most messages that one request may name: each is read from a tape, so a small request must not ask for very many.
const MOST: usize = 512;

/// Puts what was said in the place of what was named.
pub(super) async fn resolve(app: &Arc<App>, caller: &Caller, items: Vec<Item>) -> Result<Vec<Said>> {
    let mut read: HashMap<String, String> = HashMap::new();
    let mut said = Vec::with_capacity(items.len());
    for item in items {
        let (id, at) = match item {
            Item::Said(words) => {
                said.push(words);
                continue;
            }
            Item::Reference { id, at } => (id, at),
        };
        if let Some(call) = ids::read_call_item(&id) {
            said.push(Said::Assistant { text: String::new(), calls: vec![call] });
            continue;
        }
        if !read.contains_key(&id) {
            if read.len() == MOST {
                return Err(Refusal::field(&at, format!("more than {MOST} messages are referenced; send them inline")));
            }
            let text = text_of(app, caller, &id, &at).await?;
            read.insert(id.clone(), text);
        }
        said.push(Said::Assistant { text: read.get(&id).cloned().unwrap_or_default(), calls: Vec::new() });
    }
    Ok(said)
}

async fn text_of(app: &Arc<App>, caller: &Caller, id: &str, at: &str) -> Result<String> {
    let Some((run_id, from_seq)) = ids::read_message_place(id) else { return Err(unknown(id)) };
    let run = begun(app, caller, run_id, from_seq).await?.ok_or_else(|| unknown(id))?;
    let told = tell(app, caller.clone(), &run, from_seq).await?;
    match told.end {
        End::UnderWay => Err(Refusal::field(at, "its response is not finished")),
        End::Ended(_) | End::Failed(_) => Ok(told.text),
    }
}

/// An item that is none of ours.
fn unknown(id: &str) -> Refusal {
    let shown: String = id.chars().take(100).collect();
    StableErrorEnvelope::new("response_not_found", ErrorCategory::NotFound, format!("there is no item `{shown}`"))
        .hint("use items of responses from this daemon to the same user, or send them inline")
        .into()
}
