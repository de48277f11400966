//! Pages of canvases in a real browser: what is seen, what follows an agent's patches, what is sent back, and what a hostile document achieves, which is nothing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use palyra_common::{RunId, RunLifecyclePhase, SessionId};
use palyra_models::testing::{ModelServer, Reply};
use palyra_models::{Call, Role};
use serde_json::{Value, json};

use crate::browser::{Browser, Scripts};
use crate::raw::unix;
use crate::support::{Daemon, Place};

/// A daemon whose model does what a test tells it to, and one session.
struct Studio {
    place: Place,
    daemon: Daemon,
    model: ModelServer,
    session: Option<SessionId>,
}

impl Studio {
    async fn open() -> Self {
        let model = ModelServer::start(Vec::new()).unwrap();
        let place = Place::new()
            .with("OPENAI_BASE_URL", &model.base_url())
            .with("OPENAI_API_KEY", "none")
            .with("PALYRA_MODEL_NAME", "m")
            .with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
        let daemon = place.start().await;
        Self { place, daemon, model, session: None }
    }

    /// Begins a run in which the model makes these calls, one in each turn, and then says something.
    async fn begin(&mut self, calls: Vec<(&str, Value)>) -> RunId {
        for (tool, arguments) in calls {
            self.model.push(Reply::calls(vec![Call { tool: tool.to_owned(), arguments, id: None }]));
        }
        self.model.push(Reply::text(&["there"]));
        let mut task = self.daemon.task("go on");
        task.session_id = self.session;
        let run = self.daemon.client.create_run(&task).await.unwrap();
        self.session = Some(run.session_id);
        run.run_id
    }

    async fn run(&mut self, calls: Vec<(&str, Value)>) {
        let run = self.begin(calls).await;
        self.daemon.follow(run, 1).await;
        let ended = self.daemon.client.run(run).await.unwrap();
        assert_eq!(ended.run.phase, RunLifecyclePhase::Completed, "{ended:?}");
    }

