//! A server with a web configuration, and the certificates and hashes that it needs.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SanType,
};
use talea_agent::web::Web;
use talea_http::server::{Limits, Server};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The text of its page.
pub(crate) const PAGE: &str = "# TYPE answers counter\nanswers_total 42\n# EOF\n";

/// A running server; it ends when it is dropped.
pub(crate) struct RunningServer {
    pub(crate) address: SocketAddr,
    pub(crate) web: Arc<Web>,
    pub(crate) runtime: Runtime,
}

fn page() -> Router {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Router::new().route("/metrics", get(move || async move { ([("content-type", kind)], PAGE) }))
}

/// An authority that signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for 127.0.0.1 and its key.
    pub(crate) fn server(&self) -> (String, String) {
        let names = [SanType::IpAddress([127, 0, 0, 1].into())];
        self.sign(&names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate and its key for a client.
    pub(crate) fn client(&self, names: &[SanType]) -> (String, String) {
        self.sign(names, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, names: &[SanType], usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let mut params = named("signed");
        params.subject_alt_names = names.to_vec();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// Names have to differ: a certificate with the name of its signer passes for a self-signed one.
fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Where a web configuration and its certificates are: `ca.pem`, `cert.pem`, `key.pem` and what a
/// test adds.
pub(crate) struct Folder {
    folder: TempDir,
    pub(crate) authority: Authority,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let folder =
            Self { folder: tempfile::tempdir().unwrap(), authority: Authority::new("ours") };
        folder.write("ca.pem", &folder.authority.pem);
        folder.pair("cert.pem", "key.pem", &folder.authority.server());
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn pair(&self, cert: &str, key: &str, pair: &(String, String)) {
        self.write(cert, &pair.0);
        self.write(key, &pair.1);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Serves [`PAGE`] at `/metrics` by a web configuration.
    pub(crate) fn serve(&self, web: &str) -> RunningServer {
        self.write("web.yml", web);
        let web = Arc::new(Web::open(&self.path("web.yml")).unwrap());
        let runtime = Runtime::new().unwrap();
        let limits = Limits { connections: 1024, ..Limits::default() };
        let entered = runtime.enter();
        let server =
            Server::bind(std::net::SocketAddr::from(([127, 0, 0, 1], 0)), limits, web.clone())
                .unwrap();
        let address = server.local_addr();
        runtime.spawn(server.serve(page(), std::future::pending()));
        drop(entered);
        RunningServer { address, web, runtime }
    }
}

/// A section for TLS with what else it has.
pub(crate) fn tls(more: &str) -> String {
    format!("tls_server_config: {{cert_file: cert.pem, key_file: key.pem, {more}}}\n")
}

/// A section for passwords, as cheap as they can be.
pub(crate) fn users(all: &[(&str, &str)]) -> String {
    "basic_auth_users:\n".to_owned()
        + &all
            .iter()
            .copied()
            .map(|(name, password)| format!("  {name}: {}\n", bcrypt::hash(password, 4).unwrap()))
            .collect::<String>()
}

/// The result of curl.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 where no answer came.
    pub(crate) status: u16,
    /// As `1.1` or `2`.
    pub(crate) version: String,
    /// Headers and body.
    pub(crate) text: String,
    /// Curl's log of the connection.
    pub(crate) log: String,
    /// How it ended.
    pub(crate) code: i32,
}

impl Folder {
    /// The result of curl with these arguments, in this folder.
    pub(crate) fn curl(&self, url: &str, arguments: &[&str]) -> Answer {
        let output = Command::new("curl")
            .current_dir(self.folder.path())
            .args(["--silent", "--show-error", "--verbose", "--include", "--max-time", "10"])
            .args(["--write-out", "\n%{http_code} %{http_version}", "--noproxy", "*"])
            .args(arguments)
            .arg(url)
            .output();
        let Output { status, stdout, stderr } = output.expect("curl runs");
        let out = String::from_utf8_lossy(&stdout);
        let (text, last) = out.rsplit_once('\n').expect("curl writes what it is asked for");
        let (code, version) = last.split_once(' ').unwrap();
        Answer {
            status: code.parse().unwrap(),
            version: version.to_owned(),
            text: text.to_owned(),
            log: String::from_utf8_lossy(&stderr).into_owned(),
            code: status.code().unwrap(),
        }
    }
}
