//! `palyra policy …`: what may happen, looked at without a daemon.
//!
//! The set in force is the shipped policies with the directory that `policy.directory` names. Patterns that people agreed to belong to
//! the daemon's state and are not part of it here.

mod check;
mod diff;
mod explain;
mod lint;
mod past;
mod prove;
mod request;
mod sets;
mod simulate;
mod test;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
Examples:
  palyra policy check                             are the policies in force valid?
  palyra policy explain --tool mcp.mail.send --server mail --arg to=eve@example.org \\
      --sink to=destination --from to=untrusted   what would be decided, and why?
  palyra policy explain --decision last/t1c1      why was that decided?
  palyra policy simulate new-policies/            which past decisions would be different?
  palyra policy prove new-policies/               does the change only restrict?

A proposal is a directory that would replace the operator's, or one `*.cedar` file that would be added to it.
Exit code 7: lint has warnings, a test failed, or the proposal permits more.";

/// What to do with policies.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PolicyCommand {
    /// Load and validate the policies in force, or a proposal
    Check(check::CheckArguments),
    /// Explain how a request is decided, and by which policies
    Explain(Box<explain::ExplainArguments>),
    /// Warn about valid policies that are probably mistakes
    Lint(lint::LintArguments),
    /// Run the tests in `*.policy-test.toml` files
    Test(test::TestArguments),
    /// Show how a proposal differs from the policies in force
    Diff(diff::DiffArguments),
    /// Replay past decisions with a proposal, and list what would change
    Simulate(simulate::SimulateArguments),
    /// Prove that a proposal permits nothing new, or find a counterexample
    Prove(prove::ProveArguments),
}

pub(super) fn execute(command: &PolicyCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        PolicyCommand::Check(arguments) => check::execute(arguments, context),
        PolicyCommand::Explain(arguments) => explain::execute(arguments, context),
        PolicyCommand::Lint(arguments) => lint::execute(arguments, context),
        PolicyCommand::Test(arguments) => test::execute(arguments, context),
        PolicyCommand::Diff(arguments) => diff::execute(arguments, context),
        PolicyCommand::Simulate(arguments) => simulate::execute(arguments, context),
        PolicyCommand::Prove(arguments) => prove::execute(arguments, context),
    }
}
