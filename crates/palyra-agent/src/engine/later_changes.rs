//! Says of each finished call which of its changes take effect later, before the machine takes its result in.
//!
//! What decides that lies in the workspace: links, git configuration, repositories. It is surveyed after the first call that changed something, and again after a program ran. Surveys of
//! one run are joined, so that nothing is forgotten that a call put away for a while; a driver that was restarted learns it from the tape.

use std::sync::Arc;

use palyra_common::RunId;
use palyra_tools::{FileChange, LaterSurvey, ToolError, Workspace};

use super::{Engine, Shared};
use crate::machine::{Input, Machine};

/// What is known of the workspace of a run.
#[derive(Default)]
pub(super) struct LaterChanges {
    survey: Option<LaterSurvey>,
    is_outdated: bool,
}

impl LaterChanges {
    /// Puts into the result of a finished call which of its changes take effect later. What cannot be looked at counts.
    pub(super) async fn note(
        &mut self,
        shared: &Arc<Shared>,
        machine: &Machine,
        workspace: &Arc<Workspace>,
        input: &mut Input,
    ) {
        let Input::ToolFinished { call_id, result, .. } = input else { return };
        if result.changes.is_empty() {
            return;
        }
        let given = machine.given_to(call_id).integrity;
        let known = self.survey.take();
        let earlier = match known {
            Some(_) => Vec::new(),
            None => earlier_changes(shared, machine.spec().run_id).await,
        };
        let is_outdated = self.is_outdated || LaterSurvey::is_outdated_by(&result.changes, &[]);
        let (artifacts, workspace) = (Arc::clone(&shared.artifacts), Arc::clone(workspace));
        let changes = result.changes.clone();
        let examined = tokio::task::spawn_blocking(move || {
            let mut survey = current(known, is_outdated, &workspace)?;
            survey.remember(&earlier, &workspace, artifacts.as_ref());
            let later = survey.later_changes(&changes, &workspace, artifacts.as_ref(), given);
            Ok::<_, ToolError>((survey, later))
        });
        result.later = match examined.await {
            Ok(Ok((survey, later))) => {
                self.survey = Some(survey);
                later
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the workspace could not be surveyed for what takes effect later");
                LaterSurvey::unexamined(&result.changes)
            }
            Err(error) => {
                tracing::error!(%error, "changes could not be examined for what takes effect later");
                LaterSurvey::unexamined(&result.changes)
            }
        };
        self.is_outdated = LaterSurvey::is_outdated_by(&[], &result.later);
    }
}

/// A survey of the workspace as it is now, with all that is known from before.
fn current(known: Option<LaterSurvey>, is_outdated: bool, workspace: &Workspace) -> Result<LaterSurvey, ToolError> {
    match known {
        Some(survey) if !is_outdated => Ok(survey),
        known => {
            let mut survey = LaterSurvey::of(workspace)?;
            if let Some(known) = known {
                survey.join(&known);
            }
            Ok(survey)
        }
    }
}

/// What the run changed so far, by its tape.
async fn earlier_changes(shared: &Arc<Shared>, run_id: RunId) -> Vec<FileChange> {
    let engine = Engine { shared: Arc::clone(shared) };
    match engine.run_details(run_id).await {
        Ok(details) => details.changes,
        Err(error) => {
            tracing::warn!(%run_id, %error, "the earlier changes of the run cannot be read");
            Vec::new()
        }
    }
}
