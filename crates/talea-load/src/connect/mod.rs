//! Connections to services, over TLS where their URL says so.

mod port;
mod tls;

pub(crate) use self::port::port;
pub(crate) use self::tls::in_words;
pub use self::tls::{Trust, config};

use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes that are read and written, encrypted or not.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// A connection: TCP, or TLS over TCP.
pub type Stream = Box<dyn ByteStream>;

/// The most bytes of an answer's body that are kept, such as a page of metrics.
pub(crate) const MOST_KEPT: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };

/// Said of a URL with `http` whose server speaks TLS.
pub(crate) const EXPECTS_TLS: &str = "this port expects TLS; write https:// in the URL";
