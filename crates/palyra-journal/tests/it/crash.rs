//! A process that is killed in the middle of appending loses nothing it was told is durable.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use palyra_common::Digest;
use palyra_journal::Journal;

use crate::support::{check, note, open, options};

const ROOT: &str = "PALYRA_JOURNAL_TEST_ROOT";

/// Starts this test binary again for one ignored test.
pub(crate) fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test, "--nocapture"]);
    command
}

#[test]
#[ignore = "the process that `acknowledged_records_survive_a_kill` kills"]
fn appending_until_killed() {
    let root = std::env::var_os(ROOT).expect("started by another test");
    let mut options = options(Path::new(&root));
    options.segment_records = 1024;
    let journal = Journal::open(options).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let journal = journal.clone();
            scope.spawn(move || {
                for n in 0.. {
                    let batch = (0..=(n % 5) * 8).map(note).collect();
                    let appended = journal.append_blocking(batch).unwrap();
                    // One call writes the whole line, so lines of different threads do not mix.
                    let line = format!("ack {} {}\n", appended.last_seq, appended.head.hash);
                    std::io::stdout().write_all(line.as_bytes()).unwrap();
                    let _ = writer;
                }
            });
        }
    });
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn acknowledged_records_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: Vec<(u64, Digest)> = Vec::new();
    for round in 0..8_u64 {
        let spawned = child("crash::appending_until_killed").env(ROOT, dir.path()).stdout(Stdio::piped()).spawn();
        let mut process = Killed(spawned.unwrap());
        let lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let reading = std::thread::spawn(move || {
            let acks = lines.map_while(Result::ok).filter_map(|line| {
                let (seq, hash) = line.strip_prefix("ack ")?.split_once(' ')?;
                // The last line may be cut off by the kill.
                Some((seq.parse().ok()?, hash.parse().ok()?))
            });
            acks.collect::<Vec<(u64, Digest)>>()
        });
        // Not a multiple of anything, so the kill falls at another point of the work each time.
        std::thread::sleep(Duration::from_millis(150 + 37 * round));
        drop(process);
        acknowledged.extend(reading.join().unwrap());

        let report = check(dir.path());
        assert!(report.is_sound(), "round {round}, before opening: {report:?}");
        let journal = open(dir.path());
        let wanted = acknowledged.clone();
        let lost = journal
            .read_blocking(move |reader| {
                let mut lost = Vec::new();
                for (seq, hash) in wanted {
                    if reader.record(seq).map(|record| record.hash).ok() != Some(hash) {
                        lost.push(seq);
                    }
                }
                Ok(lost)
            })
            .unwrap();
        assert_eq!(lost, Vec::<u64>::new(), "round {round}");
        journal.close_blocking().unwrap();
        let report = check(dir.path());
        assert!(report.is_sound(), "round {round}, after opening: {report:?}");
    }
    assert!(acknowledged.len() > 100, "the child did append: {}", acknowledged.len());
}
