//! Feeding a tape to the machine again.
//!
//! Recovery and `palyra runs replay` are the same function: every input is applied, every action that follows is compared, byte for byte, with
//! the record that was made at the time. A gap, a missing or superfluous action, or a different byte is a difference; a record that cannot be read is an
//! error.

use std::collections::VecDeque;

use palyra_journal::StoredRecord;

use crate::error::AgentError;
use crate::machine::{Action, Input, Machine};
use crate::spec::{MACHINE_VERSION, OLDEST_MACHINE_VERSION};
use crate::tape::{EntryRef, TapeEntry};

/// What replaying a tape gave.
#[derive(Debug)]
pub struct Replayed {
    /// The machine as it stood after the last record.
    pub machine: Machine,
    /// Inputs applied.
    pub steps: u64,
    /// Actions compared.
    pub actions: u64,
    /// Position of the last record.
    pub last_seq: u64,
    /// Where the tape and the machine first disagree.
    pub difference: Option<Difference>,
}

/// A place where the tape and the machine disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Position on the tape.
    pub seq: u64,
    /// What the tape says.
    pub recorded: Option<String>,
    /// What the machine says now.
    pub replayed: Option<String>,
}

/// Replays a whole tape.
///
/// # Errors
/// When a record is missing or unreadable, or the tape does not begin with an acceptance.
pub fn replay(records: &[StoredRecord]) -> Result<Replayed, AgentError> {
    check_gapless(records)?;
    let (first, rest) = records.split_first().ok_or_else(|| bad(1, "the tape is empty"))?;
    let TapeEntry::Input(Input::Accepted(spec)) = TapeEntry::from_record(first)? else {
        return Err(bad(1, "the tape does not begin with an acceptance"));
    };
    if !(OLDEST_MACHINE_VERSION..=MACHINE_VERSION).contains(&spec.machine_version) {
        let version = spec.machine_version;
        let message = format!(
            "the run was made by machine version {version}; this program knows {OLDEST_MACHINE_VERSION} to {MACHINE_VERSION}"
        );
        return Err(AgentError::BadTape { seq: 1, message });
    }
    let mut replayed =
        Replayed { machine: Machine::accept(*spec, first.at), steps: 1, actions: 0, last_seq: 1, difference: None };
    // The actions of a step are recorded right after its input.
    let mut expected: VecDeque<Action> = VecDeque::new();
    for record in rest {
        let seq = record.run_seq.unwrap_or_default();
        replayed.last_seq = seq;
        replayed.difference = match TapeEntry::from_record(record)? {
            TapeEntry::Input(input) => match expected.pop_front() {
                Some(action) => Some(difference(seq, Some(record), Some(&action))?),
                None => match replayed.machine.step(input, record.at) {
                    Ok(actions) => {
                        replayed.steps += 1;
                        expected.extend(actions);
                        None
                    }
                    Err(rejected) => Some(Difference {
                        seq,
                        recorded: Some(text(&record.payload)),
                        replayed: Some(format!("rejected: {rejected}")),
                    }),
                },
            },
            TapeEntry::Action(_) => {
                let action = expected.pop_front();
                let same = match &action {
                    Some(action) => EntryRef::Action(action).payload()? == record.payload,
                    None => false,
                };
                replayed.actions += 1;
                if same { None } else { Some(difference(seq, Some(record), action.as_ref())?) }
            }
            TapeEntry::Note(_) => None,
        };
        if replayed.difference.is_some() {
            return Ok(replayed);
        }
    }
    if let Some(action) = expected.pop_front() {
        replayed.difference = Some(difference(replayed.last_seq + 1, None, Some(&action))?);
    }
    Ok(replayed)
}

fn difference(seq: u64, record: Option<&StoredRecord>, action: Option<&Action>) -> Result<Difference, AgentError> {
    let replayed = action.map(|action| EntryRef::Action(action).payload()).transpose()?;
    Ok(Difference {
        seq,
        recorded: record.map(|record| text(&record.payload)),
        replayed: replayed.map(|bytes| text(&bytes)),
    })
}

fn text(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload).into_owned()
}

fn check_gapless(records: &[StoredRecord]) -> Result<(), AgentError> {
    for (expected, record) in (1..).zip(records) {
        if record.run_seq != Some(expected) {
            return Err(bad(expected, "the record is missing"));
        }
    }
    Ok(())
}

fn bad(seq: u64, message: &str) -> AgentError {
    AgentError::BadTape { seq, message: message.to_owned() }
}
