//! TLS as the file wants it, or an error where it cannot be done so.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    Error as TlsError, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
};

use super::clients;
use super::file::TlsSection;
use super::pem::{Pem, torn};
use super::sources::Sources;

/// By the names that the file has for them.
const VERSIONS: [(&str, &SupportedProtocolVersion); 2] = [("TLS12", &TLS12), ("TLS13", &TLS13)];
const CURVES: [(&str, &dyn SupportedKxGroup); 3] = [
    ("X25519", ring::kx_group::X25519),
    ("CurveP256", ring::kx_group::SECP256R1),
    ("CurveP384", ring::kx_group::SECP384R1),
];

pub(super) fn acceptor(
    section: &TlsSection,
    folder: &Path,
    sources: &mut Sources,
    http2: bool,
) -> Result<TlsAcceptor> {
    let ring = ring::default_provider();
    let provider = Arc::new(CryptoProvider {
        cipher_suites: suites(section.cipher_suites.as_deref(), ring.cipher_suites)?,
        kx_groups: curves(section.curve_preferences.as_deref(), ring.kx_groups)?,
        ..ring
    });
    let versions = versions(section, &provider.cipher_suites)?;
    let mut pem = Pem { folder, sources };
    let clients = clients::verifier(section, &mut pem, &provider)?;
    let (certificates, key) = identity(section, &mut pem)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)?
        .with_client_cert_verifier(clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth))
        .with_single_cert(certificates, key)
        .map_err(|error| match error {
            TlsError::InconsistentKeys(_) => {
                anyhow!("the key does not belong to the certificate, expected a pair")
            }
            error => anyhow!("the certificate or its key cannot be used: {error}"),
        })?;
    config.ignore_client_order = section.prefer_server_cipher_suites.unwrap_or(true);
    config.alpn_protocols = match http2 {
        true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        false => vec![b"http/1.1".to_vec()],
    };
    // Connections are few and long. Without sessions, each has its certificate looked at, and
    // nothing is kept for those who have left.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Those of a list, in its order, or all. Those of TLS 1.3 are all on where the list has none of
/// them: it is said to be about TLS 1.2.
fn suites(
    names: Option<&[String]>,
    all: Vec<SupportedCipherSuite>,
) -> Result<Vec<SupportedCipherSuite>> {
    let Some(names) = names.filter(|names| !names.is_empty()) else {
        return Ok(all);
    };
    let mut chosen = Vec::new();
    for name in names {
        let suite = all.iter().find(|suite| name_of(suite) == *name).ok_or_else(|| {
            let names = all.iter().map(name_of).collect::<Vec<_>>().join(", ");
            anyhow!("cipher_suites has {name}, which is not supported; these are: {names}")
        })?;
        chosen.push(*suite);
    }
    if !chosen.iter().any(|suite| suite.tls13().is_some()) {
        chosen.extend(all.into_iter().filter(|suite| suite.tls13().is_some()));
    }
    Ok(chosen)
}

/// Its name in the standard, which the file uses; rustls sets those of TLS 1.3 apart.
fn name_of(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

fn curves(
    names: Option<&[String]>,
    all: Vec<&'static dyn SupportedKxGroup>,
) -> Result<Vec<&'static dyn SupportedKxGroup>> {
    let Some(names) = names.filter(|names| !names.is_empty()) else {
        return Ok(all);
    };
    let chosen = names.iter().map(|name| {
        let curve = CURVES.iter().find(|(curve, _)| curve == name).ok_or_else(|| {
            let names = CURVES.map(|(name, _)| name).join(", ");
            anyhow!("curve_preferences has {name}, which is not supported; these are: {names}")
        })?;
        Ok(curve.1)
    });
    chosen.collect()
}

/// Those between the lowest and the highest that a suite is for.
fn versions(
    section: &TlsSection,
    suites: &[SupportedCipherSuite],
) -> Result<Vec<&'static SupportedProtocolVersion>> {
    let place = |field: &str, name: Option<&str>, default| match name {
        None => Ok(default),
        Some(name) => VERSIONS
            .iter()
            .position(|(version, _)| *version == name)
            .ok_or_else(|| anyhow!("{field} is {name}, expected TLS12 or TLS13")),
    };
    let min = place("min_version", section.min_version.as_deref(), 0)?;
    let max = place("max_version", section.max_version.as_deref(), VERSIONS.len() - 1)?;
    if min > max {
        bail!("min_version is above max_version, expected it below or the same");
    }
    let versions = VERSIONS[min..=max].iter().map(|(_, version)| *version);
    let chosen: Vec<_> = versions
        .filter(|version| suites.iter().any(|suite| suite.version().version == version.version))
        .collect();
    if chosen.is_empty() {
        bail!("cipher_suites has no suite for the versions from min_version to max_version");
    }
    Ok(chosen)
}

/// The certificate, with those that sign it, and its key.
fn identity(
    section: &TlsSection,
    pem: &mut Pem<'_>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let missing =
        |what| anyhow!("found no {what}, expected one: the server needs both cert and key");
    let certificates = pem
        .certificates(("cert", &section.cert), ("cert_file", &section.cert_file))?
        .ok_or_else(|| missing("cert_file or cert"))?;
    let (name, key) = pem
        .text(("key", &section.key), ("key_file", &section.key_file))?
        .ok_or_else(|| missing("key_file or key"))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| match error {
        PemError::NoItemsFound => {
            anyhow!("{name} has no private key, expected one in PEM that is not encrypted")
        }
        error => torn(&name, &error),
    })?;
    Ok((certificates, key))
}
