//! The journal's own types in the shape that the API gives them, for reading without the daemon.

use palyra_client::api::{JournalRecordView, ProblemView, VerifyReport};
use palyra_journal::StoredRecord;
use serde_json::Value;

pub(super) fn record_view(record: &StoredRecord) -> JournalRecordView {
    JournalRecordView {
        seq: record.seq,
        at: record.at,
        kind: record.kind.clone().into_owned(),
        session_id: record.session_id,
        run_id: record.run_id,
        run_seq: record.run_seq,
        hash: record.hash,
        // A payload is JSON by contract; one that is not is shown as it is rather than hidden.
        payload: serde_json::from_slice(&record.payload)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&record.payload).into_owned())),
    }
}

pub(super) fn report_view(report: palyra_journal::VerifyReport) -> VerifyReport {
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
        problems: report
            .problems
            .into_iter()
            .map(|problem| ProblemView {
                position: problem.position.to_string(),
                code: problem.code.to_string(),
                message: problem.message,
            })
            .collect(),
    }
}
