//! A real Prometheus scrapes what a web configuration protects.

use std::process::Command;
use std::thread;
use std::time::Duration;

use talea_agent::web::Web;

use crate::support::prometheus::Prometheus;
use crate::support::wait_for;
use crate::support::web_config::{Folder, tls, users};

#[test]
fn it_scrapes_with_its_certificate_and_password_and_gets_the_reason_without() {
    let folder = Folder::new();
    folder.pair("a.pem", "a.key", &folder.authority.client(&[]));
    let ask = "client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem";
    let served = folder.serve(&(tls(ask) + &users(&[("alice", "right")])));
    let trust = "ca_file: ca.pem, cert_file: a.pem, key_file: a.key";
    let job = |name: &str, tls: &str, password: &str| {
        format!(
            "- {{job_name: {name}, scheme: https, tls_config: {{{tls}}}, basic_auth: {{username: \
             alice, password: {password}}}, static_configs: [{{targets: ['{}']}}]}}\n",
            served.address
        )
    };
    folder.write(
        "prometheus.yml",
        &format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n{}{}{}{}",
            job("both", trust, "right"),
            job("guesses", trust, "wrong"),
            job("anonymous", "ca_file: ca.pem", "right"),
            job("trusts-others", "cert_file: a.pem, key_file: a.key", "right"),
        ),
    );
    let prometheus = Prometheus::start(&folder.path("prometheus.yml"));
    // A scrape may run out of time where the machine is busy; the next one is asked then.
    wait_for(|| {
        let targets = prometheus.targets();
        assert!(targets.iter().all(|(job, health, _)| job == "both" || health != "up"));
        if targets.len() == 4 && targets.iter().all(is_as_expected) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
        Err(targets)
    });
    let found = prometheus.query("answers_total");
    assert!(matches!(found[..], [(_, 42.0)]), "{found:?}");
}

fn is_as_expected((job, health, error): &(String, String, String)) -> bool {
    let (expected, message) = match job.as_str() {
        "both" => ("up", ""),
        "guesses" => ("down", "401 Unauthorized"),
        "anonymous" => ("down", "certificate"),
        _ => ("down", "x509: certificate signed by unknown authority"),
    };
    health == expected && error.contains(message)
}

/// Whether `promtool` and a server take a file.
fn verdicts(folder: &Folder, web: &str) -> (bool, bool) {
    folder.write("web.yml", web);
    let path = folder.path("web.yml");
    let promtool = Command::new("promtool")
        .args(["check", "web-config"])
        .arg(&path)
        .output()
        .expect("promtool runs; scripts/setup --test installs it");
    (promtool.status.success(), Web::open(&path).is_ok())
}

#[test]
fn files_are_taken_that_prometheus_takes_unless_they_would_mean_less() {
    let folder = Folder::new();
    let ca = "client_ca_file: ca.pem, client_auth_type:";
    let hash = bcrypt::hash("right", 4).unwrap();
    let web = |text: &str| text.replace("HASH", &hash);
    for good in [
        String::new(),
        tls(""),
        tls(&format!("{ca} RequireAndVerifyClientCert")),
        tls(&format!("{ca} VerifyClientCertIfGiven")),
        tls("client_auth_type: NoClientCert"),
        tls("min_version: TLS13, max_version: TLS13, prefer_server_cipher_suites: false"),
        tls("cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]"),
        tls("curve_preferences: [CurveP256, CurveP384, X25519]"),
        web("basic_auth_users: {alice: HASH, bob: HASH}"),
        web("basic_auth_users:\n  alice: HASH\nhttp_server_config:\n  http2: false\n"),
        web("http_server_config: {headers: {X-Frame-Options: sameorigin}}"),
    ] {
        assert_eq!(verdicts(&folder, &good), (true, true), "{good}");
    }
    for bad in [
        "tls: {}".to_owned(),
        "tls_server_config: {cert_file: cert.pem}".to_owned(),
        "tls_server_config: {cert_file: cert.pem, key_file: none.pem}".to_owned(),
        "tls_server_config: {cert_file: cert.pem, key_file: cert.pem}".to_owned(),
        tls("client_ca_file: ca.pem"),
        tls("client_auth_type: Sometimes"),
        tls("cipher_suites: [INVENTED]"),
        tls("curve_preferences: [CurveP1]"),
        tls("min_version: TLS14"),
        "basic_auth_users: {alice: secret}".to_owned(),
        "http_server_config: {headers: {Server: mine}}".to_owned(),
        "http_server_config: {headers: {X-Frame-Options: maybe}}".to_owned(),
    ] {
        assert_eq!(verdicts(&folder, &bad), (false, false), "{bad}");
    }
    for less in [
        tls("min_version: TLS10"),
        tls("client_auth_type: RequestClientCert"),
        tls("client_auth_type: RequireAnyClientCert"),
        tls("client_auth_type: RequireAndVerifyClientCert"),
        tls("cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]"),
        tls("curve_preferences: [CurveP521]"),
        // It would serve without TLS.
        "tls_server_config: {min_version: TLS13}".to_owned(),
    ] {
        assert_eq!(verdicts(&folder, &less), (true, false), "{less}");
    }
}
