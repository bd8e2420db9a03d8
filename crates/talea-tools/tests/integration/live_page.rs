//! The data of the live page, by the real agent and the real study: what browsers get is what was counted.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use talea::{Config, Counter, Opts, Registry};

use crate::support::agent::{Agent, ask};
use crate::support::event_stream::EventStream;
use crate::support::items_api::{ItemsApi, is_listed};
use crate::support::region_folder::{RegionFolder, count_orders};
use crate::support::{TALEA, assert_ends, assert_refused, printed_json, stdout, talea, until};

/// Requests by endpoint, as the counter of responses has them and as the histogram of durations has them.
/// A request is recorded in one after the other, so a reading, or a kill, may come in between.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    responses: BTreeMap<String, u64>,
    durations: BTreeMap<String, u64>,
}

impl Counts {
    fn of_page(page: &str) -> Self {
        let of = |sample: &str| {
            let mut counts = BTreeMap::new();
            for line in page.lines().filter(|line| line.starts_with(sample)) {
                let value = |label: &str| {
                    let (_, rest) = line.split_once(&format!("{label}=\"")).unwrap();
                    rest.split_once('"').unwrap().0.to_owned()
                };
                let count: u64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
                *counts.entry(format!("{} {}", value("method"), value("route"))).or_default() +=
                    count;
            }
            counts.retain(|_, count| *count > 0);
            counts
        };
        let durations = of("http_request_duration_seconds_count{");
        Self { responses: of("http_requests_total{"), durations }
    }

    /// Those of points together.
    fn of_points<'a>(points: impl IntoIterator<Item = &'a Value>, names: &[Value]) -> Self {
        let mut counts = Self::default();
        for endpoint in points.into_iter().flat_map(|point| point["e"].as_array().unwrap()) {
            let name = names.iter().find(|name| name[0] == endpoint[0]).unwrap();
            let name = name[1].as_str().unwrap();
            let buckets = endpoint[5].as_array().unwrap().iter().skip(1).step_by(2);
            let durations: u64 = buckets.map(|it| it.as_u64().unwrap()).sum();
            assert_eq!(endpoint[1], durations, "{endpoint}");
            let statuses = endpoint[4].as_object().unwrap().values();
            let responses = statuses.map(|it| it.as_u64().unwrap()).sum();
            for (counts, more) in
                [(&mut counts.responses, responses), (&mut counts.durations, durations)]
            {
                if more > 0 {
                    *counts.entry(name.to_owned()).or_default() += more;
                }
            }
        }
        counts
    }
}

fn range(address: &str, bins: u32) -> Value {
    let answer = ask(address, "GET", &format!("/live/range?from=0&bins={bins}"), &[]);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The endpoints of a stream: those at its begin, and those that came with its points.
fn endpoints(hello: &Value, points: &[Value]) -> Vec<Value> {
    let new = points.iter().filter_map(|point| point["ne"].as_array());
    hello["endpoints"].as_array().into_iter().chain(new).flatten().cloned().collect()
}

fn has_died(point: &Value) -> bool {
    let mut marks = point["marks"].as_array().into_iter().flatten();
    marks.any(|mark| mark["kind"] == "died" && mark["of"] == "shop")
}

/// The requests of all points together.
fn requests<'a>(points: impl IntoIterator<Item = &'a Value>) -> u64 {
    let endpoints = points.into_iter().flat_map(|point| point["e"].as_array().unwrap());
    endpoints.map(|endpoint| endpoint[1].as_u64().unwrap()).sum()
}

#[test]
fn requests_from_before_the_agent_found_a_region_are_no_traffic() {
    let (folder, elsewhere) = (RegionFolder::new(), RegionFolder::new());
    let service = ItemsApi::start(Some(&elsewhere.region()));
    service.make_and_list(50);
    let agent = folder.agent();
    let mut stream = EventStream::open(&agent.address, "/live/events");
    stream.until("point", |_| true);
    std::fs::rename(elsewhere.region(), folder.region()).unwrap();
    let mut points = vec![stream.until("point", |point| point["h"]["processes"] == 1)];
    service.list(3);
    while requests(&points) < 3 {
        points.push(stream.until("point", |_| true));
    }
    assert_eq!(requests(&points), 3, "{points:?}");
    assert!(points.iter().all(|point| point["marks"].is_null()), "no process started: {points:?}");
    for bins in [480, 1] {
        let past = range(&agent.address, bins);
        assert_eq!(requests(past["points"].as_array().unwrap()), 3, "{past}");
        let path = format!("/live/series?family=http_requests_total&from=0&bins={bins}");
        let past: Value = serde_json::from_slice(&agent.get(&path, &[]).body).unwrap();
        let series = past["series"].as_array().unwrap().iter();
        let values = series.flat_map(|it| it["values"].as_array().unwrap());
        assert_eq!(values.filter_map(Value::as_u64).sum::<u64>(), 3, "{past}");
    }
}

