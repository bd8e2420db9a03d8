//! `talea serve --push`: the real agent, which pushes to a real Prometheus and to receivers that are none.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;

use crate::support::agent::Agent;
use crate::support::prometheus::Prometheus;
use crate::support::region_folder::{RegionFolder, count_orders};
use crate::support::{assert_refused, sample, talea};

/// A Prometheus that takes what is pushed and scrapes nothing.
fn receiver(folder: &RegionFolder) -> Prometheus {
    let configuration = folder.at("prometheus.yml");
    fs::write(&configuration, "").unwrap();
    let prometheus = Prometheus::start(&configuration);
    // It is ready.
    prometheus.until("vector(1)", |found| !found.is_empty());
    prometheus
}

fn push_file(folder: &RegionFolder, text: &str) -> PathBuf {
    let path = folder.at("push.toml");
    fs::write(&path, text).unwrap();
    path
}

fn agent(folder: &RegionFolder, push: &Path) -> Agent {
    let dir = folder.0.path();
    Agent::start(["--dir".as_ref(), dir.as_os_str(), "--push".as_ref(), push.as_os_str()])
}

/// What a receiver has from a Prometheus that is to get it soon.
fn quickly(url: &str, more: &str) -> String {
    format!(
        "url = \"{url}/api/v1/write\"\ninterval = \"50ms\"\nbackoff = [\"5ms\", \"50ms\"]\n{more}\n"
    )
}

fn is(value: f64) -> impl Fn(&[(Value, f64)]) -> bool {
    move |found| matches!(found, [(_, found)] if *found == value)
}

#[test]
fn what_all_regions_hold_is_pushed_and_a_hostile_receiver_delays_nobody() {
    let folder = RegionFolder::new();
    let prometheus = receiver(&folder);
    // It takes connections, and all bytes, and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_address = silent.local_addr().unwrap();
    thread::spawn(move || {
        for client in silent.incoming() {
            thread::spawn(move || client.unwrap().read_to_end(&mut Vec::new()));
        }
    });
    let (_shop, orders) = count_orders(&folder.region(), 3);
    let (_bar, _) = count_orders(&folder.at("bar.talea"), 5);
    let text = format!(
        "[[remote_write]]\nname = \"main\"\nlabels = {{ job = \"fleet\" }}\n{}\
         [[remote_write]]\nname = \"silent\"\n{}\
         [[otlp]]\nurl = \"http://127.0.0.1:1/v1/metrics\"\n",
        quickly(&prometheus.url, ""),
        quickly(&format!("http://{silent_address}"), "timeout = \"1h\""),
    );
    let agent = agent(&folder, &push_file(&folder, &text));
    prometheus.until("orders_total{region=\"shop\",job=\"fleet\"}", is(3.0));
    prometheus.until("orders_total{region=\"bar\",job=\"fleet\"}", is(5.0));
    orders.add(4);
    prometheus.until("orders_total{region=\"shop\",job=\"fleet\"}", is(7.0));
    // The agent's own metrics are pushed too, and the pusher's are among them.
    prometheus.until("talea_push_samples_sent_total{target=\"main\"} > 0", |all| !all.is_empty());
    let page = agent.scrape();
    assert!(page.contains("orders_total{region=\"shop\"} 7"), "{page}");
    for (target, is_sent) in [("main", true), ("silent", false), ("127.0.0.1:1/v1/metrics", false)]
    {
        let value = |name: &str| sample::<f64>(&page, &format!("{name}{{target=\"{target}\"}}"));
        assert_eq!(value("talea_agent_push_up"), Some(1.0), "{target}");
        let sent = value("talea_push_samples_sent_total").unwrap();
        assert_eq!(sent > 0.0, is_sent, "{target}: {sent}");
        assert!(is_sent || value("talea_push_queue_samples") > Some(0.0), "{page}");
    }
    assert_eq!(agent.stop(), Some(0), "a receiver that never responds does not hold it");
    prometheus.until("orders_total{region=\"shop\",job=\"fleet\"}", is(7.0));
}

