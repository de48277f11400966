//! Asking the model of an auxiliary task: at most twice, and the answer fits its contract or nothing comes of it.

use std::time::Duration;

use palyra_common::{Digest, RunId, ToStableError as _};
use palyra_models::{
    AssembledTurn, ModelError, ModelErrorClass, ModelRequest, Purpose, ReasoningEffort, StopReason, ToolChoice,
    TurnAssembler,
};
use palyra_safety::FrameNonce;

use super::records::TaskBill;
use super::task::Task;
use crate::auxiliary::{AuxiliaryError, AuxiliaryOutput, Prompt};
use crate::engine::EngineOptions;
use crate::engine::spending::{Metered, MeteredCall, Payer};

/// Answers that are asked for before a task fails.
const ATTEMPTS: u32 = 2;

/// The output of a task; `bill` holds what it cost, whatever comes of it and however far it gets.
pub(super) async fn ask(
    options: &EngineOptions,
    task: &Task,
    bill: &mut TaskBill,
) -> Result<AuxiliaryOutput, AuxiliaryError> {
    let mut complaint = None;
    for attempt in 1..=ATTEMPTS {
        let turn = call(options, task, attempt, complaint.as_deref(), bill).await?;
        match task.input.read_answer(&turn) {
            Ok(mut output) => {
                for text in output.texts_mut() {
                    *text = options.safety.before_export(std::mem::take(text));
                }
                return Ok(output);
            }
            Err(why) => {
                tracing::debug!(kind = %task.input.kind(), attempt, why, "an auxiliary answer does not fit its contract");
                complaint = Some(why);
            }
        }
    }
    Err(AuxiliaryError::Output { kind: task.input.kind(), why: complaint.unwrap_or_default() })
}

async fn call(
    options: &EngineOptions,
    task: &Task,
    attempt: u32,
    complaint: Option<&str>,
    bill: &mut TaskBill,
) -> Result<AssembledTurn, AuxiliaryError> {
    let Prompt { messages } = Prompt::new(&task.input, nonce(task), complaint);
    let request = ModelRequest {
        model: task.model.clone(),
        // None are described; a model that asks for one all the same is refused.
        tool_choice: ToolChoice::Forbidden,
        output: task.input.output_shape(),
        max_output_tokens: Some(task.input.budget_tokens()),
        // Small jobs with a small room for the answer: thoughts would use it up.
        effort: Some(ReasoningEffort::Minimal),
        agent: task.agent.clone(),
        ..ModelRequest::new(task.payer_run(), task.turn, Purpose::Auxiliary(task.input.kind()), messages)
    };
    let payer = Payer {
        run_id: task.payer_run(),
        session_id: task.session_id,
        agent: task.agent.clone(),
        call: format!("auxiliary.{}.{attempt}", task.id),
    };
    bill.calls += 1;
    let mut call = MeteredCall::begin(options, payer, request, Duration::ZERO);
    let mut assembler = TurnAssembler::new();
    let failed = |error: &ModelError| AuxiliaryError::Model(Box::new(error.to_stable()));
    loop {
        match call.next().await {
            Metered::Event(event) => assembler.push(&event).map_err(|error| failed(&error))?,
            Metered::Finished { usage, cost } => {
                bill.usage = bill.usage.plus(usage);
                bill.cost = std::mem::take(&mut bill.cost).plus(cost);
                break;
            }
            Metered::Failed { error, usage, cost } => {
                bill.answering = assembler.finish().answering.or(bill.answering.take());
                bill.usage = bill.usage.plus(usage);
                bill.cost = std::mem::take(&mut bill.cost).plus(cost);
                return Err(failed(&error));
            }
            Metered::Refused { error, cost } => {
                bill.cost = std::mem::take(&mut bill.cost).plus(cost);
                return Err(AuxiliaryError::Model(error));
            }
        }
    }
    let turn = assembler.finish();
    bill.answering = turn.answering.clone().or(bill.answering.take());
    if turn.stop_reason == StopReason::ContentFilter {
        let refused = ModelError::new(ModelErrorClass::ContentPolicy, "the provider withheld the answer");
        return Err(failed(&refused));
    }
    Ok(turn)
}

/// A nonce that nothing in the input can know: it is drawn after the input was written.
fn nonce(task: &Task) -> FrameNonce {
    let digest = Digest::of_parts(&[task.id.to_string().as_bytes(), RunId::generate().to_string().as_bytes()]);
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(digest.0) {
        *to = from;
    }
    FrameNonce::new(bytes)
}
