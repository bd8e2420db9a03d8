//! A Prometheus of our own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::LONGEST;
use crate::client::get;
use crate::samples::Samples;

#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The label `job` of what it finds there.
    pub name: &'a str,
    pub address: SocketAddr,
    pub path: &'a str,
    /// Further lines of its configuration.
    pub more: &'a str,
}

/// A Prometheus that runs, with its data in a folder that goes with it.
#[derive(Debug)]
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Prometheus {
    /// Starts one and waits until it is ready. It scrapes twice a second.
    pub async fn start(jobs: &[Job<'_>], features: &str) -> Self {
        Self::start_with("prometheus", jobs, features, &[]).await
    }

    /// Starts a program that may be another than Debian's, with rules, which it evaluates twice a
    /// second too.
    pub async fn start_with(
        program: &str,
        jobs: &[Job<'_>],
        features: &str,
        rules: &[&Path],
    ) -> Self {
        Self::start_configured(program, &configuration(jobs, rules), features, &[]).await
    }

    /// Starts a program that scrapes nothing and takes what is pushed.
    pub async fn start_receiver(program: &str, features: &str) -> Self {
        let flags = ["--web.enable-remote-write-receiver", "--web.enable-otlp-receiver"];
        // Debian's version does not know the second one.
        let flags = if program == "prometheus" { &flags[..1] } else { &flags[..] };
        Self::start_configured(program, &configuration(&[], &[]), features, flags).await
    }

    async fn start_configured(
        program: &str,
        configuration: &str,
        features: &str,
        flags: &[&str],
    ) -> Self {
        for _ in 0..5 {
            // Another program may take the port before it does.
            if let Some(started) = Self::try_start(program, configuration, features, flags).await {
                return started;
            }
        }
        panic!("prometheus finds no free port");
    }

    async fn try_start(
        program: &str,
        configuration: &str,
        features: &str,
        flags: &[&str],
    ) -> Option<Self> {
        let folder = TempDir::new().expect("a folder for Prometheus");
        let config = folder.path().join("prometheus.yml");
        fs::write(&config, configuration).expect("its configuration is written");
        let log = File::create(folder.path().join("log")).expect("its log is made");
        let address = free_address();
        // It dies with this thread too, so that it goes even where a test is killed.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", program, "--log.level=warn"])
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg(format!("--enable-feature={features}"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let child = child.expect("setpriv runs; scripts/setup --test installs prometheus");
        let mut started = Self { child, address, folder };
        let began = Instant::now();
        while !matches!(get(address, "/-/ready").await, Ok((status, _)) if status == 200) {
            let ended = started.child.try_wait().expect("it can be waited for");
            if ended.is_some() && started.log().contains("address already in use") {
                return None;
            }
            assert!(
                ended.is_none() && began.elapsed() < LONGEST,
                "prometheus does not start; scripts/setup --test installs it. {}",
                started.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(started)
    }

    /// The address of its API.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its warnings and errors.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("it has a log")
    }

    /// The data that its API answers with.
    pub async fn api(&self, path: &str, parameters: &[(&str, &str)]) -> Json {
        let query =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
        let path = format!("/api/v1/{path}?{query}");
        let (status, body) = get(self.address, &path).await.expect("Prometheus answers");
        let mut answer: Json = serde_json::from_slice(&body).expect("it answers in JSON");
        assert!(status == 200 && answer["status"] == "success", "{path}: {answer}");
        answer["data"].take()
    }

    /// The result of a query, without the labels that Prometheus itself adds.
    pub async fn query(&self, query: &str) -> Samples {
        let data = self.api("query", &[("query", query)]).await;
        let found = data["result"].as_array().expect("a query finds a list");
        let mut all = Samples::new();
        let mut put = |name: String, labels, value: &Json| {
            let value = value.as_str().and_then(|value| value.parse().ok());
            let before = all.insert((name.clone(), labels), value.expect("a sample has a value"));
            assert_eq!(before, None, "{query} finds {name} twice");
        };
        for sample in found {
            let mut labels = labels(&sample["metric"]);
            let name = labels.remove("__name__").unwrap_or_default();
            labels.remove("job");
            labels.remove("instance");
            // A native histogram has these as parts, where a classic one has samples.
            match sample.get("histogram") {
                Some(histogram) => {
                    put(name.clone() + "_count", labels.clone(), &histogram[1]["count"]);
                    put(name + "_sum", labels, &histogram[1]["sum"]);
                }
                None => put(name, labels, &sample["value"][1]),
            }
        }
        all
    }

    /// The one number that a query finds.
    pub async fn number(&self, query: &str) -> Option<f64> {
        self.query(query).await.into_values().next()
    }

    /// Waits until a query finds such a number.
    pub async fn wait_for(&self, query: &str, is_wanted: impl Fn(f64) -> bool) {
        let began = Instant::now();
        loop {
            let found = self.number(query).await;
            if found.is_some_and(&is_wanted) {
                return;
            }
            assert!(began.elapsed() < LONGEST, "{query} finds {found:?}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The labels that an answer has. Bounds are shown as [`f64`] shows them.
pub(crate) fn labels(json: &Json) -> BTreeMap<String, String> {
    json.as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let text = value.as_str().unwrap_or_default();
            let text = match &**name {
                "le" | "quantile" => text.parse::<f64>().expect("it is a number").to_string(),
                _ => text.to_owned(),
            };
            (name.clone(), text)
        })
        .collect()
}

fn configuration(jobs: &[Job<'_>], rules: &[&Path]) -> String {
    let mut out = String::from("global:\n");
    out += "  {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n";
    out += "rule_files:\n";
    out.extend(rules.iter().map(|rules| format!("- {}\n", rules.display())));
    out += "scrape_configs:\n";
    for Job { name, address, path, more } in jobs {
        out += &format!("- job_name: {name}\n  metrics_path: {path}\n");
        out.extend(more.lines().map(|line| format!("  {line}\n")));
        out += &format!("  static_configs: [{{targets: ['{address}']}}]\n");
    }
    out
}

/// Where nobody listens, for the moment.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("a listener has an address")
}