#[test]
fn a_fault_of_the_push_configuration_names_its_line() {
    let folder = RegionFolder::new();
    let receiver = "[[remote_write]]\nurl = \"http://a/\"\n";
    for (text, line, parts) in [
        ("", 1, &["found no receiver", "[[remote_write]] or [[otlp]]"][..]),
        ("[[remote_write]]\nurl = 1", 2, &["expected a string"]),
        ("\n[[remote_write]]\n", 2, &["missing field `url`"]),
        ("[[remote_write]]\nurl = \"ftp://a/\"", 2, &["\"ftp://a/\"", "expected a URL"]),
        ("[[push]]\nurl = \"http://a/\"", 1, &["unknown field `push`", "`remote_write`"]),
        ("[[remote_write]]\nurl = \"http://a/\"\nqeue = \"q\"", 3, &["unknown field `qeue`"]),
        ("[[remote_write]\n", 1, &["push.toml"]),
        ("@interval = \"soon\"", 3, &["\"soon\" cannot be used", "such as 500ms"]),
        ("@timeout = \"0s\"", 3, &["\"0s\" cannot be used", "a time above 0"]),
        ("@max_samples = 0", 3, &["found 0, expected at least 1"]),
        ("@labels = { __x = \"1\" }", 3, &["the label \"__x\""]),
        ("@headers = { \"a b\" = \"1\" }", 3, &["the header \"a b\""]),
        (
            "@bearer_token_file = \"t\"\nbasic_auth = { username = \"u\", password_file = \"p\" }",
            1,
            &["bearer_token_file and basic_auth"],
        ),
        ("@cert_file = \"c\"", 1, &["cert_file and key_file"]),
        ("@protocol = \"grpc\"", 3, &["found protocol", "[[otlp]]"]),
        ("@temporality = \"delta\"", 3, &["deltas by remote-write", "push by OTLP"]),
        ("[[otlp]]\nurl = \"http://a/\"\nprotocol = \"http/json\"", 3, &["`http/json`", "`grpc`"]),
        ("[[otlp]]\nprotocol = \"grpc\"\nurl = \"http://a/b\"", 3, &["without a path"]),
        ("@[[remote_write]]\nurl = \"http://a/\"", 3, &["a second receiver \"a/\"", "`name`"]),
        (
            "@queue = \"q\"\n[[remote_write]]\nurl = \"http://b/\"\nqueue = \"q\"",
            6,
            &["a second queue in q"],
        ),
        ("@[[remote_write.relabel]]\nregex = \"(\"", 4, &["\"(\" is no regular expression"]),
        ("@[[remote_write.relabel]]\naction = \"hashmod\"", 4, &["`hashmod`", "`labelmap`"]),
        ("@[[remote_write.relabel]]\nregex = \"a\"", 3, &["replace without target_label"]),
        ("@[[remote_write.relabel]]\naction = \"keep\"", 3, &["without source_labels"]),
        (
            "@[[remote_write.relabel]]\naction = \"labeldrop\"\nsource_labels = [\"a\"]",
            3,
            &["source_labels for labelmap, labeldrop or labelkeep"],
        ),
    ] {
        let push = push_file(&folder, &text.replace('@', receiver));
        let arguments = ["serve".as_ref(), "--dir".as_ref(), folder.0.path().as_os_str()];
        let output = talea(arguments.into_iter().chain(["--push".as_ref(), push.as_os_str()]));
        let place = format!("push.toml:{line}: ");
        let parts: Vec<&str> = parts.iter().copied().filter(|part| !place.contains(part)).collect();
        assert_refused(&output, &[&[&*place], &parts[..]].concat());
    }
    let arguments = ["serve".as_ref(), "--dir".as_ref(), folder.0.path().as_os_str()];
    let output = talea(arguments.into_iter().chain(["--push".as_ref(), "nowhere.toml".as_ref()]));
    assert_refused(&output, &["nowhere.toml", "cannot be read"]);
}

#[test]
fn a_changed_push_configuration_is_taken_and_a_bad_one_is_not() {
    let folder = RegionFolder::new();
    let prometheus = receiver(&folder);
    let (_shop, _) = count_orders(&folder.region(), 3);
    let with = |label: &str| {
        let labels = format!("labels = {{ job = \"{label}\" }}\nqueue = \"queue\"");
        format!("[[remote_write]]\n{}", quickly(&prometheus.url, &labels))
    };
    let agent = agent(&folder, &push_file(&folder, &with("first")));
    prometheus.until("orders_total{job=\"first\"}", is(3.0));
    push_file(&folder, "[[remote_write]]\n");
    agent.says("push.toml:1: missing field `url`; the receivers in force stay");
    agent.until("/metrics", |answer| {
        sample(&answer.text(), "talea_agent_push_config_errors_total") == Some(1)
    });
    push_file(&folder, &with("second"));
    prometheus.until("orders_total{job=\"second\"}", is(3.0));
    assert!(agent.scrape().contains("talea_agent_push_up{"));
}

#[test]
fn a_receiver_whose_files_are_missing_waits_for_them_and_the_others_go_on() {
    let folder = RegionFolder::new();
    let prometheus = receiver(&folder);
    let (_shop, _) = count_orders(&folder.region(), 3);
    let text = format!(
        "[[remote_write]]\n{}[[remote_write]]\nname = \"late\"\nurl = \"https://127.0.0.1:1/\"\n\
         ca_file = \"ca.pem\"\n",
        quickly(&prometheus.url, ""),
    );
    let agent = agent(&folder, &push_file(&folder, &text));
    let line = agent.says("nothing is pushed to late");
    assert!(line.contains(&folder.at("ca.pem").display().to_string()), "{line}");
    prometheus.until("orders_total", is(3.0));
    assert!(agent.scrape().contains("talea_agent_push_up{target=\"late\"} 0"));
}
