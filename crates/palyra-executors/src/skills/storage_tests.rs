use super::*;

fn space(skill: &str) -> Space {
    Space { skill_id: skill.to_owned(), name: "notes".to_owned(), max_bytes: 100, max_keys: 3 }
}

fn put(key: &str, value: &str) -> Change {
    Change { key: key.to_owned(), value: Some(value.as_bytes().to_vec()) }
}

fn remove(key: &str) -> Change {
    Change { key: key.to_owned(), value: None }
}

#[test]
fn a_skill_sees_its_own_keys_and_nobody_elses() {
    let storage = SkillStorage::in_memory().unwrap();
    storage.apply(&space("one"), &[], &[put("key", "mine")]).unwrap();
    assert_eq!(storage.get(&space("one"), "key").unwrap().unwrap().value, b"mine");
    assert_eq!(storage.get(&space("two"), "key").unwrap(), None);
    assert!(storage.keys(&space("two"), "", None, 10).unwrap().is_empty());
    let other_space = Space { name: "other".to_owned(), ..space("one") };
    assert_eq!(storage.get(&other_space, "key").unwrap(), None);
}

#[test]
fn a_batch_is_carried_out_whole_or_not_at_all() {
    let storage = SkillStorage::in_memory().unwrap();
    let space = space("one");
    let StorageOutcome::Committed(first) = storage.apply(&space, &[], &[put("a", "1")]).unwrap() else {
        panic!("conflict")
    };
    let stale = [Expectation { key: "a".to_owned(), version: Some(first + 7) }];
    let outcome = storage.apply(&space, &stale, &[put("b", "2"), remove("a")]).unwrap();
    assert_eq!(outcome, StorageOutcome::Conflict("a".to_owned()));
    assert_eq!(storage.keys(&space, "", None, 10).unwrap(), ["a"]);

    let right =
        [Expectation { key: "a".to_owned(), version: Some(first) }, Expectation { key: "b".to_owned(), version: None }];
    assert_eq!(
        storage.apply(&space, &right, &[put("b", "2"), remove("a")]).unwrap(),
        StorageOutcome::Committed(first + 1)
    );
    assert_eq!(storage.keys(&space, "", None, 10).unwrap(), ["b"]);
}

#[test]
fn a_quota_holds_and_leaves_nothing_half_done() {
    let storage = SkillStorage::in_memory().unwrap();
    let space = space("one");
    let four = [put("a", "1"), put("b", "2"), put("c", "3"), put("d", "4")];
    assert!(matches!(storage.apply(&space, &[], &four), Err(StorageError::Full { .. })));
    assert!(storage.keys(&space, "", None, 10).unwrap().is_empty());
    assert!(matches!(storage.apply(&space, &[], &[put("a", &"x".repeat(100))]), Err(StorageError::Full { .. })));
    storage.apply(&space, &[], &[put("a", &"x".repeat(99))]).unwrap();
    assert!(matches!(storage.apply(&space, &[], &[put("b", "")]), Err(StorageError::Full { .. })));
    // What is replaced or removed counts no more.
    storage.apply(&space, &[], &[put("a", "short"), put("b", "2"), put("c", "3")]).unwrap();
    storage.apply(&space, &[], &[remove("a"), remove("b"), remove("c"), remove("never-there")]).unwrap();
    storage.apply(&space, &[], &[put("z", &"x".repeat(99))]).unwrap();
}

#[test]
fn keys_are_listed_by_prefix_in_order() {
    let storage = SkillStorage::in_memory().unwrap();
    let space = Space { max_keys: 10, ..space("one") };
    let changes = ["b/2", "a", "b/1", "b%", "ä"].map(|key| put(key, ""));
    storage.apply(&space, &[], &changes).unwrap();
    assert_eq!(storage.keys(&space, "b/", None, 10).unwrap(), ["b/1", "b/2"]);
    assert_eq!(storage.keys(&space, "b/", Some("b/1"), 10).unwrap(), ["b/2"]);
    assert_eq!(storage.keys(&space, "", None, 2).unwrap(), ["a", "b%"]);
    assert_eq!(storage.keys(&space, "ä", None, 2).unwrap(), ["ä"]);
}

#[test]
fn keys_that_make_no_sense_are_refused() {
    let storage = SkillStorage::in_memory().unwrap();
    for key in ["", "a\0b", &"k".repeat(257)] {
        assert!(matches!(storage.get(&space("one"), key), Err(StorageError::Invalid(_))), "{key:?}");
        assert!(matches!(storage.apply(&space("one"), &[], &[put(key, "")]), Err(StorageError::Invalid(_))));
    }
}

#[test]
fn what_is_stored_outlives_the_process_and_goes_with_its_skill() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("skills.db");
    SkillStorage::open(&path).unwrap().apply(&space("one"), &[], &[put("key", "kept")]).unwrap();
    let storage = SkillStorage::open(&path).unwrap();
    assert_eq!(storage.get(&space("one"), "key").unwrap().unwrap().value, b"kept");
    storage.forget("one").unwrap();
    assert_eq!(storage.get(&space("one"), "key").unwrap(), None);
}
