//! `palyra config …` on a real file.

use crate::support::Place;

#[test]
fn a_key_is_set_explained_and_unset() {
    let place = Place::new();
    std::fs::write(place.path("palyra.toml"), "version = 1 # keep me\n").unwrap();
    let ran = place.run(&["config", "set", "run.max_turns", "7"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("run.max_turns: "), "{}", ran.out);
    assert!(std::fs::read_to_string(place.path("palyra.toml")).unwrap().contains("# keep me"));
    assert_eq!(place.run(&["config", "get", "run.max_turns"]).out, "7\n");
    let explained = place.run(&["config", "explain", "run.max_turns"]);
    assert!(explained.out.contains("run.max_turns = 7\n  from      file "), "{}", explained.out);
    let over = place.command(&["config", "get", "run.max_turns"]).env("PALYRA_RUN_MAX_TURNS", "9").output().unwrap();
    assert_eq!(over.stdout, b"9\n");
    assert_eq!(place.run(&["config", "unset", "run.max_turns"]).code, 0);
    assert_eq!(place.run(&["config", "get", "run.max_turns"]).out, "64\n");
    assert_eq!(place.run(&["config", "validate"]).code, 0);
    assert!(place.run(&["config", "path"]).out.ends_with("palyra.toml\n"));
    assert!(place.run(&["config", "list", "--output", "json"]).json().as_array().unwrap().len() > 10);
}

#[test]
fn mistakes_are_named_and_change_nothing() {
    let place = Place::new();
    let before = "version = 1\n[run]\nmax_tunrs = 7\n";
    std::fs::write(place.path("palyra.toml"), before).unwrap();
    for arguments in [&["config", "validate"][..], &["config", "list"], &["run", "x"]] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?} {ran:?}");
        assert!(ran.err.contains("config_unknown_key") && ran.err.contains("max_turns"), "{}", ran.err);
    }
    std::fs::write(place.path("palyra.toml"), "version = 1\n").unwrap();
    let ran = place.run(&["config", "set", "run.max_turns", "many"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(place.run(&["config", "get", "run.max_tunrs"]).code, 2);
    assert_eq!(std::fs::read_to_string(place.path("palyra.toml")).unwrap(), "version = 1\n");
}
