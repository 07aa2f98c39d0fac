//! A browser without a screen, driven by WebDriver: small JSON requests over plain HTTP.

use crate::common::PATIENCE;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One browser with one page.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// The browser's profile.
    _home: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser; the error says why this computer has none.
    pub fn begin() -> Result<Self, String> {
        let chromium = program(&["chromium", "chromium-browser", "google-chrome"])?;
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut driver = Command::new(program(&["chromedriver"])?)
            .args(["--port=0"])
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("chromedriver: {error}"))?;
        let port = announced_port(&mut driver).expect("chromedriver tells its port");
        let mut browser = Self { driver, port, session: String::new(), _home: home };
        browser.session = browser.open(&chromium);
        Ok(browser)
    }

    fn open(&self, chromium: &str) -> String {
        let profile = format!("--user-data-dir={}", self._home.path().join("profile").display());
        let arguments = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--window-size=1280,900",
            profile,
        ]);
        let wanted = json!({
            "browserName": "chrome",
            "goog:chromeOptions": { "binary": chromium, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let body = json!({ "capabilities": { "alwaysMatch": wanted } });
        let value = self.send("POST", "/session", &body);
        value["sessionId"].as_str().expect("a session").to_owned()
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the driver");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let (port, len) = (self.port, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).expect("it is sent");
        let answer: Value = serde_json::from_slice(&body_of(stream)).expect("JSON");
        let value = answer["value"].clone();
        assert!(value["error"].is_null(), "{method} {path}: {value}");
        value
    }

    fn in_session(&self, path: &str, body: &Value) -> Value {
        self.send("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// A command of the browser's own debugging protocol.
    pub fn tool(&self, command: &str, params: Value) -> Value {
        self.in_session("/goog/cdp/execute", &json!({ "cmd": command, "params": params }))
    }

    pub fn visit(&self, url: &str) {
        self.in_session("/url", &json!({ "url": url }));
    }

    /// The value of a JavaScript expression.
    pub fn value(&self, expression: &str) -> Value {
        let script = format!("return {expression};");
        self.in_session("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    pub fn text(&self, selector: &str) -> String {
        let value = self.value(&format!("document.querySelector({}).innerText", json!(selector)));
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait(&self, expression: &str) {
        let begun = Instant::now();
        while self.value(expression) != json!(true) {
            assert!(begun.elapsed() < PATIENCE, "never came true: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the page has this width and has drawn itself again.
    pub fn draws(&self, width: u32) {
        self.wait(&format!("innerWidth === {width}"));
        let frames = "(() => { window.due = 3; const step = () => { if ((window.due -= 1) > 0) \
                      requestAnimationFrame(step); }; requestAnimationFrame(step); })()";
        self.value(frames);
        self.wait("window.due === 0 && changed === false && drawnAt > 0");
    }

    /// Clicks, as a user does: a covered or unreachable element cannot be clicked.
    pub fn click(&self, selector: &str) {
        let using = json!({ "using": "css selector", "value": selector });
        let found = self.in_session("/element", &using);
        let element = found.as_object().and_then(|ids| ids.values().next()).expect("an element");
        let element = element.as_str().expect("its name");
        self.in_session(&format!("/element/{element}/click"), &json!({}));
    }

    /// The browser's console messages since the last call.
    pub fn console(&self) -> Vec<Value> {
        let log = self.in_session("/se/log", &json!({ "type": "browser" }));
        log.as_array().cloned().unwrap_or_default()
    }

    /// The window's size in its own pixels, and the screen's pixels for each of them.
    pub fn resize(&self, width: u32, height: u32, ratio: u32) {
        let params = json!({
            "width": width, "height": height, "deviceScaleFactor": ratio, "mobile": width < 500,
        });
        self.tool("Emulation.setDeviceMetricsOverride", params);
    }

    /// Sets light or dark, and whether motion is wanted.
    pub fn prefer(&self, scheme: &str, motion: &str) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": motion },
        ]);
        self.tool("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Saves a picture of the window.
    pub fn picture(&self, to: &Path) {
        let shot = self.tool("Page.captureScreenshot", json!({ "format": "png" }));
        let png = from_base64(shot["data"].as_str().expect("a picture"));
        std::fs::write(to, png).expect("a file");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Also after a failed test the browser must not stay; errors here do not matter.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let (session, port) = (&self.session, self.port);
            let head = format!("DELETE /session/{session} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes());
            let _ = stream.read(&mut [0; 64]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn program(names: &[&str]) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|path| path.is_file());
    found.map(|path| path.display().to_string()).ok_or(format!("there is no {}", names[0]))
}

fn announced_port(driver: &mut Child) -> Option<u16> {
    let lines = BufReader::new(driver.stdout.take()?).lines();
    let line =
        lines.map_while(Result::ok).find(|line| line.contains("started successfully on port"))?;
    line.rsplit(' ').next()?.trim_end_matches('.').parse().ok()
}

/// The body of an answer with a content length.
fn body_of(stream: TcpStream) -> Vec<u8> {
    let mut stream = BufReader::new(stream);
    let mut len = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a header");
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            len = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; len];
    stream.read_exact(&mut body).expect("a body");
    body
}

fn from_base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for value in text.bytes().filter_map(|c| LETTERS.iter().position(|&letter| letter == c)) {
        bits = bits << 6 | value as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    out
}
