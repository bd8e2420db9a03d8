//! Connections to services, over TLS where their URL says so.

mod stream;
mod tls;

pub use self::stream::Stream;
pub use self::tls::{Trust, config};
