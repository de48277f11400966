//! `palyra usage`.

use clap::Args;
use palyra_budget::{UsageGrouping, UsageSums};
use palyra_client::api::{BudgetView, UsageParams, UsageResponse};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;
use crate::render::table;

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct UsageArguments {
    /// Group by model, session, agent or day
    #[arg(long, value_name = "WHAT", default_value = "model")]
    by: UsageGrouping,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
}

pub(super) async fn execute(arguments: UsageArguments, context: &Context) -> Result<ExitCode, CliError> {
    let usage = launcher::connect(context).await?.usage(&UsageParams { by: Some(arguments.by) }).await?;
    let console = &context.console;
    if arguments.csv {
        console.piece(&usage.report.to_csv())?;
    } else if !console.is_text() {
        console.document(&usage)?;
    } else if usage.report.groups.is_empty() && usage.budgets.is_empty() {
        console.remark("no model calls yet");
    } else {
        lines(&usage).iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn lines(usage: &UsageResponse) -> Vec<String> {
    let mut rows: Vec<[String; 6]> =
        usage.report.groups.iter().map(|group| row(group.key.clone(), &group.sums)).collect();
    if rows.len() > 1 {
        rows.push(row("total".to_owned(), &usage.report.total));
    }
    let name = usage.report.by.to_string().to_uppercase();
    let mut lines = table::lines([name.as_str(), "CALLS", "INPUT", "CACHED", "OUTPUT", "COST"], &rows);
    if !usage.report.total.assumed_micro_usd.is_zero() {
        lines.push("~ an upper bound: a price or a token count was not known".to_owned());
    }
    if !usage.budgets.is_empty() {
        let budgets: Vec<[String; 4]> = usage.budgets.iter().map(budget).collect();
        lines.push(String::new());
        lines.extend(table::lines(["BUDGET", "SPENT", "SOFT LIMIT", "HARD LIMIT"], &budgets));
    }
    lines
}

fn row(key: String, sums: &UsageSums) -> [String; 6] {
    let mark = if sums.assumed_micro_usd.is_zero() { "" } else { "~" };
    [
        key,
        sums.calls.to_string(),
        sums.tokens.input.to_string(),
        sums.tokens.cached.to_string(),
        sums.tokens.output.to_string(),
        format!("{mark}{}", sums.micro_usd),
    ]
}

fn budget(budget: &BudgetView) -> [String; 4] {
    let amount =
        |amount: Option<palyra_budget::MicroUsd>| amount.map_or_else(|| "-".to_owned(), |some| some.to_string());
    let spent = match (budget.spent, budget.reserved) {
        (Some(spent), Some(reserved)) if !reserved.is_zero() => format!("{spent} (+{reserved} reserved)"),
        (Some(spent), _) => spent.to_string(),
        (None, _) => "per item".to_owned(),
    };
    [budget.scope.to_string(), spent, amount(budget.soft), amount(budget.hard)]
}
