//! Going beyond a budget, if a person agrees.
//!
//! A run that stopped at a budget is over and can be resumed. Resumed with an amount, it asks a person whether it may spend that much more; only an
//! answer of yes grants the amount and lets it go on, everything else leaves it as it was.

use palyra_budget::MicroUsd;
use palyra_common::{ApprovalDecision, ApprovalId, ApprovalSubject, Digest, Risk, TerminationReason, Timestamp};
use serde_json::json;

use super::action::{Action, Question};
use super::displayed::Displayed;
use super::state::{Ending, MoneyQuestion, Phase};
use super::{Machine, Rejected};

/// What the question is about, where a call's id would stand.
const CALL: &str = "budget";
/// What the question is about, where a tool's name would stand.
const TOOL: &str = "palyra.budget";

impl Machine {
    /// Lets a run go on that its model or its budget stopped; asks first if it is to go beyond a budget.
    pub(super) fn take_up(
        &mut self,
        ending: Ending,
        over_budget: Option<MicroUsd>,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        match over_budget {
            None => self.call_model(1, at, out),
            Some(_) if ending.reason != TerminationReason::BudgetExceeded => {
                return Err(self.reject("it did not stop at a budget"));
            }
            Some(amount) => self.ask_for_money(ending, amount, at, out),
        }
        Ok(())
    }

    fn ask_for_money(&mut self, ending: Ending, amount: MicroUsd, at: Timestamp, out: &mut Vec<Action>) {
        let arguments = json!({ "micro_usd": amount.0 });
        let summary = format!("spend up to {amount} beyond the budgets");
        let displayed = Displayed {
            subject: ApprovalSubject::BudgetOverride,
            reasons: ending.detail.iter().map(|detail| detail.message.clone()).collect(),
            ..Displayed::step(Question::SpendMore, Risk::Medium, TOOL, arguments, summary)
        };
        let older = Digest::of_parts(&[TOOL.as_bytes(), &amount.0.to_be_bytes()]);
        let (approval_id, expires_at) = self.put_question(CALL, displayed, older, at, out);
        self.enter(Phase::AskingForMoney(MoneyQuestion { approval_id, amount, expires_at, ending }), at, out);
    }

    /// What a person said to it, if this is the question that is open.
    pub(super) fn on_money_decided(
        &mut self,
        id: ApprovalId,
        decision: ApprovalDecision,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Option<()> {
        let Phase::AskingForMoney(question) = &self.phase else { return None };
        if question.approval_id != id {
            return None;
        }
        let MoneyQuestion { amount, ending, .. } = question.clone();
        if decision == ApprovalDecision::Allow {
            out.push(Action::GrantBudget { micro_usd: amount });
            self.call_model(1, at, out);
        } else {
            self.enter(Phase::Failed(ending), at, out);
        }
        Some(())
    }
}
