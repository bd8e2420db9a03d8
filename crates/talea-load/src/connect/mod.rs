//! Connections to services, over TLS where their URL says so.

mod fetch;
mod port;
mod stream;
mod tls;

pub use self::fetch::fetch;
pub use self::port::port;
pub use self::stream::Stream;
pub use self::tls::{Trust, config};
