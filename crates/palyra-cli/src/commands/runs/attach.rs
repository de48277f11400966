//! `palyra runs attach RUN`: follows a run as `palyra run` does, from its beginning to its end.

use clap::Args;
use palyra_common::ExitCode;

use super::RunArgument;
use crate::commands::run::follow::{FollowOptions, OnInterrupt};
use crate::commands::run::questions::QuestionArguments;
use crate::commands::run::signals::Signals;
use crate::commands::run::{follow_and_conclude, introduce};
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

/// Which run, and what to do when it asks.
#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    #[command(flatten)]
    run: RunArgument,
    #[command(flatten)]
    questions: QuestionArguments,
}

pub(super) async fn execute(arguments: &AttachArguments, context: &Context) -> Result<ExitCode, CliError> {
    let questions = arguments.questions.policy(&context.console)?;
    let (client, health, _) = launcher::ensure(context).await?;
    let signals = Signals::listen()?;
    let detail = client.run(arguments.run.resolve(&client).await?).await?;
    let agent = detail.agent.map(|agent| agent.agent_id);
    introduce(&client, &detail.run, agent, &health.provider, context).await;
    let options = FollowOptions { questions, on_interrupt: OnInterrupt::Leave, history_until: detail.run.last_seq };
    follow_and_conclude(&client, &detail.run, options, signals, context).await
}
