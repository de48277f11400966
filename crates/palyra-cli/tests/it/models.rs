//! `palyra models …` against the scripted model server.

use palyra_models::testing::ModelServer;

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
fn models_are_listed_and_explained() {
    let place = Place::new();
    let server = ModelServer::start(vec![]).unwrap();
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
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_line() {
    let place = Place::new();
    std::fs::write(place.path("models.toml"), "version = 1\n[provider.x]\n").unwrap();
    let ran = place.run(&["models", "list"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("models_file_invalid") && ran.err.contains("did you mean `providers`?"), "{ran:?}");
}

#[test]
fn a_key_that_is_there_is_offered_and_used_only_when_accepted() {
    let place = Place::new();
    // The vendor's own server is not asked by tests.
    let server = ModelServer::start(vec![]).unwrap();
    server.offer_models(&["claude-sonnet-4-5"]);
    let url = server.base_url().trim_end_matches("/v1").to_owned();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        Ran::from(command.env("ANTHROPIC_API_KEY", "hunter2").env("ANTHROPIC_BASE_URL", &url).output().unwrap())
    };
    let ran = run(&["models", "list"]);
    assert!(ran.out.contains("nothing is sent; ANTHROPIC_API_KEY is set"), "{ran:?}");
    let ran = run(&["models", "discover"]);
    assert!(ran.out.contains("anthropic: ANTHROPIC_API_KEY is set together with ANTHROPIC_BASE_URL; "), "{ran:?}");
    assert!(ran.out.contains("to use it: palyra models set-default anthropic/claude-sonnet-4-5"), "{ran:?}");
    let ran = run(&["models", "set-default", "anthropic/claude-sonnet-4-5"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains(&format!("conversations are sent to {url}")), "{ran:?}");
    let file = std::fs::read_to_string(place.path("models.toml")).unwrap();
    assert!(file.contains("env:ANTHROPIC_API_KEY") && !file.contains("hunter2"), "{file}");
    let ran = run(&["models", "explain"]);
    assert!(ran.out.contains(&format!("anthropic/claude-sonnet-4-5  main  {url}")), "{ran:?}");
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
fn a_model_that_the_server_does_not_list_is_refused_with_the_nearest_names() {
    let place = Place::new();
    let server = ModelServer::start(vec![]).unwrap();
    server.offer_models(&["large", "small", "vision"]);
    written(&place, &server);
    let before = std::fs::read_to_string(place.path("models.toml")).unwrap();
    let ran = with_key(&place, &["models", "set-default", "work/smal"], "k");
    assert_eq!(ran.code, 8, "{ran:?}");
    assert!(
        ran.err.contains("`work` does not offer the model `smal`") && ran.err.contains("use `work/small`"),
        "{ran:?}"
    );
    assert_eq!(std::fs::read_to_string(place.path("models.toml")).unwrap(), before, "nothing is written");
    let ran = with_key(&place, &["models", "set-default", "work/small", "--fallback", "work/larg"], "k");
    assert!(ran.code == 8 && ran.err.contains("`larg`"), "fallbacks as well: {ran:?}");
    let ran = with_key(&place, &["models", "set-default", "work/small"], "k");
    assert!(ran.code == 0 && !ran.err.contains("warning"), "{ran:?}");
    drop(server);
    let ran = with_key(&place, &["models", "set-default", "work/other"], "k");
    assert_eq!(ran.code, 0, "one that cannot be asked is believed: {ran:?}");
    assert!(ran.err.contains("warning: whether `work` offers the model `other` could not be checked: "), "{ran:?}");
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
fn config_validate_reads_the_price_file() {
    let place = Place::new();
    std::fs::write(place.path("prices.toml"), "version = 1\n").unwrap();
    let ran = place.run(&["config", "validate"]);
    assert!(ran.code == 0 && ran.out.contains("prices.toml`"), "{ran:?}");
    std::fs::write(place.path("prices.toml"), "version = 1\n[[prices]]\n").unwrap();
    let ran = place.run(&["config", "validate"]);
    assert!(ran.code == 2 && ran.err.contains("[price_file_invalid]"), "{ran:?}");
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
