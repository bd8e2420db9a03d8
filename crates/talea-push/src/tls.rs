//! TLS: the certificates that a receiver is known by, and the client's own.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::config::{Config, Protocol};
use crate::error::Error;

/// The TLS configuration of connections to a receiver.
pub(crate) fn config(of: &Config) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls(error.to_string()))?;
    let roots = match &of.ca_file {
        Some(path) => file(path)?,
        None => system()?,
    };
    let builder = builder.with_root_certificates(roots);
    let mut config = match &of.client_certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| pem(key, error))?;
            let chain = certificates(certificate)?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|error| Error::Tls(error.to_string()))?
        }
    };
    let version = match of.protocol {
        #[cfg(feature = "grpc")]
        Protocol::OtlpGrpc => &b"h2"[..],
        _ => b"http/1.1",
    };
    config.alpn_protocols = vec![version.to_vec()];
    Ok(Arc::new(config))
}

fn file(path: &Path) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate).map_err(|error| pem(path, error))?;
    }
    Ok(store)
}

/// The certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| pem(path, error))?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| pem(path, error))?;
    if found.is_empty() {
        return Err(pem(path, "found no certificate, expected some in PEM"));
    }
    Ok(found)
}

fn system() -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        let reason = "the system trusts no certificate; name a file with some";
        return Err(Error::Tls(reason.to_owned()));
    }
    Ok(store)
}

fn pem(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Tls(format!("{}: {error}", path.display()))
}
