//! Compression of a scrape, for each coding that is built in.

use std::io::{self, Write};

use super::scrape_request::Coding;

pub(super) trait Encoder: Write + Send {
    /// Writes what is still buffered, and the end.
    fn finish(&mut self) -> io::Result<()>;

    /// The compressed bytes that have not been taken yet.
    fn written(&mut self) -> &mut Vec<u8>;
}

/// The encoder for a coding, with the fastest level: higher levels would cost the service more than
/// they save on the network. `None` for identity.
///
/// # Errors
///
/// There is no memory for it.
pub(super) fn encoder(coding: Coding) -> io::Result<Option<Box<dyn Encoder>>> {
    Ok(match coding {
        Coding::Identity => None,
        #[cfg(feature = "gzip")]
        Coding::Gzip => {
            use flate2::{Compression, write::GzEncoder};
            Some(Box::new(GzEncoder::new(Vec::new(), Compression::fast())))
        }
        #[cfg(feature = "zstd")]
        Coding::Zstd => Some(Box::new(zstd::stream::write::Encoder::new(Vec::new(), 1)?)),
    })
}

#[cfg(feature = "gzip")]
impl Encoder for flate2::write::GzEncoder<Vec<u8>> {
    fn finish(&mut self) -> io::Result<()> {
        self.try_finish()
    }

    fn written(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }
}

#[cfg(feature = "zstd")]
impl Encoder for zstd::stream::write::Encoder<'static, Vec<u8>> {
    fn finish(&mut self) -> io::Result<()> {
        self.do_finish()
    }

    fn written(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }
}
