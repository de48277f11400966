//! Summaries of the context: putting one in the place of older items, and taking the newest one back.
//!
//! The machine does not keep what a summary stands for: it is on the tape, and whoever takes a summary back hands it in. A run has to be held for that, so
//! that no call is under way whose context would change.

use palyra_common::{Label, Timestamp};

use super::action::Action;
use super::state::{Activity, Phase};
use super::{Machine, Rejected};
use crate::context::{self, Item};

impl Machine {
    pub(super) fn on_compacted(
        &mut self,
        replaces: u32,
        summary: String,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        match self.phase {
            Phase::Running(Activity::Compacting { replaces: expected }) if expected == replaces => {}
            _ => return Err(self.reject("no such summary is in progress")),
        }
        let end = 1 + replaces as usize;
        let replaced: Vec<Item> = self.items.drain(1..end.min(self.items.len())).collect();
        let label = replaced.iter().fold(Label::system(), |joined, item| joined.join(&item.label()));
        self.items.insert(1, Item::Summary { text: summary, replaces: stands_for(&replaced), label });
        self.call_model_if_it_fits(at, out);
        Ok(())
    }

    /// Puts back what the newest summary stands for.
    pub(super) fn on_compaction_reverted(&mut self, originals: Vec<Item>) -> Result<(), Rejected> {
        let is_held = match &self.phase {
            Phase::Paused(activity) => !matches!(activity, Activity::Compacting { .. } | Activity::Stopping { .. }),
            Phase::WaitingForApproval(_) | Phase::AskingForMoney(_) | Phase::AskingForHook(_) => true,
            Phase::Failed(_) => self.may_be_taken_up(),
            _ => false,
        };
        if !is_held {
            return Err(self.reject("its context can only be changed while it is held; pause it first"));
        }
        let Some(Item::Summary { replaces, .. }) = self.items.get(1) else {
            return Err(self.reject("nothing of its context is summarised"));
        };
        if *replaces != stands_for(&originals) {
            return Err(self.reject("this is not what the summary stands for"));
        }
        let mut items = self.items.clone();
        items.splice(1..=1, originals);
        if u64::from(context::tokens(&self.spec, &items)) > self.fills_up_at() {
            return Err(self.reject("what the summary stands for does not fit the model's window any more"));
        }
        self.items = items;
        Ok(())
    }

    /// Tokens of context above which older items are summarised.
    pub(super) fn fills_up_at(&self) -> u64 {
        u64::from(self.spec.room()) * u64::from(self.spec.limits.compact_at_percent) / 100
    }
}

/// How many items of the run these are, those behind earlier summaries counted.
fn stands_for(items: &[Item]) -> u32 {
    items.iter().map(|item| if let Item::Summary { replaces, .. } = item { *replaces } else { 1 }).sum()
}
