//! `palyra models …` with a daemon: it makes the calls, so what is said is what it finds, in its own environment.

use palyra_models::Call;
use palyra_testkit::TestContext;
use palyra_testkit::model_server::{Fault, ModelServer, Reply};
use serde_json::{Value, json};

/// A home where nothing says which model to ask.
fn choosing() -> TestContext {
    TestContext::new().unwrap().env("PALYRA_MODEL_PROVIDER", "auto")
}

/// A home whose models.toml names this server, with a key in a variable.
fn with_account(server: &ModelServer, more: &str) -> TestContext {
    let context = choosing();
    let text = format!(
        "version = 1\n[providers.work]\nkind = 'openai_compatible'\nbase_url = '{}'\n{more}\n\
         [[providers.work.keys]]\nname = 'main'\nkey = 'env:WORK_KEY'\n[routes]\ndefault = ['work/large']\n",
        server.base_url()
    );
    let directory = context.root().join("home/.config/palyra");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("models.toml"), text).unwrap();
    context
}

fn listing() -> Call {
    Call { tool: "palyra.fs.list".to_owned(), arguments: json!({"path": "."}), id: Some("c1".to_owned()) }
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

#[test]
fn a_test_sends_what_a_run_sends_first_and_every_tool_when_told_to() {
    let twice = || [Reply::calls(vec![listing()]), Reply::text(&["There is one file."])];
    let replies = twice().into_iter().chain(twice()).chain([Reply::text(&["hello"])]).collect();
    let server = ModelServer::start(replies).unwrap();
    let context = with_account(&server, "").env("WORK_KEY", "sk-hunter2");
    let tested = context.run(["models", "test"]).unwrap();
    assert_eq!(tested.code, 0, "{tested}");
    let said = "work/large with key main: works: called palyra.fs.list and answered «There is one file.»";
    assert!(tested.stdout.starts_with(said), "{tested}");
    let tested = context.run(["models", "test", "--all-tools", "--verbose"]).unwrap();
    assert_eq!(tested.code, 0, "{tested}");
    assert!(tested.stdout.contains("not sent to OpenAI-compatible servers"), "{tested}");
    let run = context.run(["run", "say hello"]).unwrap();
    assert_eq!(run.code, 0, "{run}");
    let asked = server.requests();
    let asked: Vec<&Value> =
        asked.iter().filter(|request| request.method == "POST").map(|request| &request.body).collect();
    let [first, second, all, _, run] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(names(&first["tools"]), names(&run["tools"]), "what a run sends");
    let system = run["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with(first["messages"][0]["content"].as_str().unwrap()), "{first}");
    assert_eq!(second["messages"][3]["role"], "tool", "{second}");
    assert!(
        names(&all["tools"]).len() > names(&first["tools"]).len()
            && names(&all["tools"]).iter().any(|name| name.contains("a2ui")),
        "{all}"
    );
    context.finish().unwrap();
}

#[test]
fn a_window_that_is_too_small_is_named_with_its_numbers_before_anything_is_sent() {
    let server = ModelServer::start(vec![]).unwrap();
    let context = with_account(&server, "context_tokens = 1024").env("WORK_KEY", "k");
    let tested = context.run(["models", "test"]).unwrap();
    assert_eq!(tested.code, 2, "{tested}");
    for part in ["[model_context_too_long]", "has a window of 1024", "instructions ", "tools ", "`--ctx-size 4096`"] {
        assert!(tested.stdout.contains(part), "{part}: {tested}");
    }
    assert!(server.requests().iter().all(|request| request.method == "GET"));
}

#[test]
fn a_variable_that_the_daemon_does_not_have_is_named() {
    let server = ModelServer::start(vec![Reply::calls(vec![listing()]), Reply::text(&["One file."])]).unwrap();
    let context = with_account(&server, "");
    let tested = context.run(["models", "test"]).unwrap();
    assert!(tested.code != 0 && tested.stdout.contains("the key `main` of `work` cannot be read"), "{tested}");
    assert!(!tested.stderr.contains("in this shell"), "nothing differs: {tested}");
    // The same with a key in another shell: the daemon still lacks it, and every command says so.
    let context = context.env("WORK_KEY", "sk-hunter2");
    for arguments in [&["models", "test"][..], &["models", "list"], &["models", "explain"], &["models", "list", "work"]]
    {
        let ran = context.run(arguments).unwrap();
        let note = "note: WORK_KEY is set in this shell but not in the daemon's environment, so runs do not have it; to restart it with this environment: palyra daemon stop && palyra daemon start";
        assert!(ran.stderr.contains(note), "{arguments:?}: {ran}");
        assert!(!format!("{ran}").contains("hunter2"), "{ran}");
    }
    for arguments in [&["daemon", "stop"][..], &["daemon", "start"]] {
        assert_eq!(context.run(arguments).unwrap().code, 0);
    }
    let tested = context.run(["models", "test"]).unwrap();
    assert!(tested.code == 0 && !tested.stderr.contains("in this shell"), "{tested}");
}

#[test]
fn what_is_in_use_is_what_the_daemon_uses() {
    let server = ModelServer::start(vec![]).unwrap();
    let context = choosing();
    assert_eq!(context.run(["daemon", "start"]).unwrap().code, 0);
    let context = context.env("OPENAI_BASE_URL", server.base_url());
    let listed = context.run(["models", "list"]).unwrap();
    assert!(listed.stdout.starts_with("in use: offline-planner: "), "{listed}");
    assert!(
        listed.stderr.contains("OPENAI_BASE_URL is set in this shell but not in the daemon's environment"),
        "{listed}"
    );
    let explained = context.run(["models", "explain"]).unwrap();
    assert!(explained.stdout.starts_with("everything goes to offline-planner: "), "{explained}");
    let tested = context.run(["models", "test"]).unwrap();
    assert!(tested.stdout.contains("offline planner"), "{tested}");
}

#[test]
fn the_models_of_a_provider_have_whole_names_and_no_empty_columns() {
    let server = ModelServer::start(vec![]).unwrap();
    let long = format!("vendor/{}-instruct-Q4_K_M.gguf", "very-long-name-".repeat(12));
    server.offer_models(&[&long, "small"]);
    let context = with_account(&server, "").env("WORK_KEY", "k");
    let listed = context.run(["models", "list", "work"]).unwrap();
    assert_eq!(listed.stdout, format!("MODEL\nwork/{long}\nwork/small\n"), "{listed}");
    let unknown = context.run(["models", "list", "wrok"]).unwrap();
    assert!(unknown.code == 8 && unknown.stderr.contains("did you mean `work`?"), "{unknown}");
}

#[test]
fn what_fails_is_one_line_that_says_what_to_do() {
    let refused = Reply::status(401, &json!({"error": {"message": "invalid key"}}));
    let no_model =
        Reply::status(404, &json!({"error": {"message": "model `large` not found", "code": "model_not_found"}}));
    let message = "Unable to generate parser for this template. JSON schema error at #/properties/patch/items: schema must be an object";
    let schema = Reply::status(400, &json!({"error": {"message": message, "type": "invalid_request_error"}}));
    let server = ModelServer::start(vec![refused, no_model, schema]).unwrap();
    let context = with_account(&server, "").env("WORK_KEY", "sk-hunter2");
    let tested = context.run(["models", "test"]).unwrap();
    assert_eq!((tested.code, tested.stdout.lines().count()), (3, 1), "{tested}");
    assert!(tested.stdout.contains("fails") && tested.stdout.contains("[model_auth_failed]"), "{tested}");
    assert!(!format!("{tested}").contains("hunter2"), "{tested}");
    let tested = context.run(["models", "test", "work/large"]).unwrap();
    assert!(tested.code != 0 && tested.stdout.contains("[model_request_rejected]"), "{tested}");
    let tested = context.run(["models", "test", "--all-tools"]).unwrap();
    assert!(tested.stdout.contains("the server refused the input schema of the tool `palyra.a2ui.patch`"), "{tested}");
    assert!(tested.stdout.contains("palyra mcp remove"), "{tested}");
    let tested = context.run(["models", "test", "wrok/large"]).unwrap();
    assert!(tested.code == 8 && tested.stderr.contains("did you mean `work`?"), "{tested}");
    server.offer_models(&["large", "small"]);
    let tested = context.run(["models", "test", "work/smal"]).unwrap();
    assert!(tested.code == 8 && tested.stdout.contains("`work` does not offer the model `smal`"), "{tested}");
    assert!(tested.stdout.contains("use `work/small`"), "{tested}");
    drop(server);
    let tested = context.run(["models", "test"]).unwrap();
    assert!(tested.code == 4 && tested.stdout.contains("[model_unreachable]"), "{tested}");
}

#[test]
fn a_new_budget_holds_for_the_next_call_without_a_restart() {
    let server = ModelServer::start(vec![Reply::text(&["one"]), Reply::text(&["two"])]).unwrap();
    let context = choosing().env("OPENAI_BASE_URL", server.base_url());
    assert_eq!(context.run(["run", "say hello"]).unwrap().code, 0);
    let set = context.run(["config", "set", "budget.run", "$0.000001"]).unwrap();
    assert!(set.code == 0 && !set.stderr.contains("restart"), "{set}");
    // A server on this machine costs nothing by itself, so it gets a price.
    let prices = "version = 1\n[[price]]\nprovider = '*'\nmodels = ['*']\ninput = 1_000_000\noutput = 1_000_000\n";
    std::fs::write(context.root().join("home/.config/palyra/prices.toml"), prices).unwrap();
    let stopped = context.run(["run", "say hello"]).unwrap();
    assert!(stopped.code != 0 && stopped.stderr.contains("budget_exceeded"), "{stopped}");
    // What cannot be used lifts no limit.
    let file = context.root().join("home/.config/palyra/palyra.toml");
    std::fs::write(&file, "[budget]\nrun = \"a lot\"\n").unwrap();
    // The files are looked at before each command.
    assert_eq!(context.run(["usage"]).unwrap().code, 0);
    let status = context.run(["daemon", "status"]).unwrap();
    assert!(status.stdout.contains("the budgets on disk are not in force"), "{status}");
    std::fs::remove_file(&file).unwrap();
    let stopped = context.run(["run", "say hello"]).unwrap();
    assert!(stopped.stderr.contains("budget_exceeded"), "{stopped}");
    context.finish().unwrap();
}

#[test]
fn names_of_models_cannot_drive_the_terminal() {
    let server = ModelServer::start(vec![Reply::text(&["ready"])]).unwrap();
    let context = with_account(&server, "").env("WORK_KEY", "sk-hunter2");
    server.offer_models(&["sm\u{202e}all", "la\u{1b}[2Jrge", "plain", "one\nwork/faked  works"]);
    let file = context.root().join("home/.config/palyra/models.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("'work/large'", "\"work/la\\u202erge\"");
    std::fs::write(&file, text).unwrap();
    for arguments in [&["models", "list", "work"][..], &["models", "list"], &["models", "test"], &["models", "explain"]]
    {
        let ran = context.run(arguments).unwrap();
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!shown.contains(obeyed), "{arguments:?}: {shown:?}");
        assert!(!shown.lines().any(|line| line.trim_start().starts_with("work/faked")), "{arguments:?}: {shown:?}");
        assert!(shown.contains("work/"), "{arguments:?}: {shown:?}");
    }
}

#[test]
fn a_reply_that_breaks_off_leaves_no_remark_on_standard_output() {
    let cut = Reply::text(&["half an ", "answer"]).fault(Fault::CloseAfter(400));
    let server = ModelServer::start(vec![cut, Reply::text(&["a whole ", "answer"])]).unwrap();
    let context = with_account(&server, "").env("WORK_KEY", "sk-hunter2");
    let run = context.run(["run", "say something"]).unwrap();
    assert_eq!(
        (run.code, server.requests().iter().filter(|request| request.method == "POST").count()),
        (0, 2),
        "{run}"
    );
    // What had been shown of the first answer stays; only answers follow it.
    let answer = run.stdout.trim_end();
    let before = answer.strip_suffix("a whole answer").unwrap_or_else(|| panic!("{run}")).trim();
    assert!("half an answer".starts_with(before), "{run}");
    assert!(run.stderr.contains("the answer was cut off"), "{run}");
    context.finish().unwrap();
}
