//! A server with a web configuration, as curl meets it.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rcgen::SanType;

use crate::support::keep_alive::KeepAlive;
use crate::support::web_config::{Answer, Authority, Folder, PAGE, RunningServer, tls, users};
use crate::support::{End, until};

const CA: [&str; 2] = ["--cacert", "ca.pem"];

/// Asks for the page over TLS, and trusts the authority of the folder.
fn page(folder: &Folder, served: &RunningServer, arguments: &[&str]) -> Answer {
    let url = format!("https://{}/metrics", served.address);
    folder.curl(&url, &[&CA, arguments].concat())
}

/// Gets the page without TLS.
fn plain(folder: &Folder, served: &RunningServer, arguments: &[&str]) -> Answer {
    folder.curl(&format!("http://{}/metrics", served.address), arguments)
}

fn is_page(answer: &Answer) -> bool {
    answer.status == 200 && answer.text.ends_with(PAGE)
}

#[test]
fn the_page_comes_over_tls_by_either_protocol() {
    let folder = Folder::new();
    let served = folder.serve(&tls(""));
    for (argument, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let answer = page(&folder, &served, &[argument]);
        assert!(is_page(&answer) && answer.version == version, "{answer:?}");
        assert!(answer.log.contains("TLSv1.3"), "{answer:?}");
    }
    let older = page(&folder, &served, &["--tls-max", "1.2"]);
    assert!(is_page(&older) && older.log.contains("using TLSv1.2"), "{older:?}");
    assert_ne!(plain(&folder, &served, &[]).status, 200);
}

#[test]
fn versions_below_the_lowest_are_refused() {
    let folder = Folder::new();
    // Of itself, the client would not even ask for the older ones.
    let any = ["--ciphers", "DEFAULT@SECLEVEL=0", "--tlsv1.0", "--tls-max"];
    let served = folder.serve(&tls(""));
    for version in ["1.0", "1.1"] {
        let answer = page(&folder, &served, &[&any[..], &[version]].concat());
        assert_eq!((answer.status, answer.code), (0, 35), "{answer:?}");
        assert!(answer.log.contains("(IN), TLS alert"), "the server refuses: {answer:?}");
    }
    let served = folder.serve(&tls("min_version: TLS13"));
    let answer = page(&folder, &served, &["--tls-max", "1.2"]);
    assert!(answer.log.contains("alert protocol version"), "{answer:?}");
    assert!(is_page(&page(&folder, &served, &[])));
    let served = folder.serve(&tls("max_version: TLS12"));
    let answer = page(&folder, &served, &[]);
    assert!(is_page(&answer) && answer.log.contains("using TLSv1.2"), "{answer:?}");
}

#[test]
fn suites_and_curves_are_those_of_the_file() {
    let folder = Folder::new();
    let served = folder.serve(&tls(
        "max_version: TLS12, cipher_suites: [TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256]",
    ));
    let answer = page(&folder, &served, &[]);
    assert!(is_page(&answer) && answer.log.contains("ECDHE-ECDSA-CHACHA20-POLY1305"));
    let answer = page(&folder, &served, &["--ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"]);
    assert!(answer.log.contains("alert handshake failure"), "{answer:?}");

    let served = folder.serve(&tls("cipher_suites: [TLS_AES_128_GCM_SHA256]"));
    let answer = page(&folder, &served, &[]);
    assert!(is_page(&answer) && answer.log.contains("TLS_AES_128_GCM_SHA256"), "{answer:?}");

    let served = folder.serve(&tls("curve_preferences: [CurveP384]"));
    assert!(is_page(&page(&folder, &served, &["--curves", "P-384"])));
    let answer = page(&folder, &served, &["--curves", "X25519"]);
    assert!(answer.log.contains("alert handshake failure"), "{answer:?}");
}

#[test]
fn without_http_2_the_page_comes_by_http_1() {
    let folder = Folder::new();
    let served = folder.serve(&(tls("") + "http_server_config: {http2: false}\n"));
    let answer = page(&folder, &served, &["--http2"]);
    assert!(is_page(&answer) && answer.version == "1.1", "{answer:?}");
}