    /// Shows a page, and gives its canvas.
    async fn draw(&mut self, title: &str, root: Value) -> String {
        self.run(vec![("palyra.a2ui.render", json!({"title": title, "document": {"root": root}}))]).await;
        let listed = unix(&self.daemon, "GET /api/v1/canvases", b"").json();
        listed["canvases"][0]["canvas_id"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned()
    }

    /// Changes a page, one version for each list of operations.
    async fn patch(&mut self, canvas: &str, base: u64, patches: Vec<Value>) {
        let patch = |(index, patch): (usize, Value)| {
            let base_version = base + index as u64;
            ("palyra.a2ui.patch", json!({"canvas_id": canvas, "base_version": base_version, "patch": patch}))
        };
        self.run(patches.into_iter().enumerate().map(patch).collect()).await;
    }

    fn link(&self, canvas: &str, access: &str) -> String {
        let body = json!({"access": access}).to_string();
        let made = unix(&self.daemon, &format!("POST /api/v1/canvases/{canvas}/link"), body.as_bytes()).json();
        made["url"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// What a person sent last, once there are so many runs and all have ended.
    async fn told(&self, runs: usize) -> String {
        let began = Instant::now();
        loop {
            let session = self.daemon.client.session(self.session.unwrap(), &Default::default()).await.unwrap();
            if session.runs.len() >= runs && session.runs.iter().all(|run| run.phase.is_terminal()) {
                let asked = self.model.requests().last().unwrap().messages();
                return asked.into_iter().rev().find(|message| message.role == Role::User).unwrap().content;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "the session does not come to rest");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn form(text: &str, city: &str) -> Value {
    json!({"type": "list", "items": [
        {"type": "text", "text": text, "id": "said"},
        {"type": "form", "id": "trip", "fields": [
            {"type": "text", "name": "name", "label": "Name", "required": true},
            {"type": "text", "name": "city", "label": "City", "value": city},
            {"type": "select", "name": "class", "label": "Class", "options": [{"value": "first", "label": "First"}, {"value": "second", "label": "Second"}]},
            {"type": "checkbox", "name": "bike", "label": "Bicycle"},
        ]},
    ]})
}

fn says(text: &str) -> Value {
    json!([{"op": "replace", "path": "/root/items/0/text", "value": text}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_follows_its_agent_keeps_what_was_typed_and_sends_it() {
    let mut studio = Studio::open().await;
    let canvas = studio.draw("A trip", form("where to?", "Bern")).await;
    let mut browser = Browser::start(Scripts::On);
    browser.open(&studio.link(&canvas, "act"));
    assert_eq!(browser.ask("document.title"), "A trip");
    assert_eq!(
        browser.ask("getComputedStyle(document.querySelector('.field')).marginTop"),
        "12px",
        "our style is applied"
    );
    browser.write("#f-trip-name", "Ada");
    browser.ask("document.querySelector('#f-trip-name').setSelectionRange(1, 2)");

    // What the agent proposes changes where nobody wrote; the rest stays, and the person stays where they were.
    let city = json!({"op": "replace", "path": "/root/items/1/fields/1/value", "value": "Basel"});
    studio.patch(&canvas, 1, vec![json!([says("how about Basel?")[0], city])]).await;
    browser.until_shown("how about Basel?");
    let field = "document.querySelector('#f-trip-name')";
    assert_eq!(browser.ask(&format!("{field}.value")), "Ada");
    assert_eq!(browser.ask("document.querySelector('#f-trip-city').value"), "Basel");
    assert_eq!(browser.ask(&format!("document.activeElement === {field}")), true);
    assert_eq!(browser.ask(&format!("[{field}.selectionStart, {field}.selectionEnd]")), json!([1, 2]));

    // However fast they come, the last one is what is seen.
    let many = (0..8).map(|number| says(&format!("thought {number}"))).collect();
    studio.patch(&canvas, 2, many).await;
    browser.until_shown("thought 7");
    browser.click("#f-trip-bike");
    browser.ask("document.querySelector('#f-trip-class').value = 'second'");
    studio.model.push(Reply::text(&["thanks"]));
    browser.click("form button");
    browser.until_shown("Sent.");
    let told = studio.told(4).await;
    let (_, values) = told.split_once('\n').unwrap_or_else(|| panic!("{told}"));
    let values: Value =
        serde_json::from_str(values.lines().next().unwrap()).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(values, json!({"name": "Ada", "city": "Basel", "class": "second", "bike": true}));
    assert!(browser.told("Runtime.exceptionThrown").is_empty(), "{:?}", browser.told("Runtime.exceptionThrown"));

    let close = format!("POST /api/v1/canvases/{canvas}/close");
    assert_eq!(unix(&studio.daemon, &close, b"").status, 200);
    browser.until_shown("This link is not valid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_appears_on_an_open_page_and_is_answered_there() {
    let mut studio = Studio::open().await;
    let canvas = studio.draw("Questions", json!({"type": "approval", "id": "card"})).await;
    let mut browser = Browser::start(Scripts::On);
    browser.open(&studio.link(&canvas, "act"));
    browser.until_shown("No approvals are pending.");
    let run = studio.begin(vec![("palyra.fs.write", json!({"path": "a.txt", "content": "x"}))]).await;
    browser.until_shown("Palyra asks");
    assert!(!studio.place.workspace().join("a.txt").exists());
    browser.click("button[value='allow']");
    browser.until_shown("Your answer was recorded.");
    studio.daemon.follow(run, 1).await;
    assert!(studio.place.workspace().join("a.txt").exists());
    browser.until_shown("No approvals are pending.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_scripts_a_page_works_and_nothing_that_was_typed_is_lost() {
    let mut studio = Studio::open().await;
    let canvas = studio.draw("A trip", form("where to?", "Bern")).await;
    let mut browser = Browser::start(Scripts::Off);
    browser.open(&studio.link(&canvas, "act"));
    browser.write("#f-trip-name", "Ada <b>\"&");
    browser.click("#f-trip-bike");
    // The page was drawn anew meanwhile, which this browser cannot know.
    studio.patch(&canvas, 1, vec![says("still there?")]).await;
    assert!(browser.text().contains("where to?"));
    browser.click("form button");
    browser.until_shown("still there?");
    assert!(browser.text().contains("version 2, not 1"), "{}", browser.text());
    assert_eq!(browser.ask("document.querySelector('#f-trip-name').value"), "Ada <b>\"&");
    assert_eq!(browser.ask("document.querySelector('#f-trip-bike').checked"), true);
    studio.model.push(Reply::text(&["thanks"]));
    browser.click("form button");
    browser.until_shown("Sent.");
    let told = studio.told(3).await;
    assert!(told.contains("Ada <b>"), "{told}");
}

/// A stranger's server: notes who asks, and answers everything with a page that has the same texts as the canvas, as markup.
struct Stranger {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Stranger {
    fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        // Ends with the process; nobody connects any more once the browser is gone.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = [0; 2048];
                let length = stream.read(&mut head).unwrap_or_default();
                let line = String::from_utf8_lossy(&head[..length]).lines().next().unwrap_or_default().to_owned();
                noted.lock().unwrap().push(line);
                let page = payloads(address).concat();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{page}",
                    page.len()
                );
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Texts that a browser acts upon if it takes them for markup: each sets `owned`, or asks the stranger for something.
fn payloads(stranger: SocketAddr) -> Vec<String> {
    let at = format!("http://{stranger}");
    vec![
        "<script>window.owned = 'script'</script>".to_owned(),
        "</title></style></textarea></script><script>window.owned = 'closing'</script>".to_owned(),
        "<img src=x onerror=\"window.owned = 'image'\">".to_owned(),
        "<svg onload=\"window.owned = 'svg'\"></svg>".to_owned(),
        "\" autofocus onfocus=\"window.owned = 'focus'".to_owned(),
        format!("<img src=\"{at}/pixel\">"),
        format!("<link rel=stylesheet href=\"{at}/style\">"),
        format!("<style>@import url({at}/import)</style>"),
        format!("<iframe src=\"{at}/frame\"></iframe>"),
        format!("<object data=\"{at}/object\"></object>"),
        format!("<script src=\"{at}/source\"></script>"),
        format!("[click](javascript:window.owned='link') ![pixel]({at}/markdown)"),
        format!("<a href=\"javascript:window.owned='anchor'\" ping=\"{at}/ping\">anchor</a>"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_document_says_runs_or_is_loaded() {
    let stranger = Stranger::listen();
    let all = payloads(stranger.address);
    let items: Vec<_> = all
        .iter()
        .enumerate()
        .flat_map(|(index, text)| {
            [
                json!({"type": "text", "text": text}),
                json!({"type": "markdown", "text": text}),
                json!({"type": "table", "caption": text, "columns": [text], "rows": [[text]]}),
                json!({"type": "code", "text": text, "language": text}),
                json!({"type": "chart", "kind": "bar", "labels": [text], "series": [{"name": text, "values": [1]}]}),
                json!({"type": "form", "id": format!("form-{index}"), "title": text, "submit": text, "fields": [
                    {"type": "text", "name": "text", "label": text, "help": text, "value": text},
                    {"type": "select", "name": "select", "label": text, "options": [{"value": "a", "label": text}]},
                ]}),
            ]
        })
        .collect();
    // A picture that is one, and so many texts that the document is far longer than what policies look at.
    let dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let filler = json!({"type": "text", "text": "long ".repeat(8_000)});
    let root = json!({"type": "list", "items": [
        {"type": "image", "src": dot, "alt": "dot"}, {"type": "list", "items": items}, filler,
    ]});
    let mut studio = Studio::open().await;
    let canvas = studio.draw("</title><script>window.owned = 'title'</script>", root).await;

    // The same texts as markup, from another stranger: this browser does all that is to be prevented.
    let other = Stranger::listen();
    let mut browser = Browser::start(Scripts::On);
    browser.open(&format!("http://{}/", other.address));
    browser.until("window.owned !== undefined");
    let owned = |browser: &mut Browser| browser.ask("window.owned === undefined ? null : window.owned");
    assert!(other.asked().iter().any(|line| line.contains("/pixel")), "{:?}", other.asked());
    drop(browser);

    let mut browser = Browser::start(Scripts::On);
    let link = studio.link(&canvas, "act");
    browser.open(&link);
    browser.until("document.querySelector('img').naturalWidth === 1");
    assert!(browser.text().contains("<script>window.owned = 'script'</script>"), "texts are shown as they are");
    assert_eq!(
        browser.ask("document.querySelectorAll('main script, iframe, object, link, a[href^=\"java\"]').length"),
        0
    );
    browser.ask("for (const e of document.querySelectorAll('main *')) { e.focus?.(); e.dispatchEvent(new Event('mouseover')); }");
    assert_eq!(owned(&mut browser), Value::Null);

    // Should some text become markup after all, the page's policy is still in its way.
    let raw = json!(all.concat()).to_string();
    browser.ask(&format!("document.querySelector('main').insertAdjacentHTML('beforeend', {raw})"));
    let script = "(() => { const s = document.createElement('script'); s.textContent = \"window.owned = 'made'\"; document.body.append(s); })()";
    browser.ask(script);
    let fetched = format!("fetch('http://{}/fetch').then(() => 'answered', () => 'refused')", stranger.address);
    assert_eq!(browser.ask(&fetched), "refused");
    let styled = format!("document.body.style.backgroundImage = 'url(http://{}/background)'", stranger.address);
    browser.ask(&styled);
    browser.ask(&format!(
        "(() => {{ const f = document.createElement('form'); f.action = 'http://{}/form'; document.body.append(f); f.submit(); }})()",
        stranger.address
    ));
    browser.ask(&format!("void window.open('http://{}/window')", stranger.address));
    browser.ask("document.querySelector('a[href^=\"java\"]').click()");
    // The page is still there, still ours and still alive.
    studio
        .patch(
            &canvas,
            1,
            vec![json!([{"op": "replace", "path": "/root", "value": {"type": "text", "text": "unharmed"}}])],
        )
        .await;
    browser.until_shown("unharmed");
    assert_eq!(owned(&mut browser), Value::Null);
    assert_eq!(browser.ask("location.href"), link.as_str());
    assert!(browser.told("Page.javascriptDialogOpening").is_empty());
    let refused =
        |event: &&Value| event["entry"]["text"].as_str().is_some_and(|text| text.contains("Content Security Policy"));
    assert!(browser.told("Log.entryAdded").iter().any(refused), "the browser says who kept it from it");
    assert_eq!(stranger.asked(), Vec::<String>::new(), "nobody came to the stranger");
    let origin = link.split("/canvas/").next().unwrap();
    let failed: Vec<_> =
        browser.told("Network.loadingFailed").iter().map(|params| params["requestId"].clone()).collect();
    for params in browser.told("Network.requestWillBeSent") {
        let address = params["request"]["url"].as_str().unwrap();
        let own = address.starts_with(origin) || address.starts_with("data:");
        assert!(own || failed.contains(&params["requestId"]), "{params}");
    }
}
