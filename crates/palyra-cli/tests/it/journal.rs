//! `palyra journal …` straight from the files, on a real journal and with no daemon.

use palyra_common::Timestamp;
use palyra_journal::{Journal, JournalOptions, NewRecord};

use crate::support::Place;
use crate::terminal::Terminal;

fn with_records(place: &Place, count: u32) {
    let journal = Journal::open(JournalOptions::at(place.path("state"))).unwrap();
    for n in 0..count {
        let record = NewRecord {
            kind: "test.note".into(),
            at: Timestamp(1_794_700_000_123),
            session_id: None,
            run_id: None,
            run_seq: None,
            payload: format!("{{\"n\":{n}}}").into_bytes(),
        };
        journal.append_blocking(vec![record]).unwrap();
    }
    journal.close_blocking().unwrap();
}

#[test]
fn a_sound_journal_reads_verifies_and_proves() {
    let place = Place::new();
    with_records(&place, 5);
    let ran = place.run(&["journal", "verify"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("OK: 5 records verified ("), "{}", ran.out);
    assert_eq!(place.run(&["journal", "tail", "-n", "2"]).out.lines().count(), 2);
    let tail = place.run(&["journal", "tail", "-n", "2", "--output", "json"]).json();
    assert_eq!((&tail[0]["seq"], &tail[1]["payload"]["n"]), (&4.into(), &4.into()));
    let export = place.run(&["journal", "export", "--from-seq", "3"]).out;
    assert_eq!(export.lines().count(), 3);

    let proof = place.run(&["journal", "prove", "2"]);
    assert_eq!(proof.code, 0, "{proof:?}");
    std::fs::write(place.path("proof.json"), &proof.out).unwrap();
    let file = place.path("proof.json");
    let checked = place.run(&["journal", "prove", "--check", file.to_str().unwrap()]);
    assert!(checked.code == 0 && checked.out.starts_with("OK: record 2 (test.note)"), "{checked:?}");
    std::fs::write(&file, proof.out.replace("test.note", "test.nota")).unwrap();
    let refuted = place.run(&["journal", "prove", "--check", file.to_str().unwrap()]);
    assert!(refuted.code != 0 && refuted.err.contains("[proof_refuted]"), "{refuted:?}");
    assert_ne!(place.run(&["journal", "prove", "99"]).code, 0);
}

#[test]
fn a_changed_record_is_named_and_ends_with_seven() {
    let place = Place::new();
    with_records(&place, 5);
    let database = palyra_journal::rusqlite::Connection::open(place.path("state/journal/journal.db")).unwrap();
    let changed = database.execute("UPDATE records SET payload = X'7B7D' WHERE seq = 3", []).unwrap();
    assert_eq!(changed, 1);
    drop(database);
    let ran = place.run(&["journal", "verify"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.out.contains("record 3: "), "{}", ran.out);
    let json = place.run(&["journal", "verify", "--output", "json"]);
    assert_eq!((json.code, &json.json()["problems"][0]["position"]), (7, &"record 3".into()));
}

#[test]
fn the_whole_journal_is_not_given_up_without_a_word_at_a_terminal() {
    let place = Place::new();
    with_records(&place, 5);
    let mut terminal = Terminal::open(&place, "journal accept-loss");
    terminal.wait_for("Give it up? [y/N] ");
    terminal.types("\n");
    let screen = terminal.end_with(7);
    assert!(screen.contains("the whole journal, not only what is damaged"), "{screen}");
    assert!(screen.contains("nothing was changed"), "{screen}");
    assert_eq!(place.run(&["journal", "verify"]).code, 0);
}

#[test]
fn no_journal_is_said_plainly() {
    let place = Place::new();
    for command in ["verify", "tail", "export"] {
        let ran = place.run(&["journal", command]);
        assert!(ran.code != 0 && ran.err.contains("[journal_not_found]"), "{ran:?}");
    }
}
