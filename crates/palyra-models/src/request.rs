//! What a provider is asked: one model call, complete in itself.
//!
//! Providers keep no conversation of their own. A request carries everything, so the same request may be sent again after
//! a crash, and replay can compare requests.

use palyra_common::{AuxiliaryTaskKind, RunId};
use serde::{Deserialize, Serialize};

use crate::message::{Message, Role, ToolSpec};

/// Why a model is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn of a run: the model may speak and ask for tools.
    Turn,
    /// A helper task with a fixed output contract and no tools.
    Auxiliary(AuxiliaryTaskKind),
}

/// One model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// Model to use; empty means the provider's own default.
    pub model: String,
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// Tools the model may ask for.
    pub tools: Vec<ToolSpec>,
    /// Upper bound of the answer.
    pub max_output_tokens: Option<u32>,
    /// Why the model is called.
    pub purpose: Purpose,
    /// The run this call belongs to.
    pub run_id: RunId,
    /// Which model turn of the run this is, from 1.
    pub turn: u32,
}

impl ModelRequest {
    /// Position of the newest user message.
    pub(crate) fn last_user(&self) -> Option<usize> {
        self.messages.iter().rposition(|message| message.role == Role::User)
    }

    /// What came after the newest user message: the work on it so far.
    pub(crate) fn since_last_user(&self) -> &[Message] {
        self.last_user().and_then(|at| self.messages.get(at + 1..)).unwrap_or_default()
    }
}
