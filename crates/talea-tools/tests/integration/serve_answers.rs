//! `talea serve`: the answers of the real agent, and its messages to the user who starts it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use talea_parse::{Syntax, families};

use crate::support::agent::{Agent, Answer, ask};
use crate::support::items_api::{ItemsApi, LISTED};
use crate::support::prometheus::Prometheus;
use crate::support::region_folder::{RegionFolder, count_orders};
use crate::support::web_config::{Folder, tls, users};
use crate::support::{LONGEST, TALEA, assert_ends, piped, talea};

#[test]
fn it_answers_what_it_has_and_refuses_the_rest() {
    let place = RegionFolder::new();
    let _orders = count_orders(&place.at("shop.talea"), 7);
    let agent = Agent::start([place.at("shop.talea")]);
    assert!(agent.scrape().contains("\norders_total 7\n"), "{}", agent.scrape());
    let answered = |method: &str, path: &str| {
        let answer = ask(&agent.address, method, path, &[]);
        (answer.status, answer.text())
    };
    assert_eq!(answered("GET", "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(answered("GET", "/readyz"), (200, "ready\n".to_owned()));
    let (status, index) = answered("GET", "/");
    assert!(status == 200 && index.contains("<script"), "{index}");
    assert_eq!(answered("GET", "/metric").0, 404);
    assert_eq!(answered("GET", "/metrics/").0, 404);
    for path in ["/metrics", "/healthz", "/readyz", "/"] {
        assert_eq!(answered("HEAD", path), (200, String::new()), "{path}");
        for method in ["POST", "PUT", "DELETE"] {
            let answer = ask(&agent.address, method, path, &["Content-Length: 0"]);
            assert_eq!(answer.status, 405, "{method} {path}");
            let allow = answer.header("allow").map(|allow| allow.replace(", ", ","));
            assert_eq!(allow.as_deref(), Some("GET,HEAD"), "{path}");
        }
    }
}

/// A browser on the agent's machine whose page is of a stranger's host, which has the address 127.0.0.1 by now.
#[test]
fn a_page_of_a_stranger_reads_no_agent_of_this_machine() {
    let place = RegionFolder::new();
    let _orders = count_orders(&place.region(), 7);
    let region = place.region();
    let agent = Agent::start([region.as_path()]);
    let ask = |agent: &Agent, path: &str, host: &str| {
        let mut stream = TcpStream::connect(&agent.address).unwrap();
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let paths =
        ["/", "/metrics", "/live/families", "/live/range?from=0", "/postmortem", "/healthz"];
    for path in paths.into_iter().chain(["/live/events", "/readyz", "/missing"]) {
        let answer = ask(&agent, path, "evil.example:9465");
        assert!(answer.starts_with("HTTP/1.1 421 "), "{path}: {answer}");
        assert!(answer.contains("evil.example:9465") && answer.contains("--host"), "{answer}");
        assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
    }
    for host in ["localhost", "127.0.0.1:1", "[::1]:9465"] {
        assert!(ask(&agent, "/metrics", host).contains("orders_total 7"), "{host}");
    }
    drop(agent);
    let names = ["--host", "Metrics.example", "--host", "10.0.0.7"].map(Path::new);
    let agent = Agent::start(names.into_iter().chain([region.as_path()]));
    for (host, status) in [("metrics.example:443", 200), ("10.0.0.7", 200), ("other.example", 421)]
    {
        let answer = ask(&agent, "/metrics", host);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
    drop(agent);
    // A page of a stranger knows no password.
    let web = place.at("web.yml");
    fs::write(&web, "basic_auth_users:\n  ann: ".to_owned() + &bcrypt::hash("x", 4).unwrap())
        .unwrap();
    let agent = Agent::start([region.as_path(), Path::new("--web-config"), &web]);
    assert!(ask(&agent, "/metrics", "evil.example").starts_with("HTTP/1.1 401 "));
    let password = "proxy.example\r\nAuthorization: Basic YW5uOng=";
    assert!(ask(&agent, "/metrics", password).starts_with("HTTP/1.1 200 "));
    drop(agent);
    for host in ["a:80", "a/b", "a@b", ""] {
        let refused = talea(["serve", "/dev/shm/none", "--host", host]);
        assert_ends(&refused, 2, &["without a port"]);
    }
}

/// A region that is missing or cannot be read is named until it is served.
#[test]
fn it_is_ready_once_all_that_was_named_can_be_read() {
    let place = RegionFolder::new();
    let (late, broken, folder) =
        (place.at("late.talea"), place.at("broken.talea"), place.at("folder"));
    fs::write(&broken, vec![b'x'; 1 << 20]).unwrap();
    let agent = Agent::start([&late, &broken, Path::new("--dir"), &folder]);
    let lacks = |parts: &[&str]| {
        let answer = agent.get("/readyz", &[]);
        let text = answer.text();
        assert!(answer.status == 503 && text.lines().count() == parts.len(), "{text}");
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
        assert_eq!(agent.get("/healthz", &[]).status, 200);
        assert!(agent.scrape().contains("talea_agent_region_up{region=\"broken\"}"));
    };
    let (foreign, folder_lacks) =
        ("broken: ", format!("directory {}: No such file", folder.display()));
    lacks(&["late: ", foreign, &folder_lacks]);
    lacks(&["No such file", "does not begin as a region does", &folder_lacks]);
    let _late = count_orders(&late, 3);
    lacks(&[foreign, &folder_lacks]);
    fs::create_dir(&folder).unwrap();
    lacks(&[foreign]);
    fs::remove_file(&broken).unwrap();
    let _mended = count_orders(&broken, 4);
    let answer = agent.get("/readyz", &[]);
    assert_eq!((answer.status, answer.text()), (200, "ready\n".to_owned()));
    let page = agent.scrape();
    for line in ["orders_total{region=\"late\"} 3\n", "orders_total{region=\"broken\"} 4\n"] {
        assert!(page.contains(line), "{page}");
    }
}

const TEXT: &str = "text/plain; version=0.0.4";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";
const PROTOBUF: &str = "application/vnd.google.protobuf; \
                        proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// The families of an answer by name, each with all of its text.
fn family_texts(answer: &Answer) -> BTreeMap<String, String> {
    let kind = answer.header("content-type").unwrap();
    let body = match answer.header("content-encoding") {
        None => answer.body.clone(),
        encoding => {
            assert_eq!(encoding, Some("gzip"));
            piped(Command::new("gzip").arg("-dc"), &answer.body).stdout
        }
    };
    if kind.starts_with("application/vnd.google.protobuf") {
        return messages(&body);
    }
    let text = String::from_utf8(body).unwrap();
    let syntax = Syntax::of_content_type(kind).unwrap();
    let families = families(&text, syntax).unwrap().into_iter();
    families.map(|family| (family.name.clone().into_owned(), format!("{family:?}"))).collect()
}

/// The messages of a body of protobuf, by the names that each of them begins with.
fn messages(mut body: &[u8]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    while !body.is_empty() {
        let message = take(&mut body);
        let (field, mut fields) = message.split_first().unwrap();
        assert_eq!(*field, 0x0a, "its name is its first field");
        let name = String::from_utf8(take(&mut fields).to_vec()).unwrap();
        all.insert(name, format!("{message:?}"));
    }
    all
}

/// Bytes behind their length.
fn take<'a>(from: &mut &'a [u8]) -> &'a [u8] {
    let len = prost::decode_length_delimiter(&mut *from).unwrap();
    let (taken, rest) = from.split_at(len);
    *from = rest;
    taken
}

#[test]
fn a_client_that_accepts_zstd_gets_it_and_a_samples_name_selects_its_family() {
    let place = RegionFolder::new();
    let region = place.at("shop.talea");
    let agent = Agent::start([&region]);
    let path = "/metrics?name[]=talea_agent_scrape_duration_seconds_bucket";
    let plain = agent.get(path, &["Accept-Encoding: identity"]);
    assert!(plain.text().starts_with("# HELP talea_agent_scrape_duration_seconds "), "{plain:?}");
    assert_eq!(plain.text().matches("# TYPE ").count(), 1, "{plain:?}");
    let zipped = agent.get(path, &["Accept-Encoding: gzip, zstd"]);
    assert_eq!(zipped.header("content-encoding"), Some("zstd"));
    let text = String::from_utf8(zstd::decode_all(&zipped.body[..]).unwrap()).unwrap();
    assert!(text.starts_with("# HELP talea_agent_scrape_duration_seconds "), "{text}");
    let refused = agent.get(path, &["Accept-Encoding: *;q=0"]);
    assert_eq!(refused.status, 406);
}

#[test]
fn a_page_is_the_one_that_the_application_serves_itself() {
    let place = RegionFolder::new();
    let region = place.at("shop.talea");
    let service = ItemsApi::start_with(Some(&region), &["--metrics", "quantiles"]);
    let agent = Agent::start([&region]);
    service.make_and_list(20);
    let some = "/metrics?name[]=http_requests_total&name[]=process_threads\
                &name[]=http_exchange_duration_recent_seconds&name[]=nothing";
    let alike = |path: &str, headers: &[&str]| {
        let own = ask(&service.metrics, "GET", path, headers);
        let outside = agent.get(path, headers);
        assert_eq!((own.status, outside.status), (200, 200));
        for header in ["content-type", "content-encoding", "vary"] {
            assert_eq!(own.header(header), outside.header(header));
        }
        let (own, mut outside) = (family_texts(&own), family_texts(&outside));
        let all = outside.len();
        outside.retain(|name, _| !name.starts_with("talea_"));
        let is_whole = path == "/metrics";
        assert_eq!(outside.len() < all, is_whole, "the agent's own metrics");
        assert_eq!(own.len() > 20, is_whole, "{:?}", own.keys());
        (own, outside)
    };
    for kind in [TEXT, OPEN_METRICS, PROTOBUF] {
        for encoding in ["identity", "gzip"] {
            for path in ["/metrics", some] {
                let accept = format!("Accept: {kind}");
                let headers = [&*accept, &format!("Accept-Encoding: {encoding}")];
                // Values that are read may be read anew in between, each five seconds.
                let mut tries = (0..5).map(|_| alike(path, &headers));
                let found = tries.find(|(own, outside)| own == outside);
                if found.is_none() {
                    let (own, outside) = alike(path, &headers);
                    for (name, own) in &own {
                        assert_eq!(Some(own), outside.get(name), "{kind} {encoding} {path}");
                    }
                    assert_eq!(own, outside, "{kind} {encoding} {path}");
                }
            }
        }
    }
    let own = agent.get("/metrics?name[]=talea_agent_region_up", &[]);
    assert_eq!(family_texts(&own).into_keys().collect::<Vec<_>>(), ["talea_agent_region_up"]);
}

#[test]
fn no_fault_is_found_in_the_page_of_one_region_or_of_several() {
    let place = RegionFolder::new();
    let one = ItemsApi::start_with(Some(&place.at("one.talea")), &["--metrics", "quantiles"]);
    let two = ItemsApi::start(Some(&place.at("two.talea")));
    let in_memory = ItemsApi::start(None);
    let _orders = count_orders(&place.at("shop.talea"), 7);
    [&one, &two, &in_memory].iter().for_each(|service| service.make_and_list(2));
    let (folder, alone) = (place.0.path().to_str().unwrap(), place.at("one.talea"));
    let pid = in_memory.pid().to_string();
    for arguments in [
        &[alone.to_str().unwrap()][..],
        &["--dir", folder, "--pid", &pid],
        &["--dir", folder, "--region-label", "service"],
    ] {
        let agent = Agent::start(arguments);
        for (kind, format) in [(TEXT, "text"), (OPEN_METRICS, "openmetrics")] {
            let page = agent.get("/metrics", &[&format!("Accept: {kind}")]);
            let check = ["check", "--strict", "--format", format];
            let checked = piped(Command::new(TALEA).args(check), &page.body);
            assert_eq!(checked.status.code(), Some(0), "{arguments:?} {format}: {checked:?}");
        }
        let url = format!("http://{}/metrics", agent.address);
        assert_ends(&talea(["check", &url]), 0, &[]);
    }
}

#[test]
fn regions_are_distinguished_by_the_label_that_was_asked_for() {
    let place = RegionFolder::new();
    let [one, two] = ["one.talea", "two.talea"].map(|name| place.at(name));
    let _regions = [count_orders(&one, 1), count_orders(&two, 2)];
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    for (arguments, lines) in [
        (&[one][..], &["orders_total 1"][..]),
        (&[one, "--region-label", "shop"], &["orders_total{shop=\"one\"} 1"]),
        (&[one, two], &["orders_total{region=\"one\"} 1", "orders_total{region=\"two\"} 2"]),
        (
            &[one, two, "--region-label", "shop"],
            &["orders_total{shop=\"one\"} 1", "orders_total{shop=\"two\"} 2"],
        ),
    ] {
        let page = Agent::start(arguments).scrape();
        let found: Vec<_> = page.lines().filter(|line| line.starts_with("orders_total")).collect();
        assert_eq!(found, lines, "{arguments:?}");
    }
}

#[test]
fn bad_arguments_are_explained() {
    let place = RegionFolder::new();
    let region = place.region();
    let _orders = count_orders(&region, 1);
    let region = region.to_str().unwrap();
    for (arguments, parts) in [
        (&[][..], &["found no region", "--dir", "--pid"][..]),
        (&[region, "--region-label", "le"], &["'le'", "--region-label", "letters, digits"]),
        (&[region, "--region-label", "a-b"], &["'a-b'", "--region-label", "letters, digits"]),
        (&[region, "--region-label", "__name__"], &["'__name__'", "--region-label"]),
        (&[region, "--region-label", ""], &["--region-label"]),
        (
            &[region, "--owner", "no such user"],
            &["'no such user'", "--owner", "a name or a number"],
        ),
        (&[region, "--owner", "4294967296"], &["--owner", "a name or a number"]),
        (&["--pid", "me"], &["'me'", "--pid"]),
        (&[region, "--listen", "here"], &["'here'", "--listen", "such as 127.0.0.1:9465"]),
        (&[region, "--at-once", "0"], &["--at-once", "at least 1"]),
        (&[region, "--web-config", "/missing.yml"], &["/missing.yml", "No such file"]),
    ] {
        let stderr = assert_ends(&talea([&["serve"], arguments].concat()), 2, parts);
        assert!(stderr.lines().any(|line| line.starts_with("error: ")), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_address_that_is_taken_is_one_clear_line() {
    let place = RegionFolder::new();
    let region = place.region();
    let _orders = count_orders(&region, 1);
    let agent = Agent::start([&region]);
    let serve = ["serve", region.to_str().unwrap(), "--listen", &agent.address];
    let stderr = assert_ends(&talea(serve), 2, &[]);
    let errors: Vec<_> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    let listen = format!("cannot listen on {}", agent.address);
    assert!(errors.len() == 1 && errors[0].contains(&listen), "{stderr}");
    assert!(errors[0].contains("in use"), "{stderr}");
    assert!(agent.scrape().contains("orders_total 1"));
}

#[test]
fn files_of_the_owners_that_were_named_are_opened_and_no_others() {
    let place = RegionFolder::new();
    let region = place.region();
    let _orders = count_orders(&region, 5);
    let path = region.to_str().unwrap();
    if region.metadata().unwrap().uid() != 0 {
        return eprintln!("not checked without being root: a region of another user");
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let nobody = passwd.lines().find_map(|line| line.strip_prefix("nobody:")).unwrap();
    let number = nobody.split(':').nth(1).unwrap();
    std::os::unix::fs::chown(&region, Some(number.parse().unwrap()), None).unwrap();
    for (owners, is_opened) in [
        (&[][..], false),
        (&["--owner", "root"], false),
        (&["--owner", "0"], false),
        (&["--owner", "nobody"], true),
        (&["--owner", number], true),
        (&["--owner", "root", "--owner", "nobody"], true),
    ] {
        let agent = Agent::start([&[path], owners].concat());
        assert_eq!(agent.scrape().contains("orders_total 5"), is_opened, "{owners:?}");
        let ready = agent.get("/readyz", &[]);
        assert_eq!(ready.status, if is_opened { 200 } else { 503 });
        assert_eq!(ready.text().contains(number), !is_opened, "{}", ready.text());
    }
}

#[test]
fn a_prometheus_scrapes_two_regions_through_tls_with_a_password() {
    let place = RegionFolder::new();
    let one = ItemsApi::start(Some(&place.at("one.talea")));
    let two = ItemsApi::start(Some(&place.at("two.talea")));
    one.list(3);
    two.list(5);
    let folder = Folder::new();
    folder.write("web.yml", &(tls("") + &users(&[("alice", "right")])));
    let web = folder.path("web.yml");
    let agent = Agent::start([Path::new("--dir"), place.0.path(), Path::new("--web-config"), &web]);
    assert!(agent.is_encrypted);
    folder.write(
        "prometheus.yml",
        &format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n\
             - {{job_name: agent, scheme: https, tls_config: {{ca_file: ca.pem}}, basic_auth: \
             {{username: alice, password: right}}, static_configs: [{{targets: ['{}']}}]}}\n",
            agent.address
        ),
    );
    let prometheus = Prometheus::start(&folder.path("prometheus.yml"));
    prometheus.until("up", |found| matches!(found, [(_, up)] if *up == 1.0));
    let found = prometheus.until(LISTED, |found| found.len() == 2);
    let mut found: Vec<_> =
        found.iter().map(|(labels, n)| (labels["region"].as_str().unwrap(), *n)).collect();
    found.sort_by_key(|(region, _)| *region);
    assert_eq!(found, [("one", 3.0), ("two", 5.0)]);
    prometheus.until("talea_agent_region_up == 1", |found| found.len() == 2);
    // And it goes on.
    one.list(4);
    prometheus.until(&format!("{LISTED} == 7"), |found| found.len() == 1);
}
