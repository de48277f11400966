//! A real browser: Chromium without a window, driven over a pipe by its own protocol. It opens no port, and its profile is gone with it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than a browser takes on the busiest machine, so that a hang fails instead of blocking.
const PATIENCE: Duration = Duration::from_secs(120);
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The protocol is spoken over the third and fourth file of the process. The sandbox of the browser itself needs rights that a test need not have; what is
/// looked at here is what pages are let do, which does not depend on it.
const START: &str = "exec \"$0\" --headless --no-sandbox --remote-debugging-pipe --user-data-dir=\"$1\" --no-first-run \
    --disable-gpu --disable-dev-shm-usage --disable-background-networking --disable-component-update --disable-sync \
    --disable-extensions about:blank 3<&0 4>&1 </dev/null >&2";

/// Whether pages may run scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scripts {
    On,
    Off,
}

/// A browser with one tab.
pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    count: u64,
    tab: Option<String>,
    /// Everything that the browser told by itself.
    pub(crate) events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start(scripts: Scripts) -> Self {
        let on_path = |name: &&str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
        };
        let found = NAMES.into_iter().find(on_path).expect("no Chromium is installed; scripts/setup.sh test brings it");
        let profile = TempDir::with_prefix("palyra-browser-").unwrap();
        let mut child = Command::new("bash")
            .args(["-c", START, found])
            .arg(profile.path())
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (commands, told) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(told).split(0).map_while(Result::ok) {
                if send.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut browser =
            Self { child, commands, messages, count: 0, tab: None, events: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        browser.tab = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        if scripts == Scripts::Off {
            browser.call("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
        }
        browser
    }

    /// Gives a command and waits for what it comes to.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.count += 1;
        let mut command = json!({"id": self.count, "method": method, "params": params});
        if let Some(tab) = &self.tab {
            command["sessionId"] = json!(tab);
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).unwrap();
        self.commands.flush().unwrap();
        loop {
            let message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == self.count {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Goes to an address and waits until the page is there.
    pub(crate) fn open(&mut self, address: &str) {
        let went = self.call("Page.navigate", &json!({"url": address}));
        assert!(went["errorText"].is_null(), "{address}: {went}");
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// What an expression comes to in the page.
    pub(crate) fn ask(&mut self, expression: &str) -> Value {
        self.try_ask(expression).unwrap_or_else(|problem| panic!("{expression}: {problem}"))
    }

    fn try_ask(&mut self, expression: &str) -> Result<Value, Value> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", &params);
        if result["exceptionDetails"].is_null() { Ok(result["result"]["value"].clone()) } else { Err(result) }
    }

    /// Waits until an expression is true. While one page gives way to the next it may have no value at all.
    pub(crate) fn until(&mut self, expression: &str) {
        let began = Instant::now();
        while self.try_ask(expression) != Ok(Value::Bool(true)) {
            assert!(began.elapsed() < PATIENCE, "{expression} does not come true: {}", self.text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What a person reads on the page.
    pub(crate) fn text(&mut self) -> String {
        self.try_ask("document.body.innerText")
            .ok()
            .and_then(|text| Some(text.as_str()?.to_owned()))
            .unwrap_or_default()
    }

    /// Waits until a person reads this on the page.
    pub(crate) fn until_shown(&mut self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Presses the mouse on an element, as a person would.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.ask(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center'}}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &params);
        }
    }

    /// Clicks into a field and types.
    pub(crate) fn write(&mut self, selector: &str, text: &str) {
        self.click(selector);
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// The parameters of all events of a kind so far.
    pub(crate) fn told(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.commands.flush();
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