#[test]
fn requests_to_a_region_whose_families_were_left_out_for_a_while_are_no_traffic() {
    let folder = RegionFolder::new();
    let service = ItemsApi::start(Some(&folder.region()));
    service.list(50);
    let agent = folder.agent();
    let mut stream = EventStream::open(&agent.address, "/live/events");
    let mut points = vec![stream.until("point", |_| true)];
    // Its families are newer, and have quantiles.
    let quantiles = ["--metrics", "quantiles"];
    let canary = ItemsApi::start_with(Some(&folder.at("canary.talea")), &quantiles);
    canary.list(5);
    while requests(&points) < 5 {
        points.push(stream.until("point", |_| true));
    }
    drop(canary);
    std::fs::remove_file(folder.at("canary.talea")).unwrap();
    agent.says("canary: gone");
    service.list(3);
    while requests(&points) < 8 {
        points.push(stream.until("point", |_| true));
    }
    assert_eq!(requests(&points), 8, "{points:?}");
    let past = range(&agent.address, 480);
    assert_eq!(requests(past["points"].as_array().unwrap()), 8, "{past}");
}

#[test]
fn a_service_that_is_killed_under_load_is_shown_to_its_last_request() {
    let folder = RegionFolder::new();
    let history = folder.at("shop.history");
    let mut service = ItemsApi::start(Some(&folder.region()));
    let arguments = [folder.region().into_os_string(), "--history".into(), history.clone().into()];
    let agent = Agent::start(&arguments);
    let mut stream = EventStream::open(&agent.address, "/live/events");
    let (event, hello) = stream.next().unwrap();
    assert_eq!((event.as_str(), &hello["title"]), ("hello", &json!("shop")));
    // From the first point on, nothing is missed.
    let mut points = vec![stream.until("point", |_| true)];

    // They end with the service, which is killed in the middle of their requests.
    let items = service.items.clone();
    let client = || {
        let items = items.clone();
        thread::spawn(move || while is_listed(&items) {})
    };
    let clients = [(); 4].map(|()| client());
    let counted = |points: &[Value]| Counts::of_points(points, &endpoints(&hello, points));
    while !counted(&points).responses.values().any(|count| *count > 200) {
        points.push(stream.until("point", |_| true));
    }
    service.kill();
    clients.into_iter().for_each(|client| client.join().unwrap());
    while !points.last().is_some_and(has_died) {
        points.push(stream.until("point", |_| true));
    }
    // A reading copies counts before it looks who lives, so the next one has the last counts.
    points.push(stream.until("point", |_| true));
    let expected = Counts::of_page(&agent.scrape());
    assert_eq!(counted(&points), expected);

    // The past says the same, in bins of any length, also by an agent that was not there.
    let says_the_same = |address: &str| {
        for bins in [480, 1] {
            let past = range(address, bins);
            let names = past["endpoints"].as_array().unwrap();
            let counts = Counts::of_points(past["points"].as_array().unwrap(), names);
            assert_eq!(counts, expected, "{past}");
            let marks = past["marks"].as_array().unwrap();
            assert!(bins == 1 || marks.iter().any(|mark| mark["kind"] == "died"), "{marks:?}");
        }
    };
    says_the_same(&agent.address);
    drop(agent);
    let fresh = Agent::start(&arguments);
    says_the_same(&fresh.address);

    // So does the postmortem, as the agent's page and by the command, also once the region is gone.
    let all: u64 = expected.durations.values().sum();
    let page = fresh.get("/postmortem", &[]);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    assert!(page.text().contains("A process was found dead at "), "{}", page.text());
    let known = fresh.get("/postmortem?format=json&region=shop", &[]).json();
    assert_eq!(known["region"]["endpoints"][0]["requests"], all, "{known}");
    assert_eq!(known["record"]["endpoints"][0]["requests"], all, "{known}");
    // As the agent found it, unless its kernel does not say.
    let reasons = known["record"]["reasons"].to_string();
    let expected_reasons = ["was killed by SIGKILL", "the kernel is older than 6.15"];
    assert!(expected_reasons.iter().any(|it| reasons.contains(it)), "{reasons}");
    assert_eq!(fresh.get("/postmortem?region=other", &[]).status, 404);
    drop(fresh);
    let path = folder.region();
    let (region, history) = (path.to_str().unwrap(), history.to_str().unwrap());
    for is_there in [true, false] {
        let known = printed_json(&talea([
            "postmortem",
            region,
            "--history",
            history,
            "--last=1d",
            "--json",
        ]));
        let of = |list: &Value| -> u64 {
            list.as_array().unwrap().iter().map(|it| it["requests"].as_u64().unwrap()).sum()
        };
        let record = &known["record"];
        assert!(record["died_unix_millis"].is_i64(), "{known}");
        assert_eq!((of(&record["seconds"]), of(&record["endpoints"])), (all, all), "{known}");
        match is_there {
            true => assert_eq!(of(&known["region"]["endpoints"]), all, "{known}"),
            false => assert!(known["region"].is_null(), "{known}"),
        }
        std::fs::remove_file(&path).ok();
    }
}

