//! The mistakes that people make with models, and what a model does to them: one line each that says what to do, and a run that goes on afterwards.

use palyra_testkit::TestContext;
use palyra_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

/// A refusal as a model says it itself.
const DECLINED: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"I will not.\"}}]}\n\n\
                        data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

struct Mistake {
    name: &'static str,
    /// What the server says; the last one for ever.
    replies: Vec<Reply>,
    code: &'static str,
    exit: i32,
    /// What the line says, in this order.
    line: &'static [&'static str],
}

fn mistakes() -> Vec<Mistake> {
    let refused = |status: u16, message: &str, code: &str| {
        vec![Reply::status(status, &json!({ "error": { "message": message, "code": code } }))]
    };
    vec![
        Mistake {
            name: "a wrong key",
            replies: refused(401, "Incorrect API key provided", "invalid_api_key"),
            code: "model_auth_failed",
            exit: 3,
            line: &["does not accept the key (401): Incorrect API key provided", "; check the key ("],
        },
        Mistake {
            name: "a wrong model",
            replies: refused(404, "The model `scripted-model` does not exist", "model_not_found"),
            code: "model_request_rejected",
            exit: 7,
            line: &[
                "does not offer the model `scripted-model` (404)",
                "; check its name",
                "`palyra models list` followed by the provider's name",
            ],
        },
        Mistake {
            name: "no model server",
            replies: vec![Reply::raw("<html>hello</html>").content_type("text/html")],
            code: "model_request_rejected",
            exit: 7,
            line: &["is not a model server: it answered with a web page; check the base URL", "`palyra models test`"],
        },
        Mistake {
            name: "an empty answer",
            replies: vec![Reply::text(&[]), Reply::text(&[]), Reply::text(&[])],
            code: "model_empty_answer",
            exit: 4,
            line: &["the model answered with nothing; try again, or use another model"],
        },
        Mistake {
            name: "a refusal",
            replies: vec![Reply::raw(DECLINED)],
            code: "content_policy",
            exit: 6,
            line: &["withheld the answer; rephrase the task, or use another model"],
        },
    ]
}

/// A home where nothing says which model to ask.
fn choosing() -> TestContext {
    TestContext::new().unwrap().env("PALYRA_MODEL_PROVIDER", "auto")
}

/// A home whose model server is this one.
fn asking(base_url: &str) -> TestContext {
    choosing().env("OPENAI_BASE_URL", base_url).env("OPENAI_API_KEY", "sk-hunter2")
}

/// The one line that says why the run ended.
fn assert_told(name: &str, text: &str, code: &str, parts: &[&str]) {
    assert!(text.contains(&format!("failed ({code})")), "{name}: {text}");
    let is_told = |line: &&str| {
        let mut rest = *line;
        parts.iter().all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    };
    assert_eq!(text.lines().filter(is_told).count(), 1, "{name}: {text}");
}

/// Lets the newest run go on, and sees it end well.
fn assert_goes_on(name: &str, context: &TestContext, how: &[&str]) {
    let resumed = context.run([&["runs", "resume", "last"], how].concat()).unwrap();
    assert_eq!(resumed.code, 0, "{name}: {resumed}");
    let followed = context.run(["runs", "tape", "last", "--follow"]).unwrap();
    assert_eq!(followed.code, 0, "{name}: {followed}");
    let shown = context.run(["runs", "show", "last"]).unwrap();
    assert!(shown.stdout.contains("phase      completed\n") && shown.stdout.contains("fine"), "{name}: {shown}");
}

#[test]
fn each_mistake_is_one_line_and_the_run_goes_on() {
    for Mistake { name, replies, code, exit, line } in mistakes() {
        let server = ModelServer::start(replies).unwrap();
        let context = asking(&server.base_url());
        let run = context.run(["run", "say hello"]).unwrap();
        assert_eq!(run.code, exit, "{name}: {run}");
        assert_told(name, &run.stderr, code, line);
        assert!(run.stderr.contains("nothing is lost") && !run.stderr.contains("hunter2"), "{name}: {run}");
        server.push(Reply::text(&["fine"]));
        assert_goes_on(name, &context, &[]);
        context.finish().unwrap();
    }
}

