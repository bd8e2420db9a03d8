//! Claims about pushing over TLS.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::receiver::{LONGEST, Receiver};
use super::registry::{config, one_of_each};
use crate::{Config, Pusher};

/// A certificate in files, for the name of this machine.
struct Identity {
    folder: TempDir,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    fn new() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made: CertifiedKey<KeyPair> = generate_simple_self_signed(names).unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        Self { folder, certificate: made.cert.der().clone(), key: made.signing_key.serialize_der() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }

    /// The configuration of a server that has it, and that wants the certificate of a client.
    fn server(&self, client: Option<&Identity>) -> Arc<ServerConfig> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let roots = Arc::new(client.roots());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                builder.with_client_cert_verifier(verifier.unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        Arc::new(builder.with_single_cert(vec![self.certificate.clone()], key).unwrap())
    }
}

fn config_of(receiver: &Receiver) -> Config {
    config(&format!("https://{}/api/v1/write", receiver.address))
}

#[test]
fn a_receiver_with_a_known_certificate_gets_what_is_pushed() {
    let (server, client) = (Identity::new(), Identity::new());
    for wants in [None, Some(&client)] {
        let receiver = Receiver::with_tls(&[], Some(server.server(wants)));
        let config = config_of(&receiver)
            .ca_file(server.file("cert.pem"))
            .client_certificate(client.file("cert.pem"), client.file("key.pem"));
        let pusher = Pusher::start(&one_of_each(), config).unwrap();
        assert!(pusher.flush(LONGEST));
        assert_eq!(receiver.received().len(), 2);
    }
}

#[test]
fn a_receiver_with_an_unknown_certificate_gets_nothing() {
    let (server, other) = (Identity::new(), Identity::new());
    let receiver = Receiver::with_tls(&[], Some(server.server(None)));
    let config = config_of(&receiver).ca_file(other.file("cert.pem"));
    let registry = one_of_each();
    let pusher = Pusher::start(&registry, config).unwrap();
    let began = Instant::now();
    let attempts = [("status", "0")];
    while registry.snapshot().select("talea_push_requests_total", &attempts).next().is_none() {
        assert!(!pusher.flush(Duration::from_millis(5)));
        assert!(began.elapsed() < LONGEST, "there is no attempt");
    }
    assert_eq!(receiver.received().len(), 0);
}
