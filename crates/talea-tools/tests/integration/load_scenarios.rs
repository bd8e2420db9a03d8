//! `talea load`: what scenarios can do, against a server that writes down what it receives.

use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{COOKIE, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::counting_server::{Server, text};
use crate::support::{assert_ends, printed_json, stdout, talea};

/// A server, and the requests that it received: method, URI, cookies and body.
struct Shop {
    server: Server,
    received: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
}

impl Shop {
    fn open() -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = received.clone();
        let server = Server::start(None, move |request| answer(request, log.clone()));
        Self { server, received, folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// A load of a scenario.
    fn load(&self, scenario: &str, arguments: &[&str]) -> Output {
        self.write("scenario.toml", scenario);
        let path = self.folder.path().join("scenario.toml");
        let url = format!("http://{}", self.server.address);
        let words = ["load", &url, "--scenario", path.to_str().unwrap()];
        talea([&words[..], arguments].concat())
    }

    /// The summary of one client that runs a scenario, which ends with this status.
    #[track_caller]
    fn loaded(&self, scenario: &str, iterations: &str, status: i32) -> Value {
        let output = self.load(scenario, &["--json", "-c", "1", "-m", iterations]);
        assert_ends(&output, status, &[]);
        printed_json(&output)
    }

    fn received(&self) -> Vec<String> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

async fn answer(request: Request<Incoming>, log: Arc<Mutex<Vec<String>>>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let cookies = head.headers.get(COOKIE).map_or("", |cookies| cookies.to_str().unwrap());
    let line = format!("{} {} {cookies} {}", head.method, head.uri, String::from_utf8_lossy(&body));
    log.lock().unwrap().push(line.trim_end().to_owned());
    let mut answer = text(r#"{"data":{"id":42,"name":"ann","ms":1.5}}"#);
    match head.uri.path() {
        "/login" => {
            answer.headers_mut().insert(SET_COOKIE, HeaderValue::from_static("session=7; Path=/"));
        }
        "/old" => redirect(&mut answer, "/new?from=old"),
        "/again" => redirect(&mut answer, "/again"),
        "/elsewhere" => redirect(&mut answer, "http://other.example/"),
        "/fails" => *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
        "/events" => answer = text("data: 1\n\n: a comment\n\ndata: 2\n\n"),
        _ => {}
    }
    answer
}

fn redirect(answer: &mut Response<Full<Bytes>>, to: &'static str) {
    *answer.status_mut() = StatusCode::FOUND;
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
}

#[test]
fn each_run_takes_the_next_row_of_a_feed_and_ends_with_the_last_one() {
    let shop = Shop::open();
    shop.write("users.csv", "name,id\nann,1\nbob,2\n");
    shop.write("items.jsonl", "{\"sku\":7}\n{\"sku\":\"8/9\"}\n{\"sku\":9}\n");
    let scenario = |order: &str| {
        format!(
            "[feeds.users]\nfile = 'users.csv'\norder = '{order}'\n[feeds.items]\nfile = 'items.jsonl'\n\
             [[step]]\nmethod = 'PUT'\npath = '/{{users.name}}/{{items.sku}}'\njson = '{{items.sku}}'"
        )
    };
    let summary = shop.loaded(&scenario("cycle"), "3", 0);
    assert_eq!(shop.received(), ["PUT /ann/7  7", "PUT /bob/8%2F9  \"8/9\"", "PUT /ann/9  9"]);
    assert_eq!(summary["limits"], json!([]));
    // A feed that is used up ends a closed load early, which is said, and fails arrivals.
    let summary = shop.loaded(&scenario("once"), "3", 0);
    assert_eq!(shop.received().len(), 2);
    let words = "the feed users had no more rows before the load was over";
    assert_eq!(summary["limits"], json!([words]));
    let output = shop.load(&scenario("once"), &["--json", "--rate", "100", "--for", "30ms"]);
    assert_ends(&output, 1, &[]);
    let failures = printed_json(&output)["failures"].take();
    assert_eq!(failures[0]["kind"], "not sent: the feed users has no more rows");
    assert_eq!((&failures[0]["count"], shop.received().len()), (&json!(1), 2));
}

#[test]
fn clients_that_keep_their_rows_have_each_another_one() {
    let shop = Shop::open();
    shop.write("users.csv", "name\na\nb\nc\n");
    let scenario = "[feeds.users]\nfile = 'users.csv'\neach = 'client'\n\
                    [[step]]\nmethod = 'GET'\npath = '/{users.name}'";
    assert_ends(&shop.load(scenario, &["-c", "3", "-m", "5"]), 0, &[]);
    let mut received = shop.received();
    received.sort();
    let expected = ["GET /a", "GET /b", "GET /c"].map(|line| [line; 5]).concat();
    assert_eq!(received, expected);
}

#[test]
fn cookies_are_kept_for_a_run_of_the_scenario() {
    let shop = Shop::open();
    let steps = "[[step]]\nmethod = 'GET'\npath = '/a'\n[[step]]\nmethod = 'POST'\npath = '/login'\n\
                 [[step]]\nmethod = 'GET'\npath = '/b'\nheaders = { Cookie = 'own=1' }";
    shop.loaded(&format!("cookies = true\n{steps}"), "2", 0);
    let run = ["GET /a", "POST /login", "GET /b own=1; session=7"];
    assert_eq!(shop.received(), [run, run].concat());
    shop.loaded(steps, "1", 0);
    assert_eq!(shop.received(), ["GET /a", "POST /login", "GET /b own=1"]);
}

#[test]
fn redirects_are_followed_on_the_same_server_and_each_counts_as_a_request() {
    let shop = Shop::open();
    let step = |path: &str, more: &str| {
        format!(
            "redirects = 3\n[[step]]\nname = 's'\nmethod = 'POST'\npath = '{path}'\nbody = 'x'\n{more}"
        )
    };
    for (path, more, status, received, failure) in [
        ("/old", "", 0, &["POST /old  x", "GET /new?from=old"][..], None),
        // It is what the step expects.
        ("/old", "expect = 302", 0, &["POST /old  x"], None),
        (
            "/elsewhere",
            "",
            1,
            &["POST /elsewhere  x"],
            Some("s: redirected to another server, which gets no load"),
        ),
        (
            "/again",
            "",
            1,
            &["POST /again  x", "GET /again", "GET /again", "GET /again"],
            Some("s: redirected again after 3 redirects"),
        ),
    ] {
        let summary = shop.loaded(&step(path, more), "1", status);
        assert_eq!(shop.received(), received, "{path}");
        assert_eq!(summary["requests_sent"], received.len(), "{path}: {summary}");
        assert_eq!(summary["failures"][0]["kind"].as_str(), failure, "{path}");
        assert!(summary["requests_planned"].is_null());
    }
}

#[test]
fn a_check_that_fails_is_counted_by_itself_and_fails_the_request_once() {
    let shop = Shop::open();
    let scenario = r#"
        [variables]
        who = "ann"
        [[step]]
        name = "look"
        method = "GET"
        check.contains = ["{who}", "nowhere"]
        check.lacks = "error"
        check.json = { "/data/id" = 42, "/data/name" = "{who}", "/data/none" = 1 }
        check.size = [10, 20]
        check.headers = { "X-None" = "a" }
        measure = { ms = "/data/ms", none = "/none" }
    "#;
    // Half of them pass.
    for (condition, words) in
        [("checks < 50%", "passed: checks < 50%"), ("checks < 51%", "FAILED: ")]
    {
        let output = shop.load(scenario, &["-c", "1", "-m", "1", "--fail-if", condition]);
        assert_ends(&output, 1, &[words, "found 50.0 %"]);
    }
    let summary = shop.loaded(scenario, "2", 1);
    let checks = summary["checks"].as_array().unwrap();
    let counts: Vec<_> = checks
        .iter()
        .map(|check| (check["check"].as_str().unwrap(), check["passed"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("the header x-none is \"a\"", 0),
        ("the body contains \"{who}\"", 2),
        ("the body contains \"nowhere\"", 0),
        ("the body lacks \"error\"", 2),
        ("/data/id is \"42\"", 2),
        ("/data/name is \"{who}\"", 2),
        ("/data/none is \"1\"", 0),
        ("the body has 10 to 20 bytes", 0),
    ];
    assert_eq!(counts, expected);
    assert!(checks.iter().all(|check| check["passed"].as_u64().unwrap() + check["failed"].as_u64().unwrap() == 2));
    assert_eq!(summary["failed"], 2);
    let kind = "look: failed the check that the header x-none is \"a\"";
    assert_eq!(summary["failures"], json!([{"kind": kind, "count": 2}]));
    let numbers = summary["measures"].as_array().unwrap();
    assert_eq!(
        (&numbers[0]["name"], &numbers[0]["sum"], &numbers[0]["count"]),
        (&json!("ms"), &json!(3.0), &json!(2))
    );
    assert_eq!(numbers[1]["count"], 0);
}

#[test]
fn setup_and_teardown_are_made_once_and_not_counted() {
    let shop = Shop::open();
    let scenario = "[[setup]]\nmethod = 'POST'\npath = '/tenant'\ncapture = { tenant = '/data/id' }\n\
                    [[step]]\nmethod = 'GET'\npath = '/{tenant}'\n\
                    [[teardown]]\nmethod = 'DELETE'\npath = '/{tenant}'";
    let summary = shop.loaded(scenario, "2", 0);
    assert_eq!(shop.received(), ["POST /tenant", "GET /42", "GET /42", "DELETE /42"]);
    assert_eq!(summary["requests_sent"], 2);
    let failing = scenario.replace("/tenant", "/fails");
    let output = shop.load(&failing, &["-c", "1", "-m", "1"]);
    assert_ends(
        &output,
        2,
        &["setup: POST /fails: 500 Internal Server Error, expected 200 to 299"],
    );
    assert_eq!(shop.received(), ["POST /fails"], "no load begins");
}

#[test]
fn flows_have_their_shares_of_the_runs() {
    let shop = Shop::open();
    let scenario = "[flows]\nbrowse = 3\nbuy = 1\n\
                    [[step]]\nmethod = 'GET'\npath = '/all'\n\
                    [[step]]\nflow = 'browse'\nmethod = 'GET'\npath = '/browse'\n\
                    [[step]]\nflow = 'buy'\nmethod = 'GET'\npath = '/buy'";
    let summary = shop.loaded(scenario, "400", 0);
    let received = shop.received();
    let count = |path: &str| received.iter().filter(|line| line.ends_with(path)).count();
    assert_eq!((count("/all"), count("/browse") + count("/buy")), (400, 400));
    // The same for the same seed; within four standard deviations.
    assert!((265..=335).contains(&count("/browse")), "{}", count("/browse"));
    assert_eq!(summary["requests_planned"], 800);
    // A dry run shows every step.
    let dry_run = stdout(&shop.load(scenario, &["--dry-run"]));
    assert!(["/all", "/browse", "/buy"].iter().all(|path| dry_run.contains(path)), "{dry_run}");
}

#[test]
fn a_form_has_texts_and_files_and_a_body_may_be_a_file() {
    let shop = Shop::open();
    shop.write("a.bin", b"\0raw");
    let scenario = "[variables]\nwho = 'ann'\n[[step]]\nmethod = 'POST'\n\
                    multipart = { name = 'for {who}', up = { file = 'a.bin', type = 'image/png' } }\n\
                    [[step]]\nmethod = 'PUT'\nbody_file = 'a.bin'";
    shop.loaded(scenario, "1", 0);
    let received = shop.received();
    for part in [
        "Content-Disposition: form-data; name=\"name\"\r\n\r\nfor ann\r\n--",
        "form-data; name=\"up\"; filename=\"a.bin\"\r\nContent-Type: image/png\r\n\r\n\0raw\r\n--",
    ] {
        assert!(received[0].contains(part), "{part:?}: {:?}", received[0]);
    }
    assert_eq!(received[1], "PUT /  \0raw");
}

#[test]
fn a_stream_of_events_is_complete_after_as_many_as_are_expected() {
    let shop = Shop::open();
    let scenario = |events: u64| {
        format!("[[step]]\nname = 's'\nmethod = 'GET'\npath = '/events'\nevents = {events}")
    };
    let summary = shop.loaded(&scenario(2), "2", 0);
    assert_eq!((&summary["answers"], &summary["connections"]), (&json!(2), &json!(2)));
    let summary = shop.loaded(&scenario(3), "1", 1);
    let kind = "s: the response ended before the expected number of events";
    assert_eq!(summary["failures"][0]["kind"], kind);
}

#[test]
fn a_path_that_no_request_can_have_ends_the_load_with_an_error() {
    let shop = Shop::open();
    let scenario =
        format!("[[step]]\nname = 's'\nmethod = 'GET'\npath = '/{}'", "a".repeat(1 << 16));
    for more in [
        &["-c", "1", "-m", "1"][..],
        &["-c", "3", "-m", "1", "--threads", "3"],
        &["-c", "1", "--dry-run"],
    ] {
        assert_ends(&shop.load(&scenario, more), 2, &["s: /aaaa", "uri too long"]);
    }
    assert_eq!(shop.received(), [""; 0]);
}

#[test]
fn the_scenario_of_the_docs_that_has_everything_runs() {
    let shop = Shop::open();
    let docs = include_str!("../../../../docs/reference/scenarios.md");
    let mut blocks = docs.split("```toml").skip(1).map(|rest| rest.split("```").next().unwrap());
    shop.write("login.toml", blocks.next().unwrap());
    shop.write("users.csv", "name,password\nann,secret\n");
    shop.write("photo.png", "png");
    assert!(Path::new(&shop.folder.path().join("login.toml")).exists());
    let output = shop.load(blocks.next().unwrap(), &["--dry-run"]);
    let shown = stdout(&output);
    assert!(shown.contains("POST /login") && shown.contains("multipart/form-data"), "{output:?}");
}

#[test]
fn options_say_what_is_requested_as_a_scenario_does() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let log = received.clone();
    let server = Server::start(None, move |request: Request<Incoming>| {
        let log = log.clone();
        async move {
            let (head, body) = request.into_parts();
            let header = |name: &str| head.headers.get(name).map_or("", |it| it.to_str().unwrap());
            let headers = [header("authorization"), header("x-name"), header("content-type")];
            let body = body.collect().await.unwrap().to_bytes();
            let body = String::from_utf8_lossy(&body).into_owned();
            log.lock().unwrap().push(format!("{} {} {headers:?} {body}", head.method, head.uri));
            text("{}")
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let [body, token] = [file("body", "from a file"), file("token", "abc\n")];
    let document = file(
        "api.yaml",
        "openapi: 3.0.3\npaths:\n  /orders:\n    get: {responses: {'200': {}}}\n    \
         delete: {responses: {'200': {}}}\n",
    );
    let form = "application/x-www-form-urlencoded";
    for (options, expected) in [
        (&[][..], &["GET / [\"\", \"\", \"\"] "][..]),
        (
            &["--method", "PUT", "--header", "X-Name: ann", "--data", "a=1"],
            &[&*format!("PUT / [\"\", \"ann\", \"{form}\"] a=1")],
        ),
        (&["--data-file", &body], &[&*format!("POST / [\"\", \"\", \"{form}\"] from a file")]),
        (&["--basic", "ann:b"], &["GET / [\"Basic YW5uOmI=\", \"\", \"\"] "]),
        (&["--bearer-file", &token], &["GET / [\"Bearer abc\", \"\", \"\"] "]),
        (&["--openapi", &document], &["GET /orders [\"\", \"\", \"\"] "]),
        (
            &["--openapi", &document, "--unsafe-methods"],
            &["GET /orders [\"\", \"\", \"\"] ", "DELETE /orders [\"\", \"\", \"\"] "],
        ),
    ] {
        let url = format!("http://{}/", server.address);
        let output = talea([&["load", &url, "-c", "1", "-m", "1"], options].concat());
        assert_ends(&output, 0, &[]);
        let mut found = std::mem::take(&mut *received.lock().unwrap());
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{options:?}");
    }
}
