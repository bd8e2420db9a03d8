//! Claims about files: the rules that they give, the errors of bad ones, the effect of changes.

use std::fs;
use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use rcgen::generate_simple_self_signed;
use tempfile::{TempDir, tempdir};

use super::*;

/// The hash of "right", at the lowest cost.
static HASH: LazyLock<String> = LazyLock::new(|| bcrypt::hash("right", 4).unwrap());

fn certificate() -> (String, String) {
    let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// A folder with a certificate, its key, another key, and no web configuration yet.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempdir().unwrap());
        let (cert, key) = certificate();
        folder.write("cert.pem", &cert);
        folder.write("key.pem", &key);
        folder.write("other.key.pem", &certificate().1);
        folder
    }

    /// As if it had been written a while ago.
    fn write(&self, name: &str, text: &str) {
        sources::tests::write(&self.path(name), text);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn open(&self, text: &str) -> Result<Web> {
        self.write("web.yml", text);
        Web::open(&self.path("web.yml"))
    }

    fn rules(&self, text: &str) -> Arc<Rules> {
        self.open(text).unwrap_or_else(|error| panic!("{text}\n{error:#}")).current()
    }

    /// With a certificate, and what else the section for TLS has.
    fn with_tls(more: &str) -> String {
        format!("tls_server_config: {{cert_file: cert.pem, key_file: key.pem, {more}}}")
    }

    /// The error of a file, without the prefix that all have.
    fn error_of(&self, text: &str) -> String {
        let error = self.open(text).expect_err(text);
        let message = format!("{error:#}");
        let path = self.path("web.yml");
        let before = format!("the web configuration {} cannot be used: ", path.display());
        let rest = message.strip_prefix(&before).unwrap_or_else(|| panic!("{message}"));
        rest.replace(&format!("{}/", self.0.path().display()), "")
    }

    /// The error of a file's section for TLS, likewise.
    fn tls_error_of(&self, text: &str) -> String {
        let error = self.error_of(text);
        error.strip_prefix("tls_server_config: ").unwrap_or_else(|| panic!("{error}")).to_owned()
    }

    fn copy(&self, from: &str, to: &str) {
        self.write(to, &fs::read_to_string(self.path(from)).unwrap());
    }
}

/// Checks that each text gives the error that is indented below it, which may go on after an
/// ellipsis.
#[track_caller]
fn assert_errors(cases: &str, error_of: impl Fn(&str) -> String) {
    let mut lines = Vec::new();
    for line in cases.trim_start().lines() {
        let Some(expected) = line.strip_prefix("    ") else {
            lines.push(line);
            continue;
        };
        let text = std::mem::take(&mut lines).join("\n");
        let error = error_of(&text);
        match expected.strip_suffix('…') {
            Some(beginning) => assert!(error.starts_with(beginning), "{text}\n{error}"),
            None => assert_eq!(error, expected, "{text}"),
        }
    }
    assert!(lines.is_empty(), "without an error: {lines:?}");
}

async fn admits(rules: &Rules, headers: &HeaderMap) -> bool {
    admit_from(1, rules, headers).await.is_ok()
}

async fn admit_from(host: u8, rules: &Rules, headers: &HeaderMap) -> Result<(), Refusal> {
    rules.admit(headers, [10, 0, 0, host].into()).await
}

fn basic(name_and_password: impl AsRef<[u8]>) -> HeaderMap {
    use base64::Engine;
    let encoded = base64::prelude::BASE64_STANDARD.encode(name_and_password);
    authorization(&format!("Basic {encoded}"))
}

fn authorization(value: &str) -> HeaderMap {
    HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
}

/// Checks the files now, however recent the last check is.
fn look(web: &Web) -> Arc<Rules> {
    let followed = web.followed.as_ref().unwrap();
    web.look(followed, &mut followed.checked.lock().unwrap().sources);
    web.current()
}

#[test]
fn an_empty_file_requires_nothing() {
    let folder = Folder::new();
    let empty = "tls_server_config:\nhttp_server_config:\nbasic_auth_users:\nrate_limit:\n";
    for text in ["", "# nothing\n", "{}", empty, "tls_server_config: {}\nbasic_auth_users: {}\n"] {
        let rules = folder.rules(text);
        assert!(rules.tls.is_none() && rules.passwords.is_none(), "{text}");
        assert!(rules.http2 && rules.headers.is_empty(), "{text}");
    }
    assert!(Web::nothing().current().http2);
}