#[test]
fn a_postmortem_has_what_was_in_flight_and_the_latest_exemplars() {
    let folder = RegionFolder::new();
    let mut service = ItemsApi::start(Some(&folder.region()));
    let agent = Agent::start([folder.region()]);
    // The service waits for a body that does not come.
    let mut hanging = TcpStream::connect(&service.items).unwrap();
    let head = "POST /api/items HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
                Content-Length: 100\r\n\r\n{";
    hanging.write_all(head.as_bytes()).unwrap();
    let mut stream = EventStream::open(&agent.address, "/live/events");
    // In two readings at least.
    for _ in 0..2 {
        stream.until("point", |point| point["e"].as_array().unwrap().iter().any(|it| it[3] == 1));
    }
    service.kill();
    stream.until("point", |point| point["marks"].as_array().is_some());
    let known = agent.get("/postmortem?format=json", &[]).json();
    let endpoints = known["record"]["endpoints"].as_array().unwrap();
    let hung = endpoints.iter().find(|it| it["name"] == "POST /api/items").unwrap();
    assert_eq!(hung["in_flight"], 1.0, "{known}");
    let page = agent.get("/postmortem", &[]).text();
    assert!(page.contains("1 request in flight when it was last seen alive"), "{page}");

    let path = folder.at("traced.talea");
    let registry = Registry::open_with(&path, Config::default()).unwrap();
    let waits: talea::Histogram<talea::Seconds> =
        registry.register(Opts::new("wait_seconds", "W.")).unwrap();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    waits.observe_with_exemplar(Duration::from_millis(20), &[("trace_id", trace)]).unwrap();
    let text = stdout(&talea(["postmortem".as_ref(), path.as_os_str()]));
    assert!(text.contains(&format!("trace_id={trace}")) && text.contains("20.0 ms"), "{text}");
    assert!(text.starts_with("No history: no agent recorded"), "{text}");

    // One that cannot be read hides no region, unless it was asked for.
    let history = folder.at("traced.talea.history");
    std::fs::write(&history, "precious").unwrap();
    let [path, history] = [&path, &history].map(|path| path.to_str().unwrap());
    let output = talea(["postmortem", path]);
    assert_ends(&output, 0, &["traced.talea.history: it is no history"]);
    assert_eq!(stdout(&output), text);
    assert_refused(&talea(["postmortem", path, "--history", history]), &["it is no history"]);
}

#[test]
fn the_page_of_a_postmortem_is_written_whole_or_not_at_all() {
    let folder = RegionFolder::new();
    drop(count_orders(&folder.region(), 7));
    let written = |file: &Path, kilobytes: &str| {
        // A file that grows beyond the limit is as one on a full disk.
        let script = "trap '' XFSZ; ulimit -f $1; exec timeout 300 $0 postmortem $2 --html $3";
        let mut sh = Command::new("sh");
        sh.args(["-c", script, TALEA, kilobytes]).arg(folder.region()).arg(file);
        sh.output().unwrap()
    };
    let before = std::fs::read_dir(folder.0.path()).unwrap().count();
    let (page, link) = (folder.at("page.html"), folder.at("link.html"));
    assert_ends(&written(&page, "1"), 2, &["page.html cannot be written"]);
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), before);
    std::fs::write(&page, "the one before").unwrap();
    std::os::unix::fs::symlink(&page, &link).unwrap();
    assert_ends(&written(&link, "1"), 2, &["link.html cannot be written"]);
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "the one before");
    assert_ends(&written(&link, "unlimited"), 0, &[]);
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.ends_with("</html>") && link.is_symlink(), "{text}");
    // Standard output is a pipe, which no file takes the place of.
    let output = written(Path::new("/dev/stdout"), "unlimited");
    assert!(stdout(&output).starts_with(&text), "{output:?}");
}

