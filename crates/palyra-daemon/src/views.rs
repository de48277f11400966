//! Rows of the engine as wire types. No decisions here, only shapes.

use std::collections::BTreeMap;

use palyra_agent::replay::Replayed;
use palyra_agent::{
    AgentProfile, AgentRow, ApprovalRow, Bound, CallNotRun, Mandate, PatternRow, Plan, PlanStep, ReducedIsolation,
    RunDetails, RunRow, SessionRow, SessionSettings, Standing, UnavailableSource, UndoneRun,
};
use palyra_client::api::{
    AgentView, ApprovalAnswer, ApprovalView, CallNotRunView, FileChangeKind, FileChangeView, IntentView,
    JournalRecordView, PatternView, PlanStepView, ProblemView, ReducedIsolationView, RemainingFileView,
    ReplayDifference, ReplayReport, RunAgentView, RunDetail, RunTimings, RunUsage, RunView, SessionSettingsView,
    SessionView, UnavailableToolsView, UndoAction, UndoResponse, UndoneFile, VerifyReport,
};
use palyra_common::ChangeAttribution;
use palyra_journal::StoredRecord;
use palyra_tools::{EntryKind, FileChange, RemainingFile};
use serde_json::{Value, json};

/// A run; its newest position is not in its row.
pub(crate) fn run(row: RunRow, last_seq: u64) -> RunView {
    RunView {
        run_id: row.run_id,
        session_id: row.session_id,
        owner: row.owner,
        phase: row.phase,
        reason: row.reason,
        detail: row.detail,
        prompt: row.prompt,
        workspace: row.workspace,
        created_at: row.created_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
        turns: row.turns,
        tool_calls: row.tool_calls,
        last_seq,
        model: row.model,
        undone: row.undone,
    }
}

fn settings(settings: SessionSettings) -> SessionSettingsView {
    SessionSettingsView { model: settings.model, workspace: settings.workspace, agent: settings.agent }
}

/// An agent.
pub(crate) fn agent(row: AgentRow) -> AgentView {
    let AgentProfile { agent_id, name, instructions, model, mode, workspace, tools } = row.profile;
    AgentView {
        agent_id,
        name,
        instructions,
        model,
        mode,
        workspace,
        tools,
        version: row.version,
        created_at: row.created_at,
        updated_at: row.updated_at,
        updated_by: row.updated_by,
    }
}

/// A run with everything about it.
pub(crate) fn run_detail(details: RunDetails) -> RunDetail {
    let mut row = details.row;
    let answer = row.answer.take();
    row.prompt = details.prompt;
    RunDetail {
        run: run(row, details.last_seq),
        answer,
        mode: details.mode,
        agent: Some(RunAgentView { agent_id: details.agent, version: details.agent_version }),
        envelope: details.envelope.into_iter().map(mandate_view).collect(),
        plan: details.plan.map(plan).unwrap_or_default(),
        changes: net_changes(details.changes.iter().chain(&details.taken_back)),
        not_run: details.not_run.into_iter().map(not_run).collect(),
        reduced_isolation: details.reduced_isolation.into_iter().map(reduced_isolation).collect(),
        unavailable_tools: details.unavailable_tools.into_iter().map(unavailable_tools).collect(),
        pending_approvals: details.open_approvals.into_iter().map(approval).collect(),
        usage: RunUsage {
            input_tokens: details.input_tokens,
            output_tokens: details.output_tokens,
            cost: details.cost.map(|cost| cost.micro_usd),
            cost_assumed: details.cost.is_some_and(|cost| cost.assumed),
        },
        timings: RunTimings {
            total_ms: details.timings.total_ms,
            model_ms: details.timings.model_ms,
            tools_ms: details.timings.tools_ms,
            waiting_ms: details.timings.waiting_ms,
        },
    }
}

fn plan(plan: Plan) -> Vec<PlanStepView> {
    let view = |step: PlanStep| PlanStepView { text: step.text, status: step.status.to_string() };
    plan.items.into_iter().map(view).collect()
}

fn not_run(call: CallNotRun) -> CallNotRunView {
    CallNotRunView { call_id: call.call_id, tool: call.tool, arguments: call.arguments, error: call.error }
}

