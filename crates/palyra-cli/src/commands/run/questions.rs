//! What `palyra run` and `palyra runs attach` do when the run asks before it acts.

use clap::{Args, ValueEnum};

use crate::commands::approvals::desk::{QuestionPolicy, Unattended};
use crate::console::{Console, TerminalInput};
use crate::error::CliError;

/// How questions are answered.
#[derive(Debug, Args)]
pub(crate) struct QuestionArguments {
    /// Without a terminal to ask at, wait until someone answers elsewhere instead of ending with exit code 6
    #[arg(long)]
    wait: bool,
    /// When the run asks before it acts: `deny` refuses every question, `ask-tty` insists on a terminal
    /// [default: ask at the terminal if there is one]
    #[arg(long, value_name = "ANSWER", conflicts_with = "wait", hide_possible_values = true)]
    on_approval: Option<OnApproval>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnApproval {
    /// Refuse every question
    Deny,
    /// Ask at the terminal, and refuse to start without one
    AskTty,
}

impl QuestionArguments {
    /// What is done about questions at this console.
    pub(crate) fn policy(&self, console: &Console) -> Result<QuestionPolicy, CliError> {
        match self.on_approval {
            Some(OnApproval::Deny) => Ok(QuestionPolicy::Deny),
            Some(OnApproval::AskTty) if matches!(console.terminal_input(), TerminalInput::Absent) => {
                Err(CliError::Usage {
                    reason: "`--on-approval ask-tty` needs a terminal, and this command has none".to_owned(),
                    usage: None,
                })
            }
            Some(OnApproval::AskTty) => Ok(QuestionPolicy::Ask(Unattended::Leave)),
            None if self.wait => Ok(QuestionPolicy::Ask(Unattended::Wait)),
            None => Ok(QuestionPolicy::Ask(Unattended::Leave)),
        }
    }
}