#[test]
fn every_browser_gets_each_point_and_no_client_has_all_streams() {
    let folder = RegionFolder::new();
    let registry = Registry::open_with(folder.region(), Config::default()).unwrap();
    let orders: Counter = registry.register(Opts::new("orders", "O.")).unwrap();
    // A page of some hundred kilobytes.
    let many: talea::Family<talea::DynamicLabels, Counter> =
        registry.family(Opts::new("many", "M."), &["of"]).unwrap();
    (0..1_900).for_each(|of| many.with_values(&[format!("{of:0>100}")]).inc());
    let agent = Agent::start([folder.region()]);
    let mut streams: Vec<EventStream> =
        (0..32).map(|_| EventStream::open(&agent.address, "/live/events")).collect();
    assert!(streams.iter().all(|stream| stream.status == 200));
    let refused = agent.get("/live/events", &[]);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("2")));
    // Scrapes are answered all the same.
    orders.add(7);
    assert!(agent.scrape().contains("orders_total 7"));
    let times: Vec<Value> =
        streams.iter_mut().map(|stream| stream.until("point", |_| true)["t"].clone()).collect();
    assert!(times.iter().all(|time| *time == times[0]), "{times:?}");
    // Another client gets in, and then each has as many.
    let mut others: Vec<EventStream> = (0..17)
        .map(|_| EventStream::open_from([127, 0, 0, 2], &agent.address, "/live/events"))
        .collect();
    assert!(others[..16].iter().all(|stream| stream.status == 200));
    assert_eq!(others.pop().map(|stream| stream.status), Some(503));
    for stream in &mut streams[..16] {
        while stream.next().is_some() {}
    }
    streams.drain(..16);
    (streams.iter_mut().chain(&mut others)).for_each(|it| drop(it.until("point", |_| true)));
    // The place of a client that goes is free.
    streams.truncate(15);
    until("a stream is free", || EventStream::open(&agent.address, "/live/events").status == 200);

    // Streams end with the agent, at once.
    let status = agent.stop();
    assert_eq!(status, Some(0));
    for stream in &mut streams {
        while stream.next().is_some() {}
    }
}

#[test]
fn the_series_of_a_family_are_followed_and_read_back() {
    let folder = RegionFolder::new();
    let registry = Registry::open_with(folder.region(), Config::default()).unwrap();
    let orders: talea::Family<talea::DynamicLabels, Counter> =
        registry.family(Opts::new("orders", "Orders & more."), &["of"]).unwrap();
    let hostile = "</script><script>alert(1)</script>\"\\\n";
    orders.with_values(&[hostile]).add(5);
    let agent = Agent::start([folder.region()]);
    let path = "/live/series/events?family=orders_total";
    let mut stream = EventStream::open(&agent.address, path);
    let series = stream.until("series", |_| true);
    assert_eq!(series[0]["labels"], serde_json::json!([["of", hostile]]));
    stream.until("values", |_| true);
    orders.with_values(&[hostile]).add(3);
    orders.with_values(&["late"]).add(4);
    let late = stream.until("series", |_| true);
    let values = stream.until("values", |_| true);
    let expected = serde_json::json!([[series[0]["id"], 3], [late[0]["id"], 4]]);
    let mut found = values["v"].as_array().unwrap().clone();
    found.sort_by_key(|value| value[1].as_u64());
    assert_eq!(Value::from(found), expected);

    let mut past = Value::Null;
    until("the past has it", || {
        past = agent.get("/live/series?family=orders_total&from=0&bins=1", &[]).json();
        past["series"].as_array().is_some_and(|series| series.len() == 2)
    });
    let of = |id: &Value| {
        let series = past["series"].as_array().unwrap().iter().find(|it| it["id"] == *id).unwrap();
        series["values"][0].as_u64().unwrap()
    };
    // Of the first one, 5 were counted before the first reading.
    assert_eq!((of(&series[0]["id"]), of(&late[0]["id"])), (3, 4), "{past}");
    let list = agent.get("/live/families", &[]).json();
    let mut list = list["families"].as_array().unwrap().iter();
    let family = list.find(|family| family["name"] == "orders_total").unwrap();
    assert_eq!((&family["kind"], &family["help"]), (&json!("counter"), &json!("Orders & more.")));
    assert_eq!(family["series"], 2);
}

