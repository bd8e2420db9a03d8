//! The rules that a web configuration comes to: all that is needed to serve by it.

use std::net::IpAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hyper::header::HeaderMap;
use talea_http::turns::Turns;
use tokio_rustls::TlsAcceptor;

use super::file::WebFile;
use super::passwords::{Passwords, Refusal};
use super::rate_limit::RateLimit;
use super::sources::Sources;
use super::{headers, tls};
use talea_view::screen::note;

/// The rules of a web configuration at one moment.
pub(crate) struct Rules {
    /// How connections are accepted; none if they are plain. It offers HTTP/2 and HTTP/1.1, or the latter alone where
    /// `http2` is off.
    pub(super) tls: Option<TlsAcceptor>,
    checks_clients: bool,
    checks_names: bool,
    pub(super) http2: bool,
    /// Those that are added to each response.
    pub(super) headers: HeaderMap,
    rate_limit: Option<RateLimit>,
    pub(super) passwords: Option<Passwords>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            tls: None,
            checks_clients: false,
            checks_names: false,
            http2: true,
            headers: HeaderMap::new(),
            rate_limit: None,
            passwords: None,
        }
    }
}

impl Rules {
    pub(super) fn read(path: &Path, sources: &mut Sources, checks: &Turns) -> Result<Self> {
        let bytes = sources.read(path)?;
        if bytes.is_empty() {
            // As a full disk may leave it.
            let path = path.display();
            note(format_args!(
                "the web configuration {path} is empty, and asks for neither TLS nor passwords"
            ));
        }
        let file = WebFile::parse(&bytes)?;
        let rate_limit = file.rate_limit.unwrap_or_default();
        let rate_limit = RateLimit::new(&rate_limit).context("rate_limit")?;
        let http = file.http_server_config.unwrap_or_default();
        let http2 = http.http2.unwrap_or(true);
        let headers = headers::from(http.headers.unwrap_or_default())
            .context("http_server_config: headers")?;
        let folder = path.parent().unwrap_or(Path::new(""));
        // A section with nothing in it asks for nothing.
        let section = file.tls_server_config.filter(|section| *section != Default::default());
        let checks_clients = section
            .as_ref()
            .is_some_and(|it| it.client_ca.is_some() || it.client_ca_file.is_some());
        let checks_names = section.as_ref().is_some_and(|it| it.client_allowed_sans.is_some());
        let tls = section.map(|section| {
            tls::acceptor(&section, folder, sources, http2).context("tls_server_config")
        });
        let users = file.basic_auth_users.filter(|users| !users.is_empty());
        let passwords =
            users.map(|users| Passwords::new(users, checks.clone()).context("basic_auth_users"));
        Ok(Self {
            tls: tls.transpose()?,
            checks_clients,
            checks_names,
            http2,
            headers,
            rate_limit,
            passwords: passwords.transpose()?,
        })
    }

    /// These, unless they would have the agent open where it was closed.
    pub(super) fn instead_of(self, before: &Self) -> Result<Self> {
        for (what, had, has) in [
            ("tls_server_config", before.tls.is_some(), self.tls.is_some()),
            ("client_auth_type", before.checks_clients, self.checks_clients),
            ("client_allowed_sans", before.checks_names, self.checks_names),
            ("basic_auth_users", before.passwords.is_some(), self.passwords.is_some()),
        ] {
            if had && !has {
                bail!("it lacks {what} now; to serve without, restart");
            }
        }
        Ok(self)
    }

    /// Whether a request that comes now is in time, by a limit that is one for all clients.
    pub(super) fn is_within_rate_limit(&self) -> bool {
        self.rate_limit.as_ref().is_none_or(|limit| limit.admits(Instant::now()))
    }

    /// Admits a request by the name and password in its header `Authorization`, or because no
    /// password is needed.
    ///
    /// A password that is not remembered is compared with its hash on another thread, one at a
    /// time. Clients wait for that in turns: first by address, then by name.
    ///
    /// Fails when the name or the password is wrong, or too many clients wait.
    pub(super) async fn admit(&self, headers: &HeaderMap, client: IpAddr) -> Result<(), Refusal> {
        match &self.passwords {
            None => Ok(()),
            Some(passwords) => passwords.admit(headers, client).await,
        }
    }
}
