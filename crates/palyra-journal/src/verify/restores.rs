//! Which keys signed, and who knows of it: restores on the log that nobody acknowledged, and statements by a key that no restore made the key.

use palyra_common::Digest;

use super::report::VerifyReport;
use crate::position::Position;
use crate::record::StoredRecord;
use crate::restores::{self, Restore};

/// What the pass over the records finds out.
#[derive(Debug, Default)]
pub(super) struct KeyHistory {
    restores: Vec<Restore>,
    /// Who signed at which count, one entry for each change as the pass meets them.
    signers: Vec<(u64, Digest)>,
}

impl KeyHistory {
    /// Takes a record in; one that cannot be read is refused by the projection of the same records as well, which reports it.
    pub(super) fn record(&mut self, record: &StoredRecord) {
        let _ = restores::note(&mut self.restores, record);
    }

    /// Takes in who signed a genuine statement about a count.
    pub(super) fn signed(&mut self, count: u64, key: Digest) {
        if self.signers.last().is_none_or(|(_, last)| *last != key) {
            self.signers.push((count, key));
        }
    }

    /// Says what was found.
    pub(super) fn report(mut self, report: &mut VerifyReport) {
        let newest = self.signers.iter().max_by_key(|(count, _)| *count).map(|(_, key)| *key);
        self.signers.sort_by_key(|(count, _)| *count);
        for (count, key) in &self.signers {
            let expected = self.signer_at(*count, newest);
            if expected.is_some_and(|expected| expected != *key) {
                let message = format!("{key} signed here, and no restore on the log made it the journal's key");
                report.problem(Position::Checkpoint { count: *count }, "signing_key_replaced", message);
            }
        }
        for restore in self.restores {
            let position = Position::Record { seq: restore.seq };
            match restore.accepted_seq {
                None => {
                    let message = format!("{}; nobody has acknowledged it", restore.describe());
                    report.problem(position, RESTORE_UNACKNOWLEDGED, message);
                }
                Some(accepted) if restore.replaced_key() => {
                    let what = restore.describe();
                    report.remarks.push(format!("{position}: {what} (acknowledged in record {accepted})"));
                }
                Some(_) => {}
            }
        }
    }

    /// Whose signature is expected at a count, as far as the log says: a restore's record is the first thing that its key signs.
    fn signer_at(&self, count: u64, newest: Option<Digest>) -> Option<Digest> {
        match self.restores.iter().rev().find(|restore| restore.seq <= count) {
            Some(last) => Some(last.key_id),
            None => self.restores.first().map_or(newest, |first| first.former_key_id),
        }
    }
}

/// The code of a restore that nobody acknowledged. It says nothing against the log itself, so a backup that has it can be restored.
pub(crate) const RESTORE_UNACKNOWLEDGED: &str = "restore_unacknowledged";

#[cfg(test)]
mod tests {
    use super::*;

    fn history(restores: &[(u64, u8, u8)], signers: &[(u64, u8)]) -> Vec<String> {
        let key = |n: u8| Digest::of(&[n]);
        let mut history = KeyHistory::default();
        for (seq, former, now) in restores {
            history.restores.push(Restore {
                seq: *seq,
                restored_at: palyra_common::Timestamp(1),
                key_id: key(*now),
                former_key_id: Some(key(*former)),
                accepted_seq: Some(seq + 1),
            });
        }
        for (count, signer) in signers {
            history.signed(*count, key(*signer));
        }
        let mut report = VerifyReport::default();
        history.report(&mut report);
        report.problems.iter().map(|problem| format!("{} {}", problem.code, problem.position)).collect()
    }

    #[test]
    fn a_statement_by_a_key_that_no_restore_made_the_journals_is_named() {
        let none: [String; 0] = [];
        assert_eq!(history(&[], &[(64, 1), (128, 1), (130, 1)]), none);
        assert_eq!(history(&[(101, 1, 2)], &[(64, 1), (100, 1), (128, 2)]), none);
        assert_eq!(history(&[(101, 1, 2), (150, 2, 2), (201, 2, 3)], &[(64, 1), (128, 2), (201, 3)]), none);
        let named = |count: u64| vec![format!("signing_key_replaced {}", Position::Checkpoint { count })];
        assert_eq!(history(&[], &[(64, 1), (128, 2)]), named(64), "no restore at all");
        assert_eq!(history(&[(101, 1, 2)], &[(64, 1), (100, 2), (128, 2)]), named(100), "before its restore");
        assert_eq!(history(&[(101, 1, 2)], &[(64, 1), (128, 2), (140, 1)]), named(140), "the former key afterwards");
        assert_eq!(history(&[(101, 1, 2)], &[(64, 3), (128, 2)]), named(64), "a key that the restore does not name");
    }
}
