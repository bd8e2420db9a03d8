//! Claims about the pages that `talea study` writes, as a browser shows them: the real
//! program, the real items API, the real browser. Screenshots stay in
//! `report-screenshots` beside what was built.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use stage::{Browser, Screen, Theme, built, file_url};
use tempfile::TempDir;
use tokio::net::TcpListener;

const SCREENS: [Screen; 2] = [
    Screen { width: 1280, height: 800, mobile: false },
    Screen { width: 390, height: 844, mobile: true },
];

/// The faults of the page as it is shown now, in words.
const FAULTS: &str = r##"
const faults = [];
const start = element => element.outerHTML.slice(0, 120);
if (!document.querySelector('h1')?.innerText.trim()) faults.push('it has no h1');
for (const link of document.querySelectorAll('a[href^="#"]')) {
    const target = decodeURIComponent(link.hash.slice(1));
    if (!document.getElementById(target)) faults.push(`nothing is where ${start(link)} leads`);
}
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
    const text = texts.currentNode, element = text.parentElement;
    if (!text.data.trim() || element.closest('script, style, template, svg title, svg desc')) continue;
    // Closed details, and what is left out on this screen.
    if (!element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const { width, height } = range.getBoundingClientRect();
    if (!(width > 0 && height > 0)) faults.push(`text without a size in ${start(element)}`);
}
const width = arguments[0], all = document.documentElement;
if (all.scrollWidth > Math.min(width, window.innerWidth, all.clientWidth)) {
    const scrolled = element => {
        for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
            if (getComputedStyle(at).overflowX !== 'visible') return true;
        }
        return false;
    };
    const wide = [...document.body.querySelectorAll('*')].filter(element =>
        element.getBoundingClientRect().right > width + 0.5 && !scrolled(element));
    faults.push(`it is ${all.scrollWidth} wide on ${width}; beyond that is ${wide.slice(0, 3).map(start)}`);
}
return faults;
"##;

/// Drawings and pictures that are there for somebody who cannot see them too.
const PICTURES: &str = r#"
return [...document.querySelectorAll('svg, img')].filter(picture =>
    !picture.parentElement.closest('svg') && picture.checkVisibility() &&
    !picture.closest('[aria-hidden="true"]') && picture.getAttribute('alt') !== '');
"#;

const BACKGROUND: &str = r#"
const colour = element => getComputedStyle(element).backgroundColor;
const body = colour(document.body);
return body === 'rgba(0, 0, 0, 0)' ? colour(document.documentElement) : body;
"#;

const OPEN_DETAILS: &str = "document.querySelectorAll('details').forEach(part => part.open = true)";

/// The text of an element, as far as it identifies the element.
const START: &str = "return arguments[0].outerHTML.slice(0, 120)";

/// A page with one of each fault, and what looks like one.
const BAD: &str = r##"<!DOCTYPE html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>bad</title>
<style>body { background: white } #wide { width: 600px; margin: 0; position: absolute; left: 0 }
#scrolled { overflow-x: auto } #scrolled p { width: 2000px } #flat { font-size: 0 }</style>
<body id="top"><a href="#nowhere">nowhere</a> <a href="#top">to the top</a>
<p id="flat">flat</p> <p hidden>hidden</p> <div id="scrolled"><p>wide within</p></div>
<svg id="nameless" width="9" height="9"><rect width="9" height="9"/></svg>
<svg aria-hidden="true" width="9" height="9"></svg>
<svg role="img" aria-label="a square" width="9" height="9"></svg>
<img alt="none" src="http://talea.invalid/picture.png"><p id="wide">wide</p>"##;

fn kept() -> PathBuf {
    built("talea").parent().expect("its folder").with_file_name("report-screenshots")
}