#[test]
fn every_answer_is_as_safe_as_the_page() {
    let folder = RegionFolder::new();
    let _registry = Registry::open_with(folder.region(), Config::default()).unwrap();
    let agent = Agent::start([folder.region()]);
    agent.until("/postmortem", |answer| answer.status == 200);
    for (path, status) in [
        ("/", 200),
        ("/page.js", 200),
        ("/page.css", 200),
        ("/live/families", 200),
        ("/live/range", 400),
        ("/postmortem", 200),
        ("/postmortem?format=json", 200),
        ("/postmortem?region=other", 404),
        ("/metrics", 200),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/missing", 404),
    ] {
        let answer = agent.get(path, &[]);
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.header("cache-control").is_some(), "{path}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
    let whole = agent.get("/page.js", &[]);
    let packed = agent.get("/page.js", &["Accept-Encoding: br, gzip"]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < whole.body.len());
    let tag = format!("If-None-Match: {}", whole.header("etag").unwrap());
    assert_eq!(agent.get("/page.js", &[&tag]).status, 304);
    for (path, reason) in [
        ("/live/range", "from: found nothing"),
        ("/live/range?from=x", "from: found \"x\""),
        ("/live/range?from=1&to=0", "from: found 1"),
        ("/live/range?from=0&bins=0", "bins: found 0"),
        ("/live/series?from=0", "family: found nothing"),
        ("/live/series/events", "family: found nothing"),
    ] {
        let answer = agent.get(path, &[]);
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.text().starts_with(reason), "{path}: {}", answer.text());
    }
    drop(agent);

    // If a scrape needs a password, so does the page.
    let web = folder.at("web.yml");
    // `talea`, hashed at the least cost.
    let hash = bcrypt::hash("talea", 4).unwrap();
    std::fs::write(&web, format!("basic_auth_users:\n  ann: {hash}\n")).unwrap();
    let agent =
        Agent::start([folder.region().as_os_str(), "--web-config".as_ref(), web.as_os_str()]);
    for path in ["/", "/page.js", "/live/events", "/live/range?from=0", "/live/families"] {
        let answer = agent.get(path, &[]);
        assert_eq!(
            (answer.status, answer.header("x-frame-options")),
            (401, Some("DENY")),
            "{path}"
        );
    }
    let allowed = agent.get("/live/families", &["Authorization: Basic YW5uOnRhbGVh"]);
    assert_eq!(allowed.status, 200);
}

#[test]
fn a_study_shows_both_sides_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = Command::new(TALEA)
        .args(["study", "--live", "--cases", "4x2s,5x2s", "--out"])
        .arg(folder.path().join("study"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(study.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("live page: http://")).unwrap();
    let address = line.trim_start_matches("live page: http://").trim_end_matches('/').to_owned();
    let rest = thread::spawn(move || lines.count());
    // Not for a page of a stranger's host.
    let mut stranger = TcpStream::connect(&address).unwrap();
    stranger.write_all(b"GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n").unwrap();
    let mut refusal = String::new();
    stranger.read_to_string(&mut refusal).unwrap();
    assert!(refusal.contains(" 421 ") && refusal.contains("nosniff"), "{refusal}");
    let mut stream = EventStream::open(&address, "/live/events");
    let point = stream.until("point", |point| {
        let clients = point["c"][1].as_u64().unwrap_or(0);
        clients > 0 && !point["e"].as_array().unwrap().is_empty()
    });
    assert_eq!(point["c"][4]["answered"], point["c"][1], "{point}");
    stream
        .until("study", |study| study["cases"][1]["progress"].as_f64().is_some_and(|it| it > 0.2));
    // A browser that comes later has what the clients saw before.
    let past = range(&address, 1);
    let clients = past["points"][0]["c"][1].as_u64();
    assert!(clients >= point["c"][1].as_u64() && clients > Some(0), "{past}");
    let done = stream.until("study", |study| study["state"] == "done");
    let cases = done["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2, "{done}");
    for case in cases {
        assert!(case["state"] == "done" && case["requests"].as_u64() > Some(0), "{case}");
        assert!(case["p99_ms"].is_f64() && case["server_p99_ms"].is_f64(), "{case}");
    }
    assert!(done["report"].as_str().is_some_and(|path| path.ends_with("report.html")), "{done}");
    while stream.next().is_some() {}
    assert!(study.wait().unwrap().success());
    rest.join().unwrap();
}
