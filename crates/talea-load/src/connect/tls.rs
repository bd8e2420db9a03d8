//! TLS: the certificates that a client trusts, and why there is no connection, in words.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

/// The certificates that are accepted.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Those that the system trusts.
    System,
    /// Those that are signed by one in a PEM file, and the certificates in it themselves.
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
        Trust::File(path) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(FileCertificates::read(path, provider)?))
            .with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Ok(Arc::new(config))
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

/// The error of a handshake with a server, with what to do about it.
pub(crate) fn in_words(error: io::Error, host: &str, port: u16) -> io::Error {
    let at = format!("the server at {host}:{port}");
    let trusts = "name its issuer with --ca FILE, or accept any certificate with --insecure";
    let words = match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(Error::InvalidMessage(_)) => {
            format!("{at} speaks no TLS; write http:// in the URL, or correct the port")
        }
        // An issuer of the same name may be trusted, which did not sign it.
        Some(Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => {
            format!("the certificate of {at} is signed by an issuer that is not trusted; {trusts}")
        }
        Some(Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => format!(
            "the certificate of {at} is for another name; write a name of the certificate in the URL, or accept any \
             certificate with --insecure"
        ),
        Some(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => {
            format!("the certificate of {at} has expired; renew it, or accept it with --insecure")
        }
        Some(Error::InvalidCertificate(other)) => {
            format!("the certificate of {at} is not valid ({other}); {trusts}")
        }
        Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => format!(
            "{at} speaks another version of HTTP over TLS; add --http2, or leave it out if it is there"
        ),
        Some(Error::AlertReceived(
            AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion,
        )) => format!("{at} accepts no version or cipher that this program has (TLS 1.2 and 1.3)"),
        Some(other) => format!("no TLS with {at}: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => format!(
            "{at} closed the connection instead of speaking TLS; if it speaks none, write http:// in the URL"
        ),
        None => return error,
    };
    io::Error::new(error.kind(), words)
}

/// Takes certificates that one in a file has signed, and those in the file themselves.
///
/// `openssl req -x509` makes a certificate that signs itself and says that it is a certificate authority. A server
/// that uses it as its own is refused by webpki, which allows no certificate of an authority there. Browsers, curl
/// and Go accept it if it is trusted by itself, and so does this. webpki compares the period of validity before.
#[derive(Debug)]
struct FileCertificates {
    certificates: Vec<CertificateDer<'static>>,
    signed: Arc<WebPkiServerVerifier>,
}

impl FileCertificates {
    fn read(path: &Path, provider: Arc<CryptoProvider>) -> Result<Self> {
        let context = || format!("the certificates in {} cannot be read", path.display());
        let certificates = CertificateDer::pem_file_iter(path).with_context(context)?;
        let certificates: Vec<_> = certificates.collect::<Result<_, _>>().with_context(context)?;
        if certificates.is_empty() {
            bail!("{} has no certificate, expected certificates in PEM", path.display());
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).with_context(context)?;
        }
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { certificates, signed: signed.with_context(context)? })
    }
}

fn is_authority_of_its_own(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

impl ServerCertVerifier for FileCertificates {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.signed.verify_server_cert(certificate, others, name, ocsp, now) {
            Err(error)
                if is_authority_of_its_own(&error) && self.certificates.contains(certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
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
