//! A real Prometheus as a process, and what it says of its targets and their values.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{Running, wait_for};

/// One that runs; it ends when it is dropped.
pub(crate) struct Prometheus {
    _process: Running,
    pub(crate) url: String,
    data: TempDir,
}

impl Prometheus {
    pub(crate) fn start(configuration: &Path) -> Self {
        let data = tempfile::tempdir().unwrap();
        let log = File::create(data.path().join("log")).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "prometheus", "--log.level=warn"])
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", data.path().join("data").display()))
            .arg(format!("--web.listen-address={free}"))
            .args(["--web.enable-remote-write-receiver", "--enable-feature=native-histograms"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("setpriv runs prometheus; scripts/setup --test installs it");
        Self { _process: Running(child), url: format!("http://{free}"), data }
    }

    /// Its answer; none while it does not answer.
    fn ask(&self, what: &str, query: &[(&str, &str)]) -> Value {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--noproxy", "*", "--get"]);
        for (name, value) in query {
            curl.args(["--data-urlencode", &format!("{name}={value}")]);
        }
        let output = curl.arg(format!("{}/api/v1/{what}", self.url)).output().expect("curl runs");
        let mut answer = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        answer["data"].take()
    }

    /// How its targets are, by job: their health, and why.
    pub(crate) fn targets(&self) -> Vec<(String, String, String)> {
        let targets = self.ask("targets", &[])["activeTargets"].take();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let target = |target: &Value| {
            (text(&target["labels"]["job"]), text(&target["health"]), text(&target["lastError"]))
        };
        targets.as_array().into_iter().flatten().map(target).collect()
    }

    pub(crate) fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let found = self.ask("query", &[("query", query)])["result"].take();
        let found = found.as_array().cloned().unwrap_or_default().into_iter();
        found
            .map(|mut one| {
                let value = one["value"][1].as_str().unwrap().parse().unwrap();
                (one["metric"].take(), value)
            })
            .collect()
    }

    /// Queries until the answer is as expected; that answer.
    pub(crate) fn until(
        &self,
        query: &str,
        is: impl Fn(&[(Value, f64)]) -> bool,
    ) -> Vec<(Value, f64)> {
        wait_for(|| {
            let found = self.query(query);
            if is(&found) {
                return Ok(found);
            }
            sleep(Duration::from_millis(100));
            let log = std::fs::read_to_string(self.data.path().join("log")).unwrap();
            Err(format!("{query}: {found:?}; {log}"))
        })
    }
}
