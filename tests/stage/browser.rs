//! A browser of our own, without a window. chromedriver controls it, in the
//! WebDriver protocol.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Method;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::LONGEST;
use crate::client::ask;

const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Chromium goes when the thread of chromedriver that started it does, so that it is gone
/// even where a test is killed.
const CHROMIUM: &str = "#!/bin/sh\nexec setpriv --pdeathsig KILL chromium \"$@\"\n";

/// By these it asks nobody of its own accord and finds nobody whom a page wants to ask; a
/// screen's width is all the page's.
const ARGUMENTS: [&str; 14] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-features=MediaRouter,OptimizationHints,Translate",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-default-browser-check",
    "--no-first-run",
];

#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// In CSS pixels, as the height.
    pub width: u32,
    pub height: u32,
    /// A telephone's: pages are laid out for it only if they say so.
    pub mobile: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Theme {
    Light,
    Dark,
}

impl Theme {
    /// As `prefers-color-scheme` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A browser that runs, with its profile in a folder that goes with it.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    // It goes last.
    folder: TempDir,
}

/// Starts chromedriver, which writes to a log. It dies with this thread too.
fn driver(folder: &Path, log: &Path) -> Child {
    let output = File::create(log).expect("its log is made");
    let complaints = output.try_clone().expect("its log is one file");
    let driver = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "chromedriver", "--port=0"])
        // Whatever it keeps, it keeps there.
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_CACHE_HOME")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(complaints)
        .spawn();
    driver.expect("setpriv runs; scripts/setup --test installs chromium-driver")
}

impl Browser {
    pub async fn start() -> Self {
        let folder = TempDir::new().expect("a folder for the browser");
        let chromium = folder.path().join("chromium");
        fs::write(&chromium, CHROMIUM).expect("what starts it is written");
        fs::set_permissions(&chromium, fs::Permissions::from_mode(0o755)).expect("and can run");
        let log = folder.path().join("log");
        let driver = driver(folder.path(), &log);
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut started = Self { driver, address, session: String::new(), folder };
        let port = started.port(&log).await;
        started.address.set_port(port);
        let profile = log.with_file_name("profile");
        let session = started.ask(Method::POST, "/session", wanted(&chromium, &profile)).await;
        let session = session["sessionId"].as_str().expect("a session has an id");
        started.session = format!("/session/{session}");
        // It begins with the page of a new tab, which asks for much.
        started.tell("/url", json!({ "url": "about:blank" })).await;
        started.requests().await;
        started
    }

    /// Where chromedriver says that it listens.
    async fn port(&mut self, log: &Path) -> u16 {
        let began = Instant::now();
        loop {
            let output = fs::read_to_string(log).expect("it has a log");
            let port = output.lines().find_map(|line| {
                line.split_once("started successfully on port ")?
                    .1
                    .trim_end_matches('.')
                    .parse()
                    .ok()
            });
            if let Some(port) = port {
                return port;
            }
            let has_ended = self.driver.try_wait().expect("it can be waited for").is_some();
            // The port that it found free for IPv6 can be taken for IPv4.
            let again = has_ended && output.contains("IPv4 port not available");
            if again {
                self.driver = driver(self.folder.path(), log);
            }
            assert!(
                (!has_ended || again) && began.elapsed() < LONGEST,
                "chromedriver does not start; scripts/setup --test installs chromium-driver. {output}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Shows a file, once all of it is there.
    pub async fn open(&self, file: &Path) {
        self.tell("/url", json!({ "url": file_url(file) })).await;
    }

    /// Shows pages as on that screen from now on.
    pub async fn show_on(&self, screen: Screen) {
        let Screen { width, height, mobile } = screen;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// Shows pages to somebody who prefers that.
    pub async fn prefer(&self, theme: Theme) {
        let feature = json!({ "name": "prefers-color-scheme", "value": theme.name() });
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": [feature] })).await;
    }

    /// All of the page, also what one would scroll to, as a PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        let wanted = json!({ "format": "png", "captureBeyondViewport": true });
        let taken = self.devtools("Page.captureScreenshot", wanted).await;
        let data = taken["data"].as_str().expect("a screenshot has data");
        BASE64_STANDARD.decode(data).expect("a screenshot is in base 64")
    }

    pub async fn run(&self, script: &str, arguments: &[Json]) -> Json {
        self.tell("/execute/sync", json!({ "script": script, "args": arguments })).await
    }

    /// The accessible name of an element, as a screen reader says it. The
    /// element is what a script returned.
    pub async fn name_of(&self, element: &Json) -> String {
        let id = element.as_object().and_then(|element| element.values().next()?.as_str());
        let id = id.unwrap_or_else(|| panic!("{element} is no element"));
        let path = format!("{}/element/{id}/computedlabel", self.session);
        let name = self.ask(Method::GET, &path, Json::Null).await;
        name.as_str().unwrap_or_default().trim().to_owned()
    }

    /// The warnings and errors of the console since the last call.
    pub async fn complaints(&self) -> Vec<String> {
        self.log("browser")
            .await
            .iter()
            .filter(|entry| entry["level"] == "WARNING" || entry["level"] == "SEVERE")
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The URLs that pages have asked for since this was asked last.
    pub async fn requests(&self) -> Vec<String> {
        self.log("performance")
            .await
            .iter()
            .filter_map(|entry| {
                let event = entry["message"].as_str().expect("an entry is a text");
                let event: Json = serde_json::from_str(event).expect("the text is JSON");
                let event = &event["message"];
                let asks = event["method"] == "Network.requestWillBeSent";
                asks.then(|| {
                    event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned()
                })
            })
            .collect()
    }

    async fn log(&self, kind: &str) -> Vec<Json> {
        let mut entries = self.tell("/se/log", json!({ "type": kind })).await;
        entries.as_array_mut().map(std::mem::take).expect("a log is a list")
    }

    /// Has a command of Chromium's own protocol carried out.
    async fn devtools(&self, command: &str, parameters: Json) -> Json {
        self.tell("/goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await
    }

    async fn tell(&self, command: &str, parameters: Json) -> Json {
        self.ask(Method::POST, &format!("{}{command}", self.session), parameters).await
    }

    async fn ask(&self, method: Method, path: &str, body: Json) -> Json {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) =
            ask(self.address, method, path, body).await.expect("chromedriver answers");
        let mut answer: Json = serde_json::from_slice(&answer).expect("it answers in JSON");
        assert!(
            status == 200,
            "{path}: {}. Chromium is installed by scripts/setup --test",
            answer["value"]["message"].as_str().unwrap_or_default()
        );
        answer["value"].take()
    }

    /// Ends the browser and waits until it has ended, so that nobody writes to its folder
    /// any more.
    fn end_session(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.address, ENDS_WITHIN)?;
        stream.set_read_timeout(Some(ENDS_WITHIN))?;
        write!(stream, "DELETE {} HTTP/1.1\r\nhost: localhost\r\n\r\n", self.session)?;
        stream.read(&mut [0; 1024]).map(drop)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.end_session();
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Under which URL a file is asked for. Its path has nothing that a URL writes otherwise.
pub fn file_url(file: &Path) -> String {
    let path = file.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    format!("file://{}", path.display())
}

/// The settings of the session.
fn wanted(chromium: &Path, profile: &Path) -> Json {
    let mut arguments: Vec<String> =
        ARGUMENTS.iter().map(|&argument| argument.to_owned()).collect();
    arguments.push(format!("--user-data-dir={}", profile.display()));
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "timeouts": { "pageLoad": 20_000, "script": 10_000 },
        "goog:chromeOptions": { "binary": chromium, "args": arguments },
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
    } } })
}
