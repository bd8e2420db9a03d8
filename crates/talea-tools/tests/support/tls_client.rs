//! The test server over TLS, and clients that trust it.

use std::sync::Arc;

use talea_http::server::Limits;
use talea_load::stop::Stop;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::test_server::{HELLO, TestServer};
use super::web_config::Folder;

pub(crate) async fn encrypted(folder: &Folder, limits: Limits) -> TestServer {
    let web = "tls_server_config: { cert_file: cert.pem, key_file: key.pem }\n";
    folder.write("web.yml", web);
    TestServer::start_with(limits, Stop::never(), Some(&folder.path("web.yml"))).await
}

/// Clients that trust the folder's authority.
pub(crate) fn trusts(folder: &Folder) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.path("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

pub(crate) async fn connect(server: &TestServer, trusts: &TlsConnector) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    // Written bytes do not wait for the end of the handshake to be acknowledged.
    stream.set_nodelay(true).unwrap();
    let name = ServerName::from(server.address.ip());
    trusts.connect(name, stream).await.unwrap()
}

pub(crate) async fn hears_hello(client: &mut TlsStream<TcpStream>) {
    client.write_all(HELLO.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"hello\n") {
        assert_ne!(client.read_buf(&mut heard).await.unwrap(), 0, "it ended");
    }
}
