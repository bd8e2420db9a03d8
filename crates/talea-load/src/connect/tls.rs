//! TLS: the certificates that a client trusts.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The certificates that are accepted.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Those that the system trusts.
    System,
    /// Those that are signed by one in a PEM file.
    File(&'a Path),
    /// Any certificate.
    Any,
}

/// The TLS configuration of connections for one protocol, such as `http/1.1` or `h2`.
/// Fails when the file has no certificate, or the system none.
pub fn config(trust: Trust<'_>, protocol: &str) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::Any => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth(),
        Trust::System => builder.with_root_certificates(system()?).with_no_client_auth(),
        Trust::File(path) => builder.with_root_certificates(file(path)?).with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Ok(Arc::new(config))
}

fn file(path: &Path) -> Result<RootCertStore> {
    let context = || format!("the certificates in {} cannot be read", path.display());
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).with_context(context)? {
        store.add(certificate.with_context(context)?).with_context(context)?;
    }
    if store.is_empty() {
        bail!("{} has no certificate, expected certificates in PEM", path.display());
    }
    Ok(store)
}

fn system() -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        bail!(
            "the system has no trusted certificates; name a file with --ca, or accept any \
             certificate with --insecure"
        );
    }
    Ok(store)
}

/// Takes any certificate, as long as the server has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