#[test]
fn a_server_that_was_not_there_is_named_and_another_one_takes_its_place() {
    let gone = ModelServer::start(Vec::new()).unwrap().base_url();
    let context = asking(&gone);
    let run = context.run(["run", "say hello"]).unwrap();
    assert_eq!(run.code, 4, "{run}");
    let line = format!("cannot reach the model server at `{gone}`");
    assert_told("no network", &run.stderr, "model_unreachable", &[&line, "; check the network"]);
    assert!(!run.stderr.contains("openai_compatible/:"), "half a name: {run}");
    // What the daemon was started with holds until it is started again, which resuming does.
    let stopped = context.run(["daemon", "stop"]).unwrap();
    assert_eq!(stopped.code, 0, "{stopped}");
    let server = ModelServer::start(vec![Reply::text(&["fine"])]).unwrap();
    let context = context.env("OPENAI_BASE_URL", server.base_url());
    assert_goes_on("no network", &context, &[]);
    context.finish().unwrap();
}

#[test]
fn a_run_with_a_mistyped_model_goes_on_with_another() {
    let unknown = json!({ "error": { "message": "The model `godo` does not exist", "code": "model_not_found" } });
    let server = ModelServer::start(vec![Reply::status(404, &unknown), Reply::text(&["fine"])]).unwrap();
    // A server that does not list its models cannot be asked beforehand.
    server.offer_models(&[]);
    let context = asking(&server.base_url());
    let run = context.run(["run", "--model", "godo", "say hello"]).unwrap();
    let parts = ["does not offer the model `godo`", "; check its name"];
    assert_told("a mistyped model", &run.stderr, "model_request_rejected", &parts);
    assert!(run.stderr.contains("--model NAME"), "{run}");
    assert_goes_on("a mistyped model", &context, &["--model", "good"]);
    let asked: Vec<_> =
        server.requests().iter().filter_map(|request| request.body["model"].as_str().map(str::to_owned)).collect();
    assert_eq!(asked, ["godo", "good"]);
    let shown = context.run(["runs", "show", "last"]).unwrap();
    assert!(shown.stdout.contains("openai_compatible/good"), "{shown}");
    context.finish().unwrap();
}

#[test]
fn a_model_that_the_server_does_not_list_is_refused_before_there_is_a_run() {
    let server = ModelServer::start(vec![Reply::text(&["fine"])]).unwrap();
    let context = asking(&server.base_url());
    let run = context.run(["run", "--model", "scripted-modle", "say hello"]).unwrap();
    assert_eq!(run.code, 8, "{run}");
    let line =
        ["`openai_compatible` does not offer the model `scripted-modle`", "use `openai_compatible/scripted-model`"];
    assert!(run.stderr.contains("model_not_found") && line.iter().all(|part| run.stderr.contains(part)), "{run}");
    let runs = context.run(["runs", "list", "--output", "json"]).unwrap();
    assert!(!runs.stdout.contains("say hello"), "{runs}");
    assert!(server.requests().iter().all(|request| request.method == "GET"), "nothing was said to a model");
    let right = context.run(["run", "--model", "scripted-model", "say hello"]).unwrap();
    assert_eq!(right.code, 0, "{right}");
    context.finish().unwrap();
}

#[test]
fn one_model_has_one_name_everywhere() {
    let server = ModelServer::start(vec![Reply::text(&["fine"])]).unwrap();
    let context = asking(&server.base_url());
    let name = "openai_compatible/scripted-model";
    let run = context.run(["run", "say hello"]).unwrap();
    assert!(run.stderr.contains(&format!("· {name}\n")), "{run}");
    assert!(!run.stderr.contains("models.toml"), "there is none: {run}");
    let shown = context.run(["runs", "show", "last"]).unwrap();
    assert!(shown.stdout.contains(&format!("model      {name}\n")), "{shown}");
    server.push(Reply::text(&["fine"]));
    for command in [&["models", "test"][..], &["models", "explain"]] {
        let said = context.run(command.iter().copied()).unwrap();
        assert!(said.stdout.contains(name), "{said}");
    }
    let tape = context.run(["runs", "tape", "last", "--output", "ndjson"]).unwrap();
    for wrong in ["\"openai_compatible/\"", "openai_compatible/openai_compatible"] {
        assert!(!tape.stdout.contains(wrong), "{tape}");
    }
    context.finish().unwrap();
}

