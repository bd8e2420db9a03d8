//! Connections to services, over TLS where their URL says so.

mod fetch;
mod stream;
mod tls;

pub(crate) use self::fetch::fetch;
pub(crate) use self::stream::Stream;
pub(crate) use self::tls::{Trust, config};
