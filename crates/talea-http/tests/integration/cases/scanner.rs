//! Requests of a scanner create no series.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::http::{Request, Version};
use http_body_util::BodyExt;
use talea::{Config, Registry, Snapshot};
use talea_http::Convention;
use tower::ServiceExt;

use crate::cases::bodies::{BoxBody, whole};
use crate::cases::door::{BoxService, DOORS};
use crate::cases::series::{CONVENTIONS, ended, in_flight};
use crate::cases::server::Setup;
use crate::cases::witness::Witness;

/// The number of a scanner's requests under each convention.
const REQUESTS: usize = 100_000;

const SETUP: Setup = Setup { limited: false, hosts: &["shop.example", "www.example"] };

const METHODS: [&str; 12] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "QUERY", "get",
    "BREW",
];
const PATHS: [&str; 6] = ["/memory", "/empty", "/files/x", "/reads", "/cors", "/nowhere"];
const HOSTS: [&str; 3] = ["shop.example", "WWW.example:80", "evil.example"];
/// The scheme and host in front of a path, mostly none.
const ORIGINS: [&str; 3] = ["", "http://www.example", "https://evil.example"];
const VERSIONS: [Version; 4] =
    [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];

type ScannerRequest = Request<BoxBody>;

#[test]
fn a_scanner_creates_no_series() {
    std::thread::scope(|scope| {
        for convention in CONVENTIONS {
            scope.spawn(move || scan(convention));
        }
    });
}

fn scan(convention: Convention) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for (n, door) in DOORS.iter().enumerate() {
            // With room for more series, so that they could be created.
            let registry = Registry::with_config(Config::with_len(128 << 20)).unwrap();
            let witness = Arc::<Witness>::default();
            let endpoints = SETUP.opts(convention).register(&registry).unwrap();
            let service = (door.service)(&endpoints, Arc::clone(&witness));
            let mut by_host = ByHost::new();
            for request in each_kind() {
                *by_host.entry(host(&request)).or_default() += 1;
                send(&service, request).await;
            }
            let before = all(&registry.snapshot());
            let mut random = Random(n as u64 + 1);
            for _ in 0..REQUESTS / DOORS.len() {
                let request = random.request();
                *by_host.entry(host(&request)).or_default() += 1;
                send(&service, request).await;
            }
            let made = all(&registry.snapshot());
            assert_eq!(made.difference(&before).next(), None, "{convention:?} {}", door.name);
            assert_eq!(by_host.values().sum::<u64>(), witness.calls());
            assert_all_recorded(convention, &registry.snapshot(), &by_host);
        }
    });
}

async fn send(service: &BoxService, request: ScannerRequest) {
    let response = service.clone().oneshot(request).await.unwrap();
    response.into_body().collect().await.unwrap();
}

fn each_kind() -> impl Iterator<Item = ScannerRequest> {
    let methods = METHODS.into_iter();
    let lines = methods.flat_map(|method| PATHS.into_iter().map(move |path| (method, path)));
    let hosts = lines.flat_map(|line| HOSTS.into_iter().map(move |host| (line, host)));
    let origins = hosts.flat_map(|all| ORIGINS.into_iter().map(move |origin| (all, origin)));
    let all = origins.flat_map(|all| VERSIONS.into_iter().map(move |version| (all, version)));
    all.map(|((((method, path), host), origin), version)| {
        request(method, &format!("{origin}{path}"), host, version)
    })
}

fn request(method: &str, uri: &str, host: &str, version: Version) -> ScannerRequest {
    let request = Request::builder().method(method).uri(uri).header("host", host);
    request.version(version).body(whole(0)).unwrap()
}

fn all(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for family in snapshot.families() {
        all.extend(family.series().map(|one| format!("{} {:?}", family.name(), one.labels())));
    }
    all
}

/// The number of requests by the label of their host.
type ByHost = BTreeMap<&'static str, u64>;

fn host(request: &ScannerRequest) -> &'static str {
    let header = request.headers()["host"].to_str().unwrap();
    match request.uri().host().unwrap_or(header) {
        "shop.example" => "shop.example",
        "www.example" | "WWW.example:80" => "www.example",
        _ => "_other",
    }
}

fn assert_all_recorded(convention: Convention, snapshot: &Snapshot, by_host: &ByHost) {
    let label = match convention {
        Convention::OpenTelemetry => "server_address",
        _ => "host",
    };
    for (host, &made) in by_host {
        for (name, ended) in ended(snapshot, &[(label, host)]) {
            assert_eq!(ended, made as f64, "{name} of {host}");
        }
    }
    let all: u64 = by_host.values().sum();
    for (name, ended) in ended(snapshot, &[]) {
        assert_eq!(ended, all as f64, "{name}");
    }
    assert_eq!(in_flight(snapshot), 0.0);
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // Steele and Vigna's SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ (n >> 31)
    }

    /// One of these, or a made-up one.
    fn of(&mut self, known: &[&str], make: fn(u64) -> String) -> String {
        let n = self.next() as usize % (known.len() + 2);
        known.get(n).map_or_else(|| make(self.next()), |known| (*known).to_owned())
    }

    fn request(&mut self) -> ScannerRequest {
        let method = self.of(&METHODS, |n| format!("M{n:X}"));
        let path = self.of(&PATHS, |n| match n % 4 {
            0 => format!("/{n:x}/../etc/passwd"),
            1 => format!("/files/{n}/{n}.php?x={n}"),
            2 => format!("/memory/{n}"),
            _ => format!("/{n}"),
        });
        let host = self.of(&HOSTS, |n| match n % 3 {
            0 => format!("{n}.example:{}", n % 65_536),
            1 => format!("shop.example.{n}"),
            _ => format!("[::{:x}]", n % 65_536),
        });
        let version = VERSIONS[self.next() as usize % VERSIONS.len()];
        let origin = ORIGINS.get(self.next() as usize % 12).unwrap_or(&"");
        request(&method, &format!("{origin}{path}"), &host, version)
    }
}
