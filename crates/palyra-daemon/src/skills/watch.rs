//! Installed skills are audited again from time to time: files may be tampered with, audits learn, and publishers and registries take things back. What loading
//! them finds out in between is told to hooks, too.

use std::sync::Arc;
use std::time::Duration;

use palyra_skills::{AuditCause, SkillId};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::dispatch;

/// Who audits, on the journal.
const PALYRA: &str = "palyra";
/// How long after a start the first audit waits: whoever started a daemon for one command is served first.
const FIRST: Duration = Duration::from_secs(60);

/// Audits every installed skill again and again until told to stop.
pub(crate) async fn keep_audited(app: Arc<App>, closing: CancellationToken) {
    let every = Duration::from_secs(app.config.config().skills.audit_interval_seconds);
    let mut wait = FIRST.min(every);
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = every;
        for changed in app.skills.visit_registries(PALYRA).await {
            dispatch::tell_hooks(&app, &changed).await;
        }
        let all: Vec<SkillId> =
            app.skills.with_index(|index| index.skills().map(|skill| skill.skill_id.clone()).collect());
        for skill_id in all {
            match app.skills.audit(&skill_id, PALYRA, AuditCause::Routine).await {
                Ok(changed) => dispatch::tell_hooks(&app, &changed).await,
                Err(refusal) => {
                    tracing::error!(skill = %skill_id, error = %refusal.envelope().message, "a skill could not be audited");
                }
            }
        }
    }
}

/// Tells hooks what loading a skill found out, such as a module that was tampered with while no daemon ran.
pub(crate) async fn keep_told(app: Arc<App>, closing: CancellationToken) {
    loop {
        let changed = tokio::select! {
            () = closing.cancelled() => return,
            changed = app.skills.found() => changed,
        };
        dispatch::tell_hooks(&app, &changed).await;
    }
}