#[test]
fn a_model_that_was_just_chosen_is_used_by_the_next_command() {
    let server = ModelServer::start(vec![Reply::text(&["fine"])]).unwrap();
    server.offer_models(&["good"]);
    let context = choosing();
    // A daemon that has no model yet.
    let first = context.run(["run", "what time is it"]).unwrap();
    assert!(first.stderr.contains("offline/"), "{first}");
    let file = context.root().join("home/.config/palyra/models.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let account =
        format!("version = 1\n[providers.work]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\n", server.base_url());
    std::fs::write(file, account).unwrap();
    let chosen = context.run(["models", "set-default", "work/good"]).unwrap();
    assert_eq!(chosen.code, 0, "{chosen}");
    assert!(chosen.stderr.contains("the running daemon uses it from now on"), "{chosen}");
    let explained = context.run(["models", "explain"]).unwrap();
    assert!(explained.stdout.contains("1      work/good"), "{explained}");
    let run = context.run(["run", "say hello"]).unwrap();
    assert!(run.code == 0 && run.stdout.contains("fine"), "{run}");
    context.finish().unwrap();
}

#[test]
fn a_server_that_was_started_again_with_another_window_is_asked_again() {
    let server = ModelServer::start(vec![Reply::text(&["fine"])]).unwrap();
    let window = |tokens: u32| {
        let list = json!({ "data": [{ "id": "one", "meta": { "n_ctx": tokens } }] });
        server.serve_at("/v1/models", Reply::status(200, &list));
    };
    let context = choosing();
    write_models(&context, &[&server]);
    let listed = |expected: &str| {
        let all = context.run(["models", "list"]).unwrap();
        let row = all.stdout.lines().find(|line| line.starts_with("a/one ")).unwrap_or_default();
        assert!(row.split_whitespace().any(|cell| cell == expected), "{expected}: {all}");
    };
    window(1024);
    let refused = context.run(["run", "say hello"]).unwrap();
    assert!(refused.code != 0 && refused.stderr.contains("has a window of 1024"), "{refused}");
    assert!(refused.stderr.contains("--ctx-size"), "{refused}");
    listed("1024");
    window(16_384);
    // What the server said counts for a second.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let run = context.run(["run", "say hello"]).unwrap();
    assert!(run.code == 0 && run.stdout.contains("fine"), "{run}");
    listed("16384");
    // A setting that promises more than the server has does not count.
    let file = context.root().join("home/.config/palyra/models.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("[routes]", "context_tokens = 8192\n[routes]");
    std::fs::write(&file, text).unwrap();
    window(1024);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let refused = context.run(["run", "say hello"]).unwrap();
    assert!(refused.code != 0 && refused.stderr.contains("has a window of 1024"), "{refused}");
    context.finish().unwrap();
}

#[test]
fn a_window_is_not_written_down_when_a_server_is_adopted() {
    let server = ModelServer::start(vec![Reply::text(&["fine"])]).unwrap();
    server.offer_models(&["one"]);
    server.serve_at("/props", Reply::status(200, &json!({ "default_generation_settings": { "n_ctx": 8192 } })));
    let context = choosing().env("OPENAI_BASE_URL", server.base_url());
    let chosen = context.run(["models", "set-default", "openai_compatible/one"]).unwrap();
    assert_eq!(chosen.code, 0, "{chosen}");
    let file = std::fs::read_to_string(context.root().join("home/.config/palyra/models.toml")).unwrap();
    assert!(!file.contains("context_tokens"), "the server says it whenever a run begins: {file}");
    let listed = context.run(["models", "discover"]).unwrap();
    assert!(listed.stdout.contains("already in models.toml"), "{listed}");
}

#[test]
fn a_name_that_nobody_has_is_answered_with_names_that_somebody_has() {
    let server = ModelServer::start(vec![]).unwrap();
    server.offer_models(&["uno", "due"]);
    let context = choosing();
    write_models(&context, &[&server]);
    for (asked, expected) in [
        ("nosuchmodel", "hint: `palyra models list` shows what is configured"),
        ("a", "hint: use `a/uno` or `a/due` or `a/one`;"),
        ("offline", "hint: use `offline/offline-planner`;"),
        ("a/duo", "hint: use `a/due`"),
    ] {
        let refused = context.run(["run", "-m", asked, "say hello"]).unwrap();
        assert!(refused.code == 8 && refused.stderr.contains(expected), "{asked}: {refused}");
    }
    let planned = context.run(["run", "-m", "offline/offline-planner", "list files"]).unwrap();
    assert_eq!(planned.code, 0, "{planned}");
    let refused = context.run(["models", "set-default", "offline/offline-planner"]).unwrap();
    assert!(refused.code == 2 && refused.stderr.contains("palyra config set model.provider offline"), "{refused}");
    context.finish().unwrap();
}

#[test]
fn the_status_says_when_the_model_server_could_not_be_reached() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let context = choosing().env("OPENAI_BASE_URL", format!("http://{address}/v1"));
    assert_eq!(context.run(["daemon", "start"]).unwrap().code, 0);
    assert_eq!(context.run(["daemon", "status"]).unwrap().code, 0, "nothing is asked to find out");
    let run = context.run(["run", "say hello"]).unwrap();
    assert_ne!(run.code, 0, "{run}");
    let status = context.run(["daemon", "status"]).unwrap();
    assert!(status.code == 7 && status.stdout.contains("the last call failed"), "{status}");
}

#[test]
fn a_daemon_whose_state_directory_was_removed_ends() {
    let context = TestContext::new().unwrap();
    assert_eq!(context.run(["run", "list files"]).unwrap().code, 0);
    let status = context.run(["daemon", "status", "--output", "json"]).unwrap().json().unwrap();
    let process = std::path::PathBuf::from(format!("/proc/{}", status["pid"]));
    assert!(process.exists());
    // Moved away and then removed: the daemon may be writing into it.
    let gone = context.root().join("gone");
    std::fs::rename(context.state_root(), &gone).unwrap();
    let began = std::time::Instant::now();
    // A process that has ended and was not waited for yet has no program any more.
    while std::fs::read_link(process.join("exe")).is_ok() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "it still runs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let status = context.run(["runs", "list"]).unwrap();
    assert_eq!(status.code, 0, "{status}");
    let run = context.run(["run", "list files"]).unwrap();
    assert!(run.code == 0 && !run.stderr.contains("degraded"), "{run}");
    context.finish().unwrap();
}

/// Writes `models.toml` with one account per server, named `a`, `b` and so on; the first is the default.
fn write_models(context: &TestContext, servers: &[&ModelServer]) {
    let mut file = "version = 1\n".to_owned();
    for (name, server) in ["a", "b", "c"].iter().zip(servers) {
        file += &format!("[providers.{name}]\nkind = 'openai_compatible'\nbase_url = '{}'\n", server.base_url());
    }
    file += "[routes]\ndefault = ['a/one']\n";
    let path = context.root().join("home/.config/palyra/models.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, file).unwrap();
}

#[test]
fn it_is_said_where_the_conversation_really_goes() {
    let usual = ModelServer::start(vec![Reply::text(&["from the usual one"])]).unwrap();
    let other = ModelServer::start(vec![Reply::text(&["from the other one"])]).unwrap();
    let context = choosing();
    write_models(&context, &[&usual, &other]);
    other.offer_models(&["two"]);
    let run = context.run(["run", "--model", "b/two", "say hello"]).unwrap();
    assert!(run.code == 0 && run.stdout.contains("from the other one"), "{run}");
    let place = |server: &ModelServer| format!("at `{}`", server.base_url());
    assert!(run.stderr.contains(&format!("the conversation is sent to `b/two` {}", place(&other))), "{run}");
    assert!(!run.stderr.contains(&place(&usual)), "{run}");
    let run = context.run(["run", "say hello"]).unwrap();
    assert!(run.code == 0 && run.stdout.contains("from the usual one"), "{run}");
    assert!(run.stderr.contains(&format!("the conversation is sent to `a/one` {}", place(&usual))), "{run}");
    context.finish().unwrap();
}

#[test]
fn a_soft_limit_is_told_to_whoever_follows_the_run() {
    let paid = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"fine\"},\"finish_reason\":\"stop\"}]}\n\n\
                data: {\"choices\":[],\"usage\":{\"prompt_tokens\":900,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n";
    let server = ModelServer::start(vec![Reply::raw(paid), Reply::raw(paid)]).unwrap();
    let context = choosing().env("PALYRA_BUDGET_DAY_WARN", "$0.000001");
    write_models(&context, &[&server]);
    let prices = "version = 1\n[[price]]\nprovider = '*'\nmodels = ['*']\ninput = 3_000_000\noutput = 15_000_000\n";
    std::fs::write(context.root().join("home/.config/palyra/prices.toml"), prices).unwrap();
    let run = context.run(["run", "say hello"]).unwrap();
    assert!(run.stderr.contains("budget: spent $") && run.stderr.contains("over the soft limit of $0.000001"), "{run}");
    let tape = context.run(["runs", "tape", "last"]).unwrap();
    assert!(tape.stdout.contains("over the soft limit of $0.000001"), "{tape}");
    let again = context.run(["run", "say hello"]).unwrap();
    assert!(again.code == 0 && !again.stderr.contains("soft limit"), "told once: {again}");
    context.finish().unwrap();
}
