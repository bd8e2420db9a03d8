//! Connections to services, over TLS where their URL says so.

mod stream;
mod tls;

pub(crate) use self::stream::Stream;
pub(crate) use self::tls::{Trust, config};
