//! Artifacts that nothing names go; none that a record, a table, a text of the log or an effect under way names ever does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use palyra_common::{Digest, Timestamp};
use palyra_journal::{Collected, Journal, NewRecord};

use crate::kept::Kept;
use crate::support::{code, fill, note, options};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn open(root: &Path) -> Journal {
    let mut options = options(root).with_projection(Arc::new(Kept));
    options.segment_records = 1;
    options.inline_payload_bytes = 64;
    Journal::open(options).unwrap()
}

/// Makes artifacts look as if they had been stored three days ago.
fn age(journal: &Journal, digests: &[Digest]) {
    for digest in digests {
        let file = fs::File::options().append(true).open(journal.artifacts().path(digest)).unwrap();
        file.set_modified(SystemTime::now() - 3 * DAY).unwrap();
    }
}

fn large(text: &str) -> NewRecord {
    let mut record = note(1);
    record.payload = format!("\"{}\"", text.repeat(100)).into_bytes();
    record
}

fn collect(journal: &Journal) -> Collected {
    journal.collect_artifacts(DAY, &BTreeSet::new()).unwrap()
}

#[test]
fn what_nothing_names_goes_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let sealed = large("sealed");
    journal.append_blocking(vec![sealed.clone()]).unwrap();
    fill(&journal, 2_200);
    let began = Instant::now();
    let is_sealed = "SELECT count(*) > 0 AND min(seq) > 1 FROM records WHERE EXISTS (SELECT 1 FROM segments)";
    while !journal.read_blocking(|r| Ok(r.connection().query_row(is_sealed, [], |row| row.get::<_, bool>(0))?)).unwrap()
    {
        assert!(began.elapsed() < Duration::from_secs(30), "no segment was sealed");
        std::thread::sleep(Duration::from_millis(5));
    }
    let live = large("live");
    journal.append_blocking(vec![live.clone()]).unwrap();
    let put = |text: &str| journal.artifacts().put(text.as_bytes()).unwrap();
    let (in_table, in_text, in_artifact, staged, orphan, young) =
        (put("table"), put("text"), put("artifact"), put("staged"), put("orphan"), put("young"));
    // Without its prefix, so that the table alone says that it is an artifact.
    let kept = serde_json::to_vec(&in_table.to_hex()).unwrap();
    journal.append_blocking(vec![NewRecord::new("kept", Timestamp(1), kept)]).unwrap();
    let mention = |digest: Digest, room: usize| {
        let text = format!("{{\"nested\":\"{{\\\"of\\\":\\\"{digest}\\\"}}{}\"}}", " ".repeat(room));
        NewRecord::new("note", Timestamp(1), text.into_bytes())
    };
    let whole = mention(in_artifact, 200);
    journal.append_blocking(vec![mention(in_text, 0), whole.clone()]).unwrap();
    let payloads = [sealed, live, whole].map(|record| Digest::of(&record.payload));
    age(&journal, &[in_table, in_text, in_artifact, staged, orphan]);
    age(&journal, &payloads);

    let collected = journal.collect_artifacts(DAY, &BTreeSet::from([staged])).unwrap();
    assert_eq!(collected, Collected { removed: 1, bytes: 6 });
    assert!(!journal.artifacts().contains(&orphan));
    for digest in [in_table, in_text, in_artifact, staged, young].iter().chain(&payloads) {
        assert!(journal.artifacts().contains(digest), "{digest}");
    }
    assert_eq!(collect(&journal).removed, 1, "what is not under way any more");
    assert_eq!(collect(&journal), Collected::default());
    journal.close_blocking().unwrap();
    let report = palyra_journal::verify(dir.path(), palyra_journal::VerifyOptions::default()).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn what_a_refused_record_left_goes() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let refused = NewRecord { kind: "refuse".into(), ..large("refused") };
    let digest = Digest::of(&refused.payload);
    assert_eq!(code(&journal.append_blocking(vec![refused]).unwrap_err()), "projection_refused");
    assert!(journal.artifacts().contains(&digest), "stored before it could be refused");
    age(&journal, &[digest]);
    assert_eq!(collect(&journal).removed, 1);
}

#[test]
fn what_is_stored_again_counts_as_stored_now() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let digest = journal.artifacts().put(b"again").unwrap();
    age(&journal, &[digest]);
    assert_eq!(journal.artifacts().put(b"again").unwrap(), digest);
    assert_eq!(collect(&journal), Collected::default());
    age(&journal, &[digest]);
    let mut incoming = journal.artifacts().receive().unwrap();
    incoming.write(b"again").unwrap();
    incoming.finish().unwrap();
    assert_eq!(collect(&journal), Collected::default());
    age(&journal, &[digest]);
    assert_eq!(collect(&journal).removed, 1);
}

#[test]
fn a_record_that_is_appended_meanwhile_finds_what_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut collected = 0;
    for n in 0..100 {
        let text = format!("content {n}");
        let digest = journal.artifacts().put(text.as_bytes()).unwrap();
        age(&journal, &[digest]);
        std::thread::scope(|scope| {
            let collecting = scope.spawn(|| collect(&journal).removed);
            assert_eq!(journal.artifacts().put(text.as_bytes()).unwrap(), digest);
            journal
                .append_blocking(vec![NewRecord::new("note", Timestamp(1), format!("\"{digest}\"").into_bytes())])
                .unwrap();
            collected += collecting.join().unwrap();
        });
        assert!(journal.artifacts().contains(&digest), "{n}");
    }
    println!("{collected} of 100 were removed before they were stored again");
}

#[test]
fn nothing_goes_while_the_log_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let unreadable = large("unreadable");
    journal.append_blocking(vec![unreadable.clone()]).unwrap();
    let orphan = journal.artifacts().put(b"orphan").unwrap();
    age(&journal, &[orphan]);
    let path = journal.artifacts().path(&Digest::of(&unreadable.payload));
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    assert!(journal.collect_artifacts(DAY, &BTreeSet::new()).is_err());
    assert!(journal.artifacts().contains(&orphan));
    fs::rename(&aside, &path).unwrap();
    assert_eq!(collect(&journal).removed, 1);
}