#[test]
fn each_answer_has_the_headers_of_the_file() {
    let folder = Folder::new();
    let headers = "http_server_config: {headers: {X-Frame-Options: deny}}\n";
    let served = folder.serve(&(users(&[("alice", "right")]) + headers));
    for arguments in [vec![], vec!["--user", "alice:right"]] {
        let answer = plain(&folder, &served, &arguments);
        assert!(answer.text.to_lowercase().contains("x-frame-options: deny"), "{answer:?}");
    }
}

#[test]
fn a_name_and_its_password_open_and_nothing_else_does() {
    let folder = Folder::new();
    let users = users(&[("alice", "right"), ("bob", "other")]);
    folder.write("huge", &format!("user = \"alice:{}\"\n", "x".repeat(9_000)));
    for (web, ask) in
        [(users.clone(), plain as fn(&_, &_, &[&str]) -> Answer), (users.clone() + &tls(""), page)]
    {
        // One after the other: a server follows the file.
        let served = folder.serve(&web);
        for _ in 0..2 {
            assert!(is_page(&ask(&folder, &served, &["--user", "alice:right"])));
            for bad in [
                vec![],
                vec!["--user", "alice:other"],
                vec!["--user", "alice:"],
                vec!["--user", "carol:right"],
                vec!["--config", "huge"],
                vec!["--oauth2-bearer", "right"],
            ] {
                let answer = ask(&folder, &served, &bad);
                assert_eq!(answer.status, 401, "{bad:?} {answer:?}");
                let text = answer.text.to_lowercase();
                assert!(text.contains("www-authenticate: basic"), "{answer:?}");
                assert!(!text.contains("answers_total"), "{answer:?}");
            }
        }
        assert_eq!(served.web.unauthorized(), 12);
    }
}

#[test]
fn requests_beyond_the_pace_are_answered_with_a_time_to_retry() {
    let folder = Folder::new();
    let served = folder.serve("rate_limit: {interval: 1h, burst: 3}\n");
    let statuses = [(); 5].map(|()| plain(&folder, &served, &[]).status);
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
}

#[test]
fn clients_that_have_to_show_a_certificate_do() {
    let folder = Folder::new();
    folder.pair("a.pem", "a.key", &folder.authority.client(&[]));
    folder.pair("b.pem", "b.key", &Authority::new("another").client(&[]));
    let shows = |cert, key| ["--cert", cert, "--key", key];
    // The certificate of a server is for nothing else.
    let (known, bad) =
        (shows("a.pem", "a.key"), [shows("b.pem", "b.key"), shows("cert.pem", "key.pem")]);
    for (policy, admits_without) in
        [("RequireAndVerifyClientCert", false), ("VerifyClientCertIfGiven", true)]
    {
        // One after the other: a server follows the file.
        let policy = format!("client_ca_file: ca.pem, client_auth_type: {policy}");
        let served = folder.serve(&tls(&policy));
        for version in ["1.2", "1.3"] {
            let ask = |certificate: &[&str]| {
                is_page(&page(&folder, &served, &[certificate, &["--tls-max", version]].concat()))
            };
            assert!(ask(&known), "{policy}, {version}");
            assert_eq!(ask(&[]), admits_without, "{policy}, {version}");
            bad.iter().for_each(|bad| assert!(!ask(bad), "{policy}, {version}: {bad:?}"));
        }
    }
}

#[test]
fn clients_are_let_in_by_the_names_in_their_certificates() {
    let folder = Folder::new();
    let served = folder
        .serve(&tls("client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, \
         client_allowed_sans: [scraper.local, '10.0.0.7', '::1', 'spiffe://home/scraper']"));
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    let uri = |name: &str| SanType::URI(name.try_into().unwrap());
    for (names, expected) in [
        (vec![dns("scraper.local")], true),
        (vec![dns("other.local"), dns("scraper.local")], true),
        (vec![SanType::IpAddress([10, 0, 0, 7].into())], true),
        (vec![SanType::IpAddress("::1".parse().unwrap())], true),
        (vec![uri("spiffe://home/scraper")], true),
        (vec![], false),
        (vec![dns("other.local")], false),
        (vec![dns("*.local")], false),
        (vec![dns("a.scraper.local")], false),
        (vec![SanType::IpAddress([10, 0, 0, 8].into())], false),
        (vec![uri("spiffe://home/scraper/other")], false),
    ] {
        folder.pair("a.pem", "a.key", &folder.authority.client(&names));
        let answer = page(&folder, &served, &["--cert", "a.pem", "--key", "a.key"]);
        assert_eq!(is_page(&answer), expected, "{names:?} {answer:?}");
    }
}

