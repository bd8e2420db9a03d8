//! What the web configuration says.

use std::path::Path;
use std::sync::Arc;

use axum::http::HeaderMap;
use tokio_rustls::TlsAcceptor;

/// A web configuration.
#[derive(Debug, Default)]
pub struct Web;

/// What it says at a moment.
#[derive(Debug, Default)]
pub struct Rules(HeaderMap);

impl Web {
    /// What a file says.
    ///
    /// # Errors
    /// Always, so far.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        anyhow::bail!("the web configuration {} cannot be used", path.display())
    }

    /// No TLS and no passwords, and HTTP/2 for those who speak it.
    pub fn nothing() -> Self {
        Self
    }

    /// What holds at this moment.
    pub fn current(&self) -> Arc<Rules> {
        Arc::default()
    }

    /// How many changes were not taken.
    pub fn bad_reloads(&self) -> u64 {
        0
    }
}

impl Rules {
    /// How connections are encrypted, if they are.
    pub fn tls(&self) -> Option<TlsAcceptor> {
        None
    }

    /// Whether HTTP/2 is spoken.
    pub fn http2(&self) -> bool {
        true
    }

    /// What each answer says.
    pub fn headers(&self) -> &HeaderMap {
        &self.0
    }

    /// Whether a request is let in.
    pub async fn admits(&self, _headers: &HeaderMap) -> bool {
        true
    }

    /// Whether anybody needs a password.
    pub fn asks_for_passwords(&self) -> bool {
        false
    }
}