fn reduced_isolation(call: ReducedIsolation) -> ReducedIsolationView {
    let ReducedIsolation { call_id, tool, arguments, tier, reasons } = call;
    ReducedIsolationView { call_id, tool, arguments, tier, reasons }
}

fn unavailable_tools(missing: UnavailableSource) -> UnavailableToolsView {
    UnavailableToolsView { source: missing.source, reason: missing.reason }
}

fn mandate_view(standing: Standing) -> IntentView {
    let Mandate { tool, destinations, arguments, times: _, from } = standing.mandate;
    let value = |bound: Bound| match bound {
        Bound::Each(each) => json!(each),
        Bound::Exactly(value) => value,
    };
    let arguments = arguments.into_iter().map(|(name, bound)| (name, value(bound))).collect();
    IntentView { tool, destinations, arguments, times: standing.left, from }
}

/// A mandate that a person grants.
pub(crate) fn mandate(view: IntentView) -> Mandate {
    let IntentView { tool, destinations, arguments, times, from } = view;
    let bound = |value: Value| match serde_json::from_value(value.clone()) {
        Ok(each) => Bound::Each(each),
        Err(_) => Bound::Exactly(value),
    };
    let arguments = arguments.into_iter().map(|(name, value)| (name, bound(value))).collect();
    Mandate { tool, destinations, arguments, times, from }
}

/// From before the first change of each file to after its last; a file that is as it was is left out.
fn net_changes<'c>(changes: impl IntoIterator<Item = &'c FileChange>) -> Vec<FileChangeView> {
    let mut files: BTreeMap<&str, (&FileChange, &FileChange, ChangeAttribution)> = BTreeMap::new();
    for change in changes {
        let (_, last, attribution) = files.entry(&change.path).or_insert((change, change, change.attribution));
        *last = change;
        *attribution = change.attribution.max(*attribution);
    }
    files
        .into_iter()
        .filter_map(|(path, (first, last, attribution))| {
            let (before, after) = (first.before, last.after);
            let kind = match (before, after) {
                (before, after) if before == after => return None,
                (None, _) => FileChangeKind::Created,
                (_, None) => FileChangeKind::Deleted,
                _ => FileChangeKind::Modified,
            };
            Some(FileChangeView { path: path.to_owned(), kind, before, after, attribution })
        })
        .collect()
}

/// A question and its answer.
pub(crate) fn approval(row: ApprovalRow) -> ApprovalView {
    let answer = match (row.decision, row.scope, row.by, row.closed_at) {
        (Some(decision), Some(scope), Some(by), Some(at)) => {
            Some(ApprovalAnswer { decision, scope, by, via: row.via, at })
        }
        _ => None,
    };
    let withdrawn_at = row.closed_at.filter(|_| answer.is_none());
    ApprovalView {
        withdrawn_at,
        approval_id: row.approval_id,
        run_id: Some(row.run_id),
        session_id: Some(row.session_id),
        asked_by: None,
        call_id: Some(row.call_id),
        subject: row.subject,
        risk: row.risk,
        summary: row.summary,
        reason: row.reason,
        tool: Some(row.tool),
        arguments: Some(row.arguments),
        evidence: row.evidence,
        offer: row.offer.map(|offer| offer.pattern.sentence()),
        requested_at: row.requested_at,
        expires_at: None,
        answer,
    }
}

/// An agreed pattern.
pub(crate) fn pattern(row: PatternRow) -> PatternView {
    PatternView {
        sentence: row.grant().sentence(),
        approval_id: row.approval_id,
        session_id: row.session_id,
        tool: row.pattern.tool,
        scope: row.scope,
        until: row.until,
        by: row.by,
        at: row.at,
        revoked_at: row.revoked_at,
    }
}

/// A session.
pub(crate) fn session(row: SessionRow) -> SessionView {
    SessionView {
        session_id: row.session_id,
        owner: row.owner,
        version: row.version,
        session_key: row.key,
        title: row.title,
        created_at: row.created_at,
        updated_at: row.updated_at,
        run_count: row.runs,
        archived_at: row.archived_at,
        forked_from: row.forked_from.map(|from| from.session_id),
        mode: row.mode,
        settings: settings(row.settings),
    }
}

