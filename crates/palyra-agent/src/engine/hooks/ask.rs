//! Asking hooks one after the other.
//!
//! Each has its deadline; a panic behind the port is a failure like any other. Secrets are cut out of what hooks are told and of what they say.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use palyra_common::HookDecision;
use serde_json::Value;

use crate::engine::safety::Safety;
use crate::hooks::{
    HookAnswer, HookBindingRecord, HookFailure, HookOccurrence, HookResult, HookRunner, HookSaid, checked, plain,
};

/// Asks all of them in the given order; nobody is asked after one that ends the run. A text that one proposes is shown to those after it.
pub(super) async fn all(
    runner: &dyn HookRunner,
    safety: &Safety,
    bindings: Vec<HookBindingRecord>,
    mut occurrence: HookOccurrence,
) -> Vec<HookResult> {
    safety.clean(&mut occurrence.payload);
    let mut results = Vec::new();
    for binding in bindings {
        let began = Instant::now();
        let said = one(runner, safety, &binding, &occurrence).await;
        if let HookSaid::Failed(failure) = &said {
            tracing::warn!(hook = binding.id, plugin = binding.plugin_id, %failure, "a hook gave no valid answer");
        }
        let ends = matches!(&said, HookSaid::Answered(answer) if answer.decision == HookDecision::FailRun);
        if let (HookSaid::Answered(HookAnswer { text: Some(text), .. }), Value::Object(payload)) =
            (&said, &mut occurrence.payload)
        {
            payload.insert("proposed".to_owned(), Value::String(text.clone()));
        }
        results.push(HookResult {
            hook: binding.id,
            plugin: binding.plugin_id,
            on_failure: binding.on_failure,
            said,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        if ends {
            break;
        }
    }
    results
}

async fn one(
    runner: &dyn HookRunner,
    safety: &Safety,
    binding: &HookBindingRecord,
    occurrence: &HookOccurrence,
) -> HookSaid {
    let deadline = Duration::from_millis(binding.deadline_ms);
    let asked = AssertUnwindSafe(runner.run(binding, occurrence, deadline)).catch_unwind();
    let answer = match tokio::time::timeout(deadline, asked).await {
        Err(_) => Err(HookFailure::TimedOut),
        Ok(Err(_)) => Err(HookFailure::Failed("it panicked".to_owned())),
        Ok(Ok(answer)) => answer,
    };
    let clean = |text: String| safety.before_export(plain(&text));
    match answer {
        Ok(mut answer) => {
            answer.reason = clean(answer.reason);
            answer.text = answer.text.map(|text| safety.before_export(text));
            checked(occurrence.event, answer)
        }
        Err(HookFailure::Unavailable(why)) => HookSaid::Failed(HookFailure::Unavailable(clean(why))),
        Err(HookFailure::Failed(why)) => HookSaid::Failed(HookFailure::Failed(clean(why))),
        Err(other) => HookSaid::Failed(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use palyra_common::{HookEvent, Timestamp};
    use palyra_safety::{Scanner, VaultEntry};
    use serde_json::json;

    use super::*;

    const SECRET: &str = "correct-horse-battery-staple";

    /// Repeats what it is told, and shouts the secret.
    #[derive(Default)]
    struct Parrot(Mutex<Vec<HookOccurrence>>);

    #[async_trait]
    impl HookRunner for Parrot {
        async fn run(
            &self,
            binding: &HookBindingRecord,
            occurrence: &HookOccurrence,
            _: Duration,
        ) -> Result<HookAnswer, HookFailure> {
            self.0.lock().unwrap().push(occurrence.clone());
            match binding.id.as_str() {
                "fails" => Err(HookFailure::Failed(format!("cannot use {SECRET}"))),
                _ => Ok(HookAnswer {
                    decision: HookDecision::TransformPreview,
                    reason: format!("found {SECRET}"),
                    text: Some(format!("text with {SECRET}")),
                }),
            }
        }
    }

    #[tokio::test]
    async fn secrets_neither_reach_hooks_nor_come_back_from_them() {
        let vault = [VaultEntry { name: "token".to_owned(), value: SECRET.to_owned().into() }];
        let safety = Safety::new(Scanner::new(&vault).unwrap());
        let event = HookEvent::RunBeforeDelivery;
        let bindings = ["answers", "fails"].map(|id| HookBindingRecord::new(id, event, "p")).to_vec();
        let payload = json!({ "answer": format!("it is {SECRET}"), "deep": [{ "er": SECRET }] });
        let runner = Parrot::default();
        let results = all(&runner, &safety, bindings, HookOccurrence::new(event, Timestamp(0), payload)).await;
        let told = format!("{:?}", runner.0.lock().unwrap());
        assert!(!told.contains(SECRET) && told.contains("redacted"), "{told}");
        let said = format!("{results:?}");
        assert!(!said.contains(SECRET) && said.contains("text with") && said.contains("cannot use"), "{said}");
    }
}
