//! `palyra models …` against the scripted model server.

use palyra_models::Call;
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
    assert!(
        ran.out.starts_with("work/large with key main: works: called no tool and answered ")
            && ran.out.contains("ready"),
        "{ran:?}"
    );
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
fn without_a_daemon_it_is_said_that_nothing_is_known_about_models_that_cool_down() {
    let place = Place::new();
    let server = ModelServer::start(vec![]).unwrap();
    written(&place, &server);
    for arguments in [&["models", "list"][..], &["models", "explain"]] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.err.contains("no daemon is running, so it is not known which models are cooling down"), "{ran:?}");
    }
    let ran = place.run(&["models", "explain", "--output", "json"]);
    assert_eq!(ran.json()["choice"]["steps"][0]["target"]["name"], "work/large", "{ran:?}");
}

#[test]
fn a_test_sends_every_tool_and_makes_one_call() {
    let place = Place::new();
    let call = Call { tool: "palyra.time.now".to_owned(), arguments: json!({}), id: Some("c1".to_owned()) };
    let server = ModelServer::start(vec![Reply::calls(vec![call]), Reply::text(&["It is noon."])]).unwrap();
    written(&place, &server);
    let ran = with_key(&place, &["models", "test", "--verbose"], "sk-hunter2");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("works: called palyra.time.now and answered «It is noon.»"), "{ran:?}");
    assert!(ran.out.contains("not sent to OpenAI-compatible servers"), "{ran:?}");
    let [first, second] = server.requests().try_into().unwrap();
    assert!(first.body["tools"].as_array().unwrap().len() > 10, "the whole list: {}", first.body["tools"]);
    let messages = second.body["messages"].as_array().unwrap();
    assert_eq!((&messages[2]["role"], &messages[2]["tool_call_id"]), (&json!("tool"), &json!("c1")), "{messages:?}");
}

#[test]
fn a_schema_that_the_server_refuses_is_named_by_its_tool() {
    let place = Place::new();
    let message = "Unable to generate parser for this template. JSON schema error at #/properties/patch/items: schema must be an object";
    let refused = || Reply::status(400, &json!({"error": {"message": message, "type": "invalid_request_error"}}));
    let server = ModelServer::start(vec![refused()]).unwrap();
    written(&place, &server);
    let ran = with_key(&place, &["models", "test"], "sk-hunter2");
    assert!(ran.out.contains("the server refused the input schema of the tool `palyra.a2ui.patch`"), "{ran:?}");
    assert!(ran.out.contains("palyra mcp remove"), "{ran:?}");
}

#[test]
fn a_vendor_without_a_key_is_refused_by_the_name_of_the_variable() {
    let place = Place::new();
    let ran = place.run(&["models", "set-default", "anthropic/claude-sonnet-4-5"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(
        ran.err.contains("ANTHROPIC_API_KEY is not set") && ran.err.contains("export ANTHROPIC_API_KEY="),
        "{ran:?}"
    );
    assert!(!place.path("models.toml").exists());
}

#[test]
fn what_was_the_default_is_a_fallback_only_where_somebody_says_so() {
    let place = Place::new();
    let server = ModelServer::start(vec![]).unwrap();
    written(&place, &server);
    let ran = place.run(&["models", "set-default", "work/small"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("work/large is not asked any more; to keep it as a fallback: palyra models set-default work/small --fallback work/large"), "{ran:?}");
    assert!(!ran.out.contains("if it fails"), "{ran:?}");
    let ran = place.run(&["models", "set-default", "work/small", "--fallback", "work/large"]);
    assert!(ran.out.contains("if it fails: work/large"), "{ran:?}");
    let ran = place.run(&["models", "set-default", "work/tiny"]);
    assert!(ran.out.contains("if it fails: work/large"), "configured fallbacks stay: {ran:?}");
}

#[test]
fn nothing_is_said_of_a_file_that_is_not_there() {
    let place = Place::new();
    let server = ModelServer::start(vec![]).unwrap();
    let run = |arguments: &[&str]| {
        Ran::from(place.command(arguments).env("OPENAI_BASE_URL", server.base_url()).output().unwrap())
    };
    let ran = run(&["models", "list"]);
    assert!(
        ran.out.starts_with("in use: openai_compatible: ") && ran.err.contains("there is no models.toml yet"),
        "{ran:?}"
    );
    let ran = run(&["models", "explain"]);
    assert!(ran.out.starts_with("everything goes to openai_compatible: "), "{ran:?}");
}

#[test]
fn config_validate_reads_the_file_of_models() {
    let place = Place::new();
    let server = ModelServer::start(vec![]).unwrap();
    written(&place, &server);
    let ran = place.run(&["config", "validate"]);
    assert!(ran.code == 0 && ran.out.contains("models.toml`"), "{ran:?}");
    std::fs::write(place.path("models.toml"), "version = 1\n[provider.x]\n").unwrap();
    let ran = place.run(&["config", "validate"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("models_file_invalid") && ran.err.contains("did you mean `providers`?"), "{ran:?}");
}

#[test]
fn names_of_models_cannot_drive_the_terminal() {
    let place = Place::new();
    let server = ModelServer::start(vec![Reply::text(&["ready"])]).unwrap();
    written(&place, &server);
    server.offer_models(&["sm\u{202e}all", "la\u{1b}[2Jrge", "plain", "one\nwork/faked  works"]);
    let file = std::fs::read_to_string(place.path("models.toml")).unwrap();
    std::fs::write(place.path("models.toml"), file.replace("'work/large'", "\"work/la\\u202erge\"")).unwrap();
    for arguments in [&["models", "list", "work"][..], &["models", "list"], &["models", "test"], &["models", "explain"]]
    {
        let ran = with_key(&place, arguments, "sk-hunter2");
        let shown = format!("{}{}", ran.out, ran.err);
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!shown.contains(obeyed), "{arguments:?}: {shown:?}");
        assert!(!shown.lines().any(|line| line.trim_start().starts_with("work/faked")), "{arguments:?}: {shown:?}");
        assert!(shown.contains("work/"), "{arguments:?}: {shown:?}");
    }
}
