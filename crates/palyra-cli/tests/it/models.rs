//! `palyra models …` against the scripted model server.

use palyra_models::testing::{ModelServer, Reply};
use serde_json::json;

use crate::support::{Place, Ran};

fn with_key(place: &Place, arguments: &[&str], key: &str) -> Ran {
    Ran::from(place.command(arguments).env("WORK_KEY", key).output().unwrap())
}

fn written(place: &Place, server: &ModelServer) {
    let file = format!(
        "version = 1 # keep me\n[providers.work]\nkind = 'openai_compatible'\nbase_url = '{}'\n\
         [[providers.work.keys]]\nname = 'main'\nkey = 'env:WORK_KEY'\n\
         [routes]\ndefault = ['work/large']\n[routes.tasks]\nsummary = ['work/small']\n",
        server.base_url()
    );
    std::fs::write(place.path("models.toml"), file).unwrap();
}

#[test]
fn models_are_listed_explained_and_tested() {
    let place = Place::new();
    let server = ModelServer::start(vec![Reply::text(&["ready"])]).unwrap();
    written(&place, &server);
    let ran = place.run(&["models", "list"]);
    assert!(ran.out.contains("work/large  default 1") && ran.out.contains("work/small  tasks.summary 1"), "{ran:?}");
    let ran = place.run(&["models", "explain", "--task", "summary"]);
    assert!(
        ran.out.starts_with("routes.tasks.summary, because it is the route of tasks of the kind `summary`:"),
        "{ran:?}"
    );
    let ran = place.run(&["models", "explain", "--needs", "images"]);
    assert!(ran.out.contains("lacks images"), "{ran:?}");
    assert!(server.requests().is_empty(), "looking sends nothing");

    let ran = with_key(&place, &["models", "test"], "sk-hunter2");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("work/large with key main: answers ") && ran.out.contains("ready"), "{ran:?}");
    server.offer_models(&["large", "small"]);
    let ran = with_key(&place, &["models", "list", "work"], "sk-hunter2");
    assert!(ran.out.contains("work/small"), "{ran:?}");
}

#[test]
fn what_fails_is_one_line_that_says_what_to_do() {
    let place = Place::new();
    let refused = Reply::status(401, &json!({"error": {"message": "invalid key"}}));
    let no_model =
        Reply::status(404, &json!({"error": {"message": "model `large` not found", "code": "model_not_found"}}));
    let server = ModelServer::start(vec![refused, no_model]).unwrap();
    written(&place, &server);
    let ran = with_key(&place, &["models", "test"], "sk-hunter2");
    assert_eq!((ran.code, ran.out.lines().count()), (3, 1), "{ran:?}");
    assert!(
        ran.out.contains("fails") && ran.out.contains("[model_auth_failed]") && !ran.out.contains("hunter2"),
        "{ran:?}"
    );
    let ran = with_key(&place, &["models", "test", "work/large"], "sk-hunter2");
    assert!(ran.code != 0 && ran.out.contains("[model_request_rejected]"), "{ran:?}");
    let ran = place.run(&["models", "test"]);
    assert!(ran.out.contains("the key `main` of `work` cannot be read"), "{ran:?}");
    let ran = place.run(&["models", "test", "wrok/large"]);
    assert_eq!(ran.code, 8, "{ran:?}");
    assert!(ran.err.contains("did you mean `work`?"), "{ran:?}");
    drop(server);
    let ran = with_key(&place, &["models", "test"], "k");
    assert!(ran.code == 4 && ran.out.contains("[model_unreachable]"), "{ran:?}");
    std::fs::write(place.path("models.toml"), "version = 1\n[provider.x]\n").unwrap();
    let ran = place.run(&["models", "list"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("models_file_invalid") && ran.err.contains("did you mean `providers`?"), "{ran:?}");
}

#[test]
fn a_key_that_is_there_is_offered_and_used_only_when_accepted() {
    let place = Place::new();
    let run =
        |arguments: &[&str]| Ran::from(place.command(arguments).env("ANTHROPIC_API_KEY", "hunter2").output().unwrap());
    let ran = run(&["models", "list"]);
    assert!(ran.out.contains("nothing is sent; ANTHROPIC_API_KEY is set"), "{ran:?}");
    let ran = run(&["models", "discover"]);
    assert!(ran.out.contains("anthropic: ANTHROPIC_API_KEY is set\n"), "{ran:?}");
    assert!(ran.out.contains("to use it: palyra models set-default anthropic/claude-sonnet-4-5"), "{ran:?}");
    let ran = run(&["models", "set-default", "anthropic/claude-sonnet-4-5"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("conversations are sent to https://api.anthropic.com"), "{ran:?}");
    let file = std::fs::read_to_string(place.path("models.toml")).unwrap();
    assert!(file.contains("env:ANTHROPIC_API_KEY") && !file.contains("hunter2"), "{file}");
    let ran = run(&["models", "explain"]);
    assert!(ran.out.contains("anthropic/claude-sonnet-4-5  main  https://api.anthropic.com"), "{ran:?}");
    let ran = run(&["models", "set-default", "nonsense"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn without_a_daemon_it_is_said_that_nothing_is_known_about_rests() {
    let place = Place::new();
    let server = ModelServer::start(vec![]).unwrap();
    written(&place, &server);
    for arguments in [&["models", "list"][..], &["models", "explain"]] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.err.contains("no daemon runs, so nothing is known about which models rest"), "{ran:?}");
    }
    let ran = place.run(&["models", "explain", "--output", "json"]);
    assert_eq!(ran.json()["choice"]["steps"][0]["target"]["name"], "work/large", "{ran:?}");
}
