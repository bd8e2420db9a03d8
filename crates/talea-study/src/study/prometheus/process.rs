//! A Prometheus of the study's own, which scrapes the service once a second.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use talea_load::Target;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::api::{Api, now};
use talea_view::screen::note;

const READY_WITHIN: Duration = Duration::from_secs(30);
/// How often another port is tried when somebody took the one that was free.
const TRIES: usize = 5;

/// A running Prometheus, with its data in a folder that goes with it.
pub(super) struct PrometheusProcess {
    pub(super) target: Target,
    child: Child,
    folder: TempDir,
}

impl PrometheusProcess {
    /// Starts one that scrapes a target, and waits until it answers.
    pub(super) async fn begin(program: &Path, scraped: &Target, tls: &str) -> Result<Self> {
        for _ in 0..TRIES {
            if let Some(started) = Self::try_begin(program, scraped, tls).await? {
                return Ok(started);
            }
        }
        bail!("Prometheus found no free port in {TRIES} attempts")
    }

    async fn try_begin(program: &Path, scraped: &Target, tls: &str) -> Result<Option<Self>> {
        let folder = tempfile::Builder::new().prefix("talea-prometheus-").tempdir();
        let folder = folder.context("cannot create a folder for Prometheus")?;
        let config = folder.path().join("prometheus.yml");
        fs::write(&config, configuration(scraped, tls)?)?;
        let log = File::create(folder.path().join("log"))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // It goes also where this process is killed.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(program)
            .arg("--log.level=warn")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        // A Ctrl-C on the terminal is for the study.
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn().context("cannot start setpriv (util-linux)")?;
        let target = format!("http://127.0.0.1:{port}/").parse();
        let target: Target = target.map_err(|error: String| anyhow::anyhow!(error))?;
        let mut started = Self { target, child, folder };
        match started.ready().await {
            Ok(()) => Ok(Some(started)),
            Err(_) if started.log().contains("address already in use") => Ok(None),
            Err(error) => Err(error.context(format!(
                "Prometheus ({}) does not start; on Debian: apt-get install prometheus, or name \
                 the program with --with-prometheus=PATH. It said: {}",
                program.display(),
                started.log().trim()
            ))),
        }
    }

    async fn ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < READY_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}");
            }
            let mut api = Api::new(self.target.clone());
            if api.number("vector(1)", now()).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("it does not respond within {} s", READY_WITHIN.as_secs())
    }

    /// Its log: warnings and errors.
    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(super) async fn stop(mut self) {
        if let Err(error) = self.child.kill().await {
            note(format_args!("warning: the study's Prometheus cannot be ended: {error}"));
        }
    }
}

fn configuration(scraped: &Target, tls: &str) -> Result<String> {
    let origin = scraped.origin();
    let (scheme, authority) = origin.split_once("://").context("a URL has a scheme")?;
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let query = scraped.path().query().unwrap_or_default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        values.entry(quoted(&name)).or_default().push(quoted(&value));
    }
    let parameters = values.iter().map(|(name, values)| format!("{name}: [{}]", values.join(", ")));
    Ok(format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs:\n\
         - job_name: server\n  scheme: {scheme}\n  metrics_path: {}\n  params: {{{}}}\n  \
         tls_config: {tls}\n  static_configs: [{{targets: ['{authority}']}}]\n",
        quoted(scraped.path().path()),
        parameters.collect::<Vec<_>>().join(", "),
    ))
}

/// A text as YAML has it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_scraped_is_the_page_with_its_query() {
        let page = |url| configuration(&Target::page(url).unwrap(), "{}").unwrap();
        let with_query = page("http://x:1/metrics?name[]=a&name[]=b%27c&of=1");
        assert!(with_query.contains("metrics_path: '/metrics'\n"), "{with_query}");
        let expected = "  params: {'name[]': ['a', 'b''c'], 'of': ['1']}\n";
        assert!(with_query.contains(expected), "{with_query}");
        assert!(page("http://x:1/metrics").contains("  params: {}\n"));
    }
}
