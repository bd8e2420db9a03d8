//! `talea serve`: the real agent from its start to its end, as who runs it and who scrapes it
//! see it.

#![cfg(target_os = "linux")]

mod serving;

use std::path::{Path, PathBuf};
use std::time::Duration;

use talea::{Counter, Opts, Registry};

use crate::serving::{Agent, ask};

/// A folder on tmpfs, where regions are.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A region with a counter that says something.
fn count(region: &Path, n: u64) -> Registry {
    let registry = Registry::open(region).unwrap();
    let orders: Counter = registry.register(Opts::new("orders", "Orders accepted.")).unwrap();
    orders.add(n);
    registry
}

#[test]
fn it_answers_what_it_has_and_refuses_the_rest() {
    let place = Place::new();
    let _orders = count(&place.at("shop.talea"), 7);
    let agent = Agent::start([place.at("shop.talea")]);
    assert!(agent.scrape().contains("\norders_total 7\n"), "{}", agent.scrape());
    let answered = |method: &str, path: &str| {
        let answer = ask(&agent.address, method, path, &[]);
        (answer.status, answer.text())
    };
    assert_eq!(answered("GET", "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(answered("GET", "/readyz"), (200, "ready\n".to_owned()));
    let (status, index) = answered("GET", "/");
    assert!(status == 200 && index.contains("href=metrics"), "{index}");
    assert_eq!(answered("GET", "/metric").0, 404);
    assert_eq!(answered("GET", "/metrics/").0, 404);
    for path in ["/metrics", "/healthz", "/readyz", "/"] {
        assert_eq!(answered("HEAD", path), (200, String::new()), "{path}");
        for method in ["POST", "PUT", "DELETE"] {
            let answer = ask(&agent.address, method, path, &["Content-Length: 0"]);
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(
                answer.header("allow").map(|allow| allow.replace(", ", ",")).as_deref(),
                Some("GET,HEAD"),
                "{path}"
            );
        }
    }
    let (status, took) = agent.stop();
    assert_eq!(status, Some(0));
    assert!(took < Duration::from_secs(2), "{took:?}");
}