#[test]
fn a_changed_certificate_is_shown_to_the_next_connection() {
    let folder = Folder::new();
    let served = folder.serve(&tls(""));
    assert!(is_page(&page(&folder, &served, &[])));
    let other = Authority::new("another");
    folder.write("ca.pem", &other.pem);
    let distrusted = page(&folder, &served, &[]);
    assert_eq!((distrusted.status, distrusted.code), (0, 60), "{distrusted:?}");
    folder.pair("cert.pem", "key.pem", &other.server());
    until("the certificate is taken", || is_page(&page(&folder, &served, &[])));
    // An unusable file changes nothing.
    fs::remove_file(folder.path("key.pem")).unwrap();
    folder.write("cert.pem", "");
    until("the change is refused", || {
        assert!(is_page(&page(&folder, &served, &[])));
        served.web.bad_reloads() > 0
    });
    assert!(is_page(&page(&folder, &served, &[])));
    assert_eq!(served.web.bad_reloads(), 1);
}

#[test]
fn a_changed_password_is_asked_for_at_once_even_where_a_connection_is_open() {
    let folder = Folder::new();
    let served = folder.serve(&users(&[("alice", "old")]));
    let ask = |password: &str| plain(&folder, &served, &["--user", &format!("alice:{password}")]);
    assert!(is_page(&ask("old")));
    let mut open = OpenConnection::to(&served);
    assert_eq!(open.status_for("alice:old"), 200);
    folder.write("web.yml", &users(&[("alice", "new")]));
    until("the password is taken", || is_page(&ask("new")));
    assert_eq!(ask("old").status, 401);
    assert_eq!(open.status_for("alice:old"), 401);
    assert_eq!(open.status_for("alice:new"), 200);
    // A file without passwords takes none away.
    folder.write("web.yml", "");
    until("the change is refused", || {
        assert_eq!(plain(&folder, &served, &[]).status, 401);
        served.web.bad_reloads() > 0
    });
    assert_eq!(plain(&folder, &served, &[]).status, 401);
    assert!(is_page(&ask("new")));
}

/// As after a restart of the agent: no password is remembered.
#[test]
fn a_flood_of_guesses_keeps_no_right_password_out() {
    let folder = Folder::new();
    let hash = bcrypt::hash("right", 6).unwrap();
    let served = folder.serve(&format!("basic_auth_users: {{alice: {hash}}}\n"));
    let (is_over, guessed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let guess = |guesser: u32| {
        let mut connection = OpenConnection::to(&served);
        while !is_over.load(Ordering::SeqCst) {
            let status = connection.status_for(&format!("alice:{guesser}"));
            assert!(matches!(status, 401 | 503), "{status}");
            guessed.fetch_add(1, Ordering::SeqCst);
            // A refusal comes at once; the machine is left to the server.
            thread::sleep(Duration::from_millis(50));
        }
    };
    thread::scope(|scope| {
        let _end = End(&is_over);
        let guess = &guess;
        (0..100).for_each(|guesser| drop(scope.spawn(move || guess(guesser))));
        until("100 guesses", || guessed.load(Ordering::SeqCst) >= 100);
        for _ in 0..20 {
            let mut scraper = OpenConnection::from([127, 0, 0, 2], &served);
            assert_eq!(scraper.status_for("alice:right"), 200);
        }
    });
}

/// One that stays open over requests, without TLS.
struct OpenConnection(KeepAlive);

impl OpenConnection {
    fn to(served: &RunningServer) -> Self {
        Self::from([127, 0, 0, 1], served)
    }

    /// A connection from an address of its own.
    fn from(address: [u8; 4], served: &RunningServer) -> Self {
        let connect = async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind((address, 0).into()).unwrap();
            socket.connect(served.address).await.unwrap().into_std().unwrap()
        };
        let stream = served.runtime.block_on(connect);
        stream.set_nonblocking(false).unwrap();
        Self(KeepAlive::new(stream))
    }

    fn status_for(&mut self, name_and_password: &str) -> u16 {
        use base64::Engine;
        let encoded = base64::prelude::BASE64_STANDARD.encode(name_and_password);
        self.0.get("/metrics", &format!("authorization: Basic {encoded}\r\n")).0
    }
}