#[test]
fn all_that_can_be_done_is_taken() {
    let folder = Folder::new();
    folder.copy("cert.pem", "ca.pem");
    for more in [
        "",
        "client_auth_type: NoClientCert",
        "client_auth_type: ''",
        "client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.pem",
        "client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, \
         client_allowed_sans: [scraper.local, '127.0.0.1', 'spiffe://a@b/c']",
        "min_version: TLS12, max_version: TLS12",
        "min_version: TLS13, prefer_server_cipher_suites: false",
        "cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]",
        "cipher_suites: [TLS_CHACHA20_POLY1305_SHA256]",
        "cipher_suites: [], curve_preferences: []",
        "curve_preferences: [CurveP384, CurveP256, X25519]",
    ] {
        assert!(folder.rules(&Folder::with_tls(more)).tls.is_some(), "{more}");
    }
    for no_limit in ["interval: 0s, burst: 20", "interval: 0, burst: 20", "burst: 20"] {
        let rules = folder.rules(&format!("rate_limit: {{{no_limit}}}"));
        assert!((0..100).all(|_| rules.is_within_rate_limit()), "{no_limit}");
    }
    assert!(!folder.rules("http_server_config: {http2: false}").http2);
}

#[test]
fn a_certificate_may_stand_in_the_file_itself() {
    let folder = Folder::new();
    let indented = |name: &str| {
        let text = fs::read_to_string(folder.path(name)).unwrap();
        text.lines().map(|line| format!("    {line}\n")).collect::<String>()
    };
    let (cert, key) = (indented("cert.pem"), indented("key.pem"));
    let text = format!("tls_server_config:\n  cert: |\n{cert}  key: |\n{key}");
    assert!(folder.rules(&text).tls.is_some());
    let both = folder.tls_error_of(&format!("{text}  cert_file: cert.pem\n"));
    assert_eq!(both, "found both cert and cert_file, expected one");
}

#[test]
fn an_impossible_tls_setting_is_refused_with_the_possible_ones() {
    let folder = Folder::new();
    folder.copy("cert.pem", "ca.pem");
    let cases = "
min_version: TLS10
    min_version is TLS10, expected TLS12 or TLS13
max_version: TLS11
    max_version is TLS11, expected TLS12 or TLS13
min_version: TLS13, max_version: TLS12
    min_version is above max_version, expected it below or the same
max_version: TLS12, cipher_suites: [TLS_AES_128_GCM_SHA256]
    cipher_suites has no suite for the versions from min_version to max_version
cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]
    cipher_suites has TLS_RSA_WITH_AES_128_CBC_SHA, which is not supported; these are: \
        TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256, \
        TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, \
        TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, \
        TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
curve_preferences: [CurveP521]
    curve_preferences has CurveP521, which is not supported; these are: X25519, CurveP256, CurveP384
client_auth_type: RequestClientCert
    client_auth_type is RequestClientCert, expected NoClientCert, \
        VerifyClientCertIfGiven or RequireAndVerifyClientCert
client_auth_type: RequireAnyClientCert
    client_auth_type is RequireAnyClientCert, expected NoClientCert, \
        VerifyClientCertIfGiven or RequireAndVerifyClientCert
client_auth_type: RequireAndVerifyClientCert
    client_auth_type is RequireAndVerifyClientCert, which needs client_ca_file or client_ca
client_ca_file: ca.pem
    found certificates for clients, which need client_auth_type to be VerifyClientCertIfGiven or \
        RequireAndVerifyClientCert
client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.pem, client_allowed_sans: [a]
    found client_allowed_sans, which needs client_auth_type to be RequireAndVerifyClientCert
client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, client_allowed_sans: []
    client_allowed_sans is empty, so every client would be rejected; leave it out or list names
client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, \
        client_allowed_sans: [alice@example.org]
    client_allowed_sans has the e-mail address alice@example.org, expected hosts, \
        IP addresses or URIs
";
    assert_errors(cases, |more| folder.tls_error_of(&Folder::with_tls(more)));
}

