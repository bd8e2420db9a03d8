//! Certificates of clients: their authorities, and the names that are allowed.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, RootCertStore,
    SignatureScheme,
};
use webpki::EndEntityCert;

use super::file::TlsSection;
use super::pem::Pem;

const NONE: &str = "NoClientCert";
const IF_GIVEN: &str = "VerifyClientCertIfGiven";
const REQUIRED: &str = "RequireAndVerifyClientCert";

/// The verifier of client certificates; none if clients need none.
pub(super) fn verifier(
    section: &TlsSection,
    pem: &mut Pem<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>> {
    let policy = section.client_auth_type.as_deref().unwrap_or_default();
    let policy = if policy.is_empty() { NONE } else { policy };
    let signers = pem.certificates(
        ("client_ca", &section.client_ca),
        ("client_ca_file", &section.client_ca_file),
    )?;
    if !matches!(policy, NONE | IF_GIVEN | REQUIRED) {
        bail!("client_auth_type is {policy}, expected {NONE}, {IF_GIVEN} or {REQUIRED}");
    }
    if section.client_allowed_sans.is_some() && policy != REQUIRED {
        bail!("found client_allowed_sans, which needs client_auth_type to be {REQUIRED}");
    }
    let roots = match signers {
        None if policy == NONE => return Ok(None),
        None => bail!("client_auth_type is {policy}, which needs client_ca_file or client_ca"),
        Some(_) if policy == NONE => bail!(
            "found certificates for clients, which need client_auth_type to be {IF_GIVEN} or \
             {REQUIRED}"
        ),
        Some(signers) => roots(signers)?,
    };
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
    let builder = if policy == IF_GIVEN { builder.allow_unauthenticated() } else { builder };
    let signed = builder.build()?;
    match &section.client_allowed_sans {
        None => Ok(Some(signed)),
        Some(names) => Ok(Some(Arc::new(AllowedNames { signed, allowed: names_of(names)? }))),
    }
}

fn roots(signers: Vec<CertificateDer<'static>>) -> Result<Arc<RootCertStore>> {
    let mut store = RootCertStore::empty();
    for signer in signers {
        store.add(signer).context("a certificate in client_ca cannot be used")?;
    }
    Ok(Arc::new(store))
}

/// A subject alternative name that is let in.
#[derive(Debug, PartialEq, Eq)]
enum Name {
    Address(IpAddr),
    /// A host or a URI, to the letter.
    Text(String),
}

fn names_of(names: &[String]) -> Result<Vec<Name>> {
    if names.is_empty() {
        bail!(
            "client_allowed_sans is empty, so every client would be rejected; leave it out or \
            list names"
        );
    }
    let names = names.iter().map(|name| match name.parse() {
        Ok(address) => Ok(Name::Address(address)),
        Err(_) if name.contains('@') && !name.contains(':') => Err(anyhow!(
            "client_allowed_sans has the e-mail address {name}, expected hosts, IP addresses or \
             URIs"
        )),
        Err(_) => Ok(Name::Text(name.clone())),
    });
    names.collect()
}

/// Lets in a client whose certificate is signed and has a name of the list.
#[derive(Debug)]
struct AllowedNames {
    signed: Arc<dyn ClientCertVerifier>,
    allowed: Vec<Name>,
}

impl AllowedNames {
    fn allows(&self, certificate: &EndEntityCert<'_>) -> bool {
        self.allowed.iter().any(|name| match name {
            Name::Address(address) => {
                let name = ServerName::from(*address);
                certificate.verify_is_valid_for_subject_name(&name).is_ok()
            }
            Name::Text(text) => {
                certificate.valid_dns_names().any(|name| name == text)
                    || certificate.valid_uri_names().any(|name| name == text)
            }
        })
    }
}

impl ClientCertVerifier for AllowedNames {
    fn offer_client_auth(&self) -> bool {
        self.signed.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.signed.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        let verified = self.signed.verify_client_cert(certificate, intermediates, now)?;
        let certificate =
            EndEntityCert::try_from(certificate).map_err(|_| CertificateError::BadEncoding)?;
        if !self.allows(&certificate) {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}