/// What undoing did.
pub(crate) fn undone(run: UndoneRun) -> UndoResponse {
    let file = |change: FileChange| UndoneFile {
        action: if change.after.is_none() { UndoAction::Removed } else { UndoAction::Restored },
        path: change.path,
        attribution: change.attribution,
        replaced: change.before.filter(|_| change.entry.before == EntryKind::File),
    };
    // A file that came and went within the run leaves nothing but the directories made for it.
    let was_there = |change: &FileChange| change.before.is_some() || change.after.is_some();
    let left = |file: RemainingFile| RemainingFileView { path: file.path, obstacle: file.obstacle };
    UndoResponse {
        files: run.changes.into_iter().filter(was_there).map(file).collect(),
        remaining: run.remaining.into_iter().map(left).collect(),
    }
}

/// What replaying gave.
pub(crate) fn replayed(replayed: Replayed) -> ReplayReport {
    let first_difference = replayed.difference.map(|difference| ReplayDifference {
        seq: difference.seq,
        recorded: difference.recorded,
        replayed: difference.replayed,
    });
    ReplayReport {
        steps: replayed.steps,
        actions: replayed.actions,
        identical: first_difference.is_none(),
        first_difference,
    }
}

/// A record of the journal; its payload was JSON when it was accepted.
pub(crate) fn record(record: StoredRecord) -> serde_json::Result<JournalRecordView> {
    Ok(JournalRecordView {
        payload: serde_json::from_slice(&record.payload)?,
        seq: record.seq,
        at: record.at,
        kind: record.kind.into_owned(),
        session_id: record.session_id,
        run_id: record.run_id,
        run_seq: record.run_seq,
        hash: record.hash,
    })
}

/// What verification found.
pub(crate) fn verified(report: palyra_journal::VerifyReport) -> VerifyReport {
    let problem = |problem: palyra_journal::Problem| ProblemView {
        position: problem.position.to_string(),
        code: problem.code,
        message: problem.message,
    };
    VerifyReport {
        records: report.records,
        segments: report.segments,
        checkpoints: report.checkpoints,
        artifacts: report.artifacts,
        projections: report.projections,
        unchecked_projections: report.unchecked_projections,
        projections_by_digest: report.projections_by_digest,
        unverified: report.unverified,
        quarantined: report.quarantined,
        remarks: report.remarks,
        more_problems: report.more_problems,
        problems: report.problems.into_iter().map(problem).collect(),
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::Digest;

    use super::*;

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> FileChange {
        FileChange {
            path: path.to_owned(),
            before: before.map(|text| Digest::of(text.as_bytes())),
            after: after.map(|text| Digest::of(text.as_bytes())),
            before_mode: None,
            directories: Vec::new(),
            attribution: ChangeAttribution::Written,
            entry: palyra_tools::EntryFacts::default(),
        }
    }

    #[test]
    fn changes_are_netted_per_file() {
        let changes = [
            change("made", None, Some("1")),
            change("edited", Some("1"), Some("2")),
            change("there and back", Some("1"), Some("2")),
            change("made and gone", None, Some("1")),
            change("edited", Some("2"), Some("3")),
            change("gone", Some("1"), None),
            change("there and back", Some("2"), Some("1")),
            change("made and gone", Some("1"), None),
        ];
        let views = net_changes(&changes);
        let kinds: Vec<_> = views.iter().map(|view| (view.path.as_str(), view.kind)).collect();
        let expected = [
            ("edited", FileChangeKind::Modified),
            ("gone", FileChangeKind::Deleted),
            ("made", FileChangeKind::Created),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(views[0].before, Some(Digest::of(b"1")));
        assert_eq!(views[0].after, Some(Digest::of(b"3")));
        assert!(views.iter().all(|view| view.attribution.is_written()));
        let observed = FileChange { attribution: ChangeAttribution::Observed, ..changes[4].clone() };
        let views = net_changes(&[changes[1].clone(), observed, change("edited", Some("3"), Some("4"))]);
        assert_eq!(views[0].attribution, ChangeAttribution::Observed, "one uncertain change makes all of it uncertain");
    }
}
