//! Certificates and keys of the web configuration: in the file itself, or in one that it names.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};

use super::sources::Sources;

/// Reads what stands in the file itself or in another that it names.
pub(super) struct Pem<'a> {
    pub(super) folder: &'a Path,
    pub(super) sources: &'a mut Sources,
}

/// A field by its name.
type Field<'a> = (&'a str, &'a Option<String>);

impl Pem<'_> {
    /// Certificates, at least one, if there is such a field.
    pub(super) fn certificates(
        &mut self,
        inline: Field<'_>,
        file: Field<'_>,
    ) -> Result<Option<Vec<CertificateDer<'static>>>> {
        let Some((name, text)) = self.text(inline, file)? else {
            return Ok(None);
        };
        let certificates = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| torn(&name, &error))?;
        if certificates.is_empty() {
            bail!("{name} has no certificate, expected at least one in PEM");
        }
        Ok(Some(certificates))
    }

    /// The text of one of two fields, and what to call it.
    pub(super) fn text(
        &mut self,
        inline: Field<'_>,
        file: Field<'_>,
    ) -> Result<Option<(String, Vec<u8>)>> {
        let given = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
        match (given(inline.1), given(file.1)) {
            (None, None) => Ok(None),
            (Some(text), None) => Ok(Some((inline.0.to_owned(), text.into_bytes()))),
            (None, Some(path)) => {
                let path = self.folder.join(path);
                let text = self.sources.read(&path).with_context(|| file.0.to_owned())?;
                Ok(Some((format!("{} {}", file.0, path.display()), text)))
            }
            (Some(_), Some(_)) => bail!("found both {} and {}, expected one", inline.0, file.0),
        }
    }
}

/// An error of a text that is not whole PEM.
pub(super) fn torn(name: &str, error: &PemError) -> anyhow::Error {
    match error {
        // Its own words are the marker's bytes as numbers.
        PemError::MissingSectionEnd { .. } => {
            anyhow!("{name} cannot be read as PEM: a section does not end")
        }
        error => anyhow!("{name} cannot be read as PEM: {error}"),
    }
}