/// The report that `talea study` writes with these arguments; it must end with this status.
fn study(arguments: &[&str], status: i32) -> TempDir {
    // The program starts this one.
    built("items-api");
    let out = TempDir::new().expect("a folder for the report");
    let output = Command::new(built("talea"))
        .arg("study")
        .args(arguments)
        .arg("--out")
        .arg(out.path())
        .output()
        .expect("talea runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    out
}

/// Where a service is that keeps the contract of the items API, but for every fifth answer.
async fn failing_service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/api/items", listener.local_addr().expect("it has an address"));
    let count = Arc::new(AtomicU64::new(0));
    let app = axum::Router::new().fallback(async move |method: Method| match method {
        _ if count.fetch_add(1, Ordering::Relaxed) % 5 == 4 => {
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Method::POST => one(StatusCode::CREATED),
        Method::DELETE => StatusCode::NO_CONTENT.into_response(),
        _ => one(StatusCode::OK),
    });
    tokio::spawn(async { axum::serve(listener, app).await.expect("it serves") });
    url
}

fn one(status: StatusCode) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (status, json, r#"{"data":{"id":7,"value":true}}"#).into_response()
}

async fn faults(page: &Path, name: &str, screenshots: &Path) -> Vec<String> {
    fs::create_dir_all(screenshots).expect("there is a folder for screenshots");
    let browser = Browser::start().await;
    let mut found = Vec::new();
    for screen in SCREENS {
        browser.show_on(screen).await;
        let mut backgrounds = Vec::new();
        for theme in [Theme::Light, Theme::Dark] {
            browser.prefer(theme).await;
            browser.open(page).await;
            backgrounds.push(browser.run(BACKGROUND, &[]).await);
            let shown = format!("{name}-{}-{}", theme.name(), screen.width);
            let screenshot = browser.screenshot().await;
            fs::write(screenshots.join(shown.clone() + ".png"), screenshot).expect("it is written");

            let mut faults = BTreeSet::from_iter(seen_faults(&browser, screen).await);
            browser.run(OPEN_DETAILS, &[]).await;
            faults.extend(seen_faults(&browser, screen).await);
            faults.extend(logged_faults(&browser, page).await);
            found.extend(faults.into_iter().map(|fault| format!("{shown}: {fault}")));
        }
        if backgrounds[0] == backgrounds[1] {
            found.push(format!("{name}: both themes have the background {}", backgrounds[0]));
        }
    }
    found
}

async fn seen_faults(browser: &Browser, screen: Screen) -> Vec<String> {
    let found = browser.run(FAULTS, &[screen.width.into()]).await;
    let mut faults: Vec<_> = found
        .as_array()
        .expect("a list")
        .iter()
        .map(|fault| fault.as_str().expect("a fault is a text").to_owned())
        .collect();
    for picture in browser.run(PICTURES, &[]).await.as_array().expect("a list") {
        if browser.name_of(picture).await.is_empty() {
            let start = browser.run(START, std::slice::from_ref(picture)).await;
            faults.push(format!("no accessible name: {start}"));
        }
    }
    faults
}

/// The console messages of a page, and the addresses that it requests.
async fn logged_faults(browser: &Browser, page: &Path) -> Vec<String> {
    let complaints = browser.complaints().await;
    let mut faults: Vec<_> =
        complaints.iter().map(|text| format!("the console says {text}")).collect();
    let itself = file_url(page);
    let requests = browser.requests().await;
    assert!(requests.contains(&itself), "requests are not reported: {requests:?}");
    // Content within the page is fetched from no server.
    let others = requests.iter().filter(|url| **url != itself && !url.starts_with("data:"));
    faults.extend(others.map(|url| format!("it asks for {url}")));
    faults
}

#[tokio::test]
async fn a_report_reads_well_on_any_screen_in_any_theme() {
    let out = study(&["--cases", "5x20,20x5,3x2s"], 0);
    assert_eq!(faults(&out.path().join("report.html"), "study", &kept()).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_of_a_service_that_fails() {
    let url = failing_service().await;
    let out = study(&["--cases", "5x20,20x5,3x2s", "--scenario", "crud", "--url", &url], 1);
    assert_eq!(faults(&out.path().join("report.html"), "failures", &kept()).await, [""; 0]);
}

#[tokio::test]
async fn so_does_a_comparison() {
    let out = study(&["--ab", "X=1", "X=2", "--rounds", "2", "--cases", "2x5"], 0);
    assert_eq!(faults(&out.path().join("comparison.html"), "comparison", &kept()).await, [""; 0]);
}

/// The faults that the other tests must detect.
#[tokio::test]
async fn a_page_that_reads_badly_is_noticed() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("bad.html");
    fs::write(&page, BAD).unwrap();
    let found = faults(&page, "bad", folder.path()).await;
    for fault in [
        "bad-light-1280: it has no h1",
        "bad-light-1280: nothing is where <a href=\"#nowhere\">",
        "bad-light-1280: text without a size in <p id=\"flat\"",
        "bad-light-1280: no accessible name: \"<svg id=\\\"nameless\\\"",
        "bad-dark-390: it is 600 wide on 390; beyond that is <p id=\"wide\"",
        "bad-dark-390: the console says http",
        "bad-dark-390: it asks for http://talea.invalid/picture.png",
        "bad: both themes have the background \"rgb(255, 255, 255)\"",
    ] {
        assert!(found.iter().any(|found| found.starts_with(fault)), "{fault}: {found:#?}");
    }
    // Correct elements are not reported: 7 a theme on a telephone, 6 on a desktop.
    assert_eq!(found.len(), 2 * (7 + 6) + 2, "{found:#?}");
}
