//! Tokens as the API counts them: cached ones apart from the others, in numbers that grow until the end.

use serde_json::Value;

use crate::event::Usage;
use crate::wire::count;

/// What has been counted so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counted {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    thinking: u64,
    /// A count was sent that is no plausible number.
    unreadable: bool,
}

impl Counted {
    /// Takes what an event says. Later numbers are totals, and those that did not change may be left out.
    pub(super) fn read(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let mut unreadable = false;
        let mut set = |place: &mut u64, value: Option<&Value>| match value {
            None | Some(Value::Null) => {}
            Some(value) => match count(value) {
                Some(count) => *place = count,
                None => unreadable = true,
            },
        };
        set(&mut self.input, usage.get("input_tokens"));
        set(&mut self.cache_read, usage.get("cache_read_input_tokens"));
        set(&mut self.cache_write, usage.get("cache_creation_input_tokens"));
        set(&mut self.output, usage.get("output_tokens"));
        set(&mut self.thinking, usage.pointer("/output_tokens_details/thinking_tokens"));
        self.unreadable |= unreadable;
    }

    /// All of it, cached tokens among those of the request; nothing if a count could not be read.
    pub(super) fn total(self) -> Option<Usage> {
        let total = Usage {
            input_tokens: self.input.saturating_add(self.cache_read).saturating_add(self.cache_write),
            output_tokens: self.output,
            cached_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.thinking.min(self.output),
            ..Usage::default()
        };
        (!self.unreadable).then_some(total)
    }
}