#[test]
fn unusable_certificates_and_keys_are_named() {
    let folder = Folder::new();
    folder.write("empty.pem", "");
    folder.write("torn.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    for (name, kind) in [("wild.pem", "CERTIFICATE"), ("locked.pem", "ENCRYPTED PRIVATE KEY")] {
        folder.write(name, &format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n"));
    }
    let cases = "
cert_file: cert.pem
    found no key_file or key, expected one: the server needs both cert and key…
key_file: key.pem
    found no cert_file or cert, expected one: the server needs both cert and key…
min_version: TLS13
    found no cert_file or cert, expected one: the server needs both cert and key…
cert_file: none.pem, key_file: key.pem
    cert_file: none.pem cannot be read: No such file or directory (os error 2)…
cert_file: cert.pem, key_file: none.pem
    key_file: none.pem cannot be read: No such file or directory (os error 2)…
cert_file: cert.pem, key_file: key.pem, client_ca_file: none.pem
    client_ca_file: none.pem cannot be read: No such file or directory (os error 2)…
cert_file: empty.pem, key_file: key.pem
    cert_file empty.pem has no certificate, expected at least one in PEM…
cert_file: torn.pem, key_file: key.pem
    cert_file torn.pem cannot be read as PEM: a section does not end…
cert_file: wild.pem, key_file: key.pem
    the certificate or its key cannot be used: …
cert_file: cert.pem, key_file: cert.pem
    key_file cert.pem has no private key, expected one in PEM that is not encrypted…
cert_file: cert.pem, key_file: locked.pem
    key_file locked.pem has no private key, expected one in PEM that is not encrypted…
cert_file: cert.pem, key_file: other.key.pem
    the key does not belong to the certificate, expected a pair…
";
    assert_errors(cases, |section| {
        folder.tls_error_of(&format!("tls_server_config: {{{section}}}"))
    });
}

#[test]
fn a_file_that_is_no_configuration_is_reported() {
    let folder = Folder::new();
    let cases = "
tls: {}
    unknown field `tls`, expected one of tls_server_config, http_server_config, basic_auth_users, rate_limit at line 1…
tls_server_config: {certfile: a}
    unknown field `certfile`…
http_server_config: {http3: true}
    unknown field `http3`…
http_server_config: {http2: maybe}
    invalid boolean at line 1, column 29…
basic_auth_users: [alice]
    expected mapping start at line 1, column 19…
basic_auth_users: {a: b}
basic_auth_users: {c: d}
    duplicate mapping key `basic_auth_users` is not allowed here…
tls_server_config: 'a
    unclosed quote at line 1, column 20…
tls_server_config: [a]
    expected mapping start at line 1, column 20…
rate_limit: {interval: soon, burst: 2}
    rate_limit: interval is soon, expected…
rate_limit: {interval: true}
    expected a duration such as 1s at line 1, column 24…
rate_limit: {interval: 2days, burst: 2}
    rate_limit: interval is more than…
rate_limit: {interval: 1s}
    rate_limit: burst must be at least 1; otherwise every request is rejected…
http_server_config: {headers: {Server: mine}}
    http_server_config: headers: Server cannot be set, expected one of Content-Security-Policy, \
        Strict-Transport-Security, X-Content-Type-Options, X-Frame-Options, X-XSS-Protection…
http_server_config: {headers: {X-Frame-Options: allow}}
    http_server_config: headers: X-Frame-Options is \"allow\", expected deny or sameorigin…
http_server_config: {headers: {X-XSS-Protection: \"a\\nb\"}}
    http_server_config: headers: X-XSS-Protection is \"a\\nb\", expected visible characters…
";
    assert_errors(cases, |text| folder.error_of(text));
    fs::write(folder.path("web.yml"), b"\xFF").unwrap();
    let message = |name: &str| format!("{:#}", Web::open(&folder.path(name)).unwrap_err());
    assert!(message("web.yml").contains("it is not UTF-8, expected YAML"));
    assert!(
        message("none.yml")
            .ends_with("none.yml cannot be read: No such file or directory (os error 2)")
    );
}

#[test]
fn a_bad_hash_is_reported_without_being_shown() {
    let folder = Folder::new();
    let no_hash = "alice has no bcrypt hash, expected one such as htpasswd -nB makes";
    for (user, error) in [
        ("alice: secret", no_hash),
        (&format!("alice: '{{SHA}}{}'", "A".repeat(55)), no_hash),
        (
            &format!("alice: {}", HASH.replacen("$04$", "$31$", 1)),
            "the hash of alice has the cost 31, expected 4 to 18",
        ),
        (&format!("'a:b': {}", *HASH), "the name \"a:b\" has a colon, which ends a name"),
    ] {
        let found = folder.error_of(&format!("basic_auth_users: {{{user}}}"));
        assert_eq!(found, format!("basic_auth_users: {error}"), "{user}");
    }
}

#[test]
fn headers_are_those_of_the_file_and_blank_ones_are_not_set() {
    let folder = Folder::new();
    let rules = folder.rules(
        "http_server_config:\n  headers:\n    X-Frame-Options: deny\n    \
         X-Content-Type-Options: nosniff\n    Content-Security-Policy: default-src 'self'\n    \
         X-XSS-Protection: ''\n    Strict-Transport-Security:\n",
    );
    let headers = &rules.headers;
    assert_eq!(headers.len(), 3);
    assert_eq!(headers["x-frame-options"], "deny");
    assert_eq!(headers["content-security-policy"], "default-src 'self'");
}

#[tokio::test]
async fn a_name_with_its_password_is_let_in_and_nobody_else() {
    let folder = Folder::new();
    let other = bcrypt::hash("wrong", 5).unwrap();
    let rules = folder.rules(&format!("basic_auth_users: {{alice: {}, bob: {other}}}", *HASH));
    assert!(rules.passwords.is_some());
    // Twice: the second time it is remembered.
    for _ in 0..2 {
        assert!(admits(&rules, &basic("alice:right")).await);
        for bad in ["alice:wrong", "alice:", "alice", "carol:right", ":right", "", "bob:right"] {
            assert!(!admits(&rules, &basic(bad)).await, "{bad}");
        }
        assert!(admits(&rules, &basic("bob:wrong")).await);
    }
    assert!(!admits(&rules, &HeaderMap::new()).await);
    let encoded = "YWxpY2U6cmlnaHQ=";
    assert!(admits(&rules, &authorization(&format!("basic {encoded}"))).await);
    for bad in ["Bearer CODE", "BasicCODE", "Basic  CODE", "CODE", "Basic", "Basic ", "Basic ****"]
    {
        let bad = bad.replace("CODE", encoded);
        assert!(!admits(&rules, &authorization(&bad)).await, "{bad}");
    }
    assert!(!admits(&rules, &basic([b"alice:".as_slice(), &[0xFF; 12_000]].concat())).await);
    assert!(admits(&Web::nothing().current(), &HeaderMap::new()).await);
}

#[tokio::test]
async fn a_password_that_was_right_costs_nothing_the_next_time() {
    let folder = Folder::new();
    let rules = folder.rules(&format!("basic_auth_users: {{alice: {}}}", *HASH));
    let right = basic("alice:right");
    assert!(admits(&rules, &right).await);
    // A comparison with the hash would run on another thread, which a first poll does not wait for.
    let again = pin!(admits(&rules, &right)).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(again, Poll::Ready(true));
}

/// The least of some times, since others use the machine too.
#[tokio::test]
async fn an_unknown_name_takes_as_long_as_a_wrong_password() {
    let folder = Folder::new();
    let hash = bcrypt::hash("right", 9).unwrap();
    let rules = folder.rules(&format!("basic_auth_users: {{alice: {hash}}}"));
    let mut least = [f64::INFINITY; 2];
    for round in 1.. {
        for (name, least) in ["alice", "carol"].iter().zip(&mut least) {
            let began = Instant::now();
            assert!(!admits(&rules, &basic(format!("{name}:wrong"))).await);
            *least = least.min(began.elapsed().as_secs_f64());
        }
        let [known, unknown] = least;
        if round >= 11 && (0.5..2.0).contains(&(unknown / known)) {
            break;
        }
        assert!(round < 100, "{unknown} s, {known} s");
    }
}

/// As after a restart: nothing is remembered.
#[tokio::test]
async fn a_flood_of_guesses_does_not_keep_the_right_password_out() {
    let folder = Folder::new();
    let hash = bcrypt::hash("right", 10).unwrap();
    let rules = folder.rules(&format!("basic_auth_users: {{alice: {hash}, bob: {hash}}}"));
    let (mut flood, mut busy) = (tokio::task::JoinSet::new(), 0);
    for number in 0..1_000 {
        let rules = rules.clone();
        let guess = basic(format!("alice:{number}"));
        let mut answer = Box::pin(async move { admit_from(1, &rules, &guess).await });
        // All but those that wait have their answer at once, which is not that their password is wrong.
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => {
                assert_eq!(answer, Err(Refusal::Busy));
                busy += 1;
            }
            Poll::Pending => drop(flood.spawn(answer)),
        }
    }
    assert!(busy >= 900, "{busy} of 1,000 are refused at once");
    // Another address goes before the rest of the flood, and another name of the same address too.
    assert_eq!(admit_from(2, &rules, &basic("alice:right")).await, Ok(()));
    assert_eq!(admit_from(1, &rules, &basic("bob:right")).await, Ok(()));
    assert!(flood.len() > 10, "the flood still waits");
    // A remembered password needs no turn.
    assert_eq!(admit_from(1, &rules, &basic("alice:right")).await, Ok(()));
    assert!(flood.len() > 10, "the flood still waits");
    assert_eq!(admit_from(1, &rules, &basic("alice:wrong")).await, Err(Refusal::Unauthorized));
}

#[tokio::test]
async fn a_good_change_is_taken_and_a_bad_one_changes_nothing() {
    let folder = Folder::new();
    let users = |hash: &str| format!("basic_auth_users: {{alice: {hash}}}");
    let web = folder.open(&users(&HASH)).unwrap();
    assert!(admits(&web.current(), &basic("alice:right")).await);

    folder.write("web.yml", &users(&bcrypt::hash("new", 4).unwrap()));
    let rules = look(&web);
    assert!(admits(&rules, &basic("alice:new")).await);
    assert!(!admits(&rules, &basic("alice:right")).await);

    for bad in ["basic_auth_users: {alice: new}", "", "{}", "basic_auth_users: {}"] {
        let before = web.bad_reloads();
        folder.write("web.yml", bad);
        for _ in 0..3 {
            let rules = look(&web);
            assert!(admits(&rules, &basic("alice:new")).await, "{bad}");
            assert!(!admits(&rules, &HeaderMap::new()).await, "{bad}");
        }
        assert_eq!(web.bad_reloads(), before + 1, "reported once: {bad}");
    }

    folder.write("web.yml", &users(&HASH));
    assert!(admits(&look(&web), &basic("alice:right")).await);
    assert_eq!(web.bad_reloads(), 4);
}

#[test]
fn a_changed_certificate_is_taken_with_its_key_only() {
    let folder = Folder::new();
    let web = folder.open(&Folder::with_tls("")).unwrap();
    let config = |rules: Arc<Rules>| Arc::as_ptr(rules.tls.as_ref().unwrap().config());
    let first = config(web.current());
    assert_eq!(config(look(&web)), first, "nothing has changed");

    let (cert, key) = certificate();
    folder.write("cert.pem", &cert);
    assert_eq!(config(look(&web)), first);
    assert_eq!(web.bad_reloads(), 1);
    folder.write("key.pem", &key);
    assert_ne!(config(look(&web)), first);

    let second = config(web.current());
    fs::remove_file(folder.path("key.pem")).unwrap();
    assert_eq!(config(look(&web)), second);
    folder.write("key.pem", &key);
    assert_ne!(config(look(&web)), second);
    for without in ["http_server_config: {http2: false}", ""] {
        folder.write("web.yml", without);
        assert!(look(&web).tls.is_some(), "TLS stays until a restart: {without}");
    }
    assert_eq!(web.bad_reloads(), 4);
}

#[test]
fn clients_are_checked_until_a_restart() {
    let folder = Folder::new();
    folder.copy("cert.pem", "ca.pem");
    let clients = "client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem";
    let web = folder.open(&Folder::with_tls(clients)).unwrap();
    let before = web.current();
    folder.write("web.yml", &Folder::with_tls(""));
    assert!(Arc::ptr_eq(&before, &look(&web)));
    folder.write("web.yml", &Folder::with_tls(&format!("{clients}, min_version: TLS13")));
    assert!(!Arc::ptr_eq(&before, &look(&web)));
    assert_eq!(web.bad_reloads(), 1);
    // Their names too.
    let names = format!("{clients}, client_allowed_sans: [a.example]");
    folder.write("web.yml", &Folder::with_tls(&names));
    let before = look(&web);
    folder.write("web.yml", &Folder::with_tls(clients));
    assert!(Arc::ptr_eq(&before, &look(&web)));
    assert_eq!(web.bad_reloads(), 2);
}
