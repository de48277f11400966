//! Which providers answered before this process began, where somebody keeps that.
//!
//! A provider that has answered before and cannot be reached is away and is waited for; one that never answered is more likely configured wrongly. Whoever restarts
//! while a provider is away must not take the one for the other.

use crate::accounts::Account;

/// Keeps which accounts have answered, beyond the life of a process.
pub trait AnswerMemory: Send + Sync {
    /// Whether this account has ever answered, as it is configured now.
    fn has_answered(&self, provider: &str, account: &Account) -> bool;
    /// It has answered. Called once for an account in the life of a router; returns soon, since the answer waits for it.
    fn note_answer(&self, provider: &str, account: &Account);
}
