//! Connections to services, over TLS where their URL says so.

mod fetch;
mod port;
mod stream;
mod tls;

pub use self::fetch::fetch;
pub use self::port::port;
pub use self::stream::Stream;
pub use self::tls::{Trust, config};

/// The most bytes of an answer's body that are kept, such as a page of metrics.
pub(crate) const MOST_KEPT: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };
