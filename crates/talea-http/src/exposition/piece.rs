//! The pieces of a scrape: written, and compressed if the client asked for it.

use std::io;

use bytes::Bytes;
use talea::{Scrapable, Scraper};

use super::asked::Asked;
use super::encoder::{Encoder, encoder};
use super::scrapers::Lent;

/// About how long a piece is.
const PIECE: usize = 256 << 10;
/// By how much one mostly is longer, with the series that makes it as long.
const BEYOND: usize = 1 << 10;

/// A source of pieces.
pub(super) trait Pieces: Send {
    /// The next piece.
    fn next(&mut self) -> io::Result<Bytes>;

    /// Whether there is another.
    fn has_more(&self) -> bool;
}

/// A snapshot that is sent piece by piece.
pub(super) struct Source<S: Scrapable> {
    lent: Lent<S>,
    compressed: Option<Compressed>,
    more: bool,
}

/// Compresses a scrape as it is written.
struct Compressed {
    /// Text on its way to the encoder.
    text: Vec<u8>,
    encoder: Box<dyn Encoder>,
}

impl<S: Scrapable> Source<S> {
    /// Takes the snapshot.
    ///
    /// # Errors
    ///
    /// There is no memory for the encoder.
    pub(super) fn new(mut lent: Lent<S>, asked: &Asked) -> io::Result<Self> {
        let encoder = encoder(asked.coding)?;
        lent.scraper.format(asked.format, asked.escaping);
        lent.scraper.begin_named(&asked.names);
        let compressed =
            encoder.map(|encoder| Compressed { text: Vec::with_capacity(PIECE + BEYOND), encoder });
        Ok(Self { lent, compressed, more: true })
    }
}

impl<S: Scrapable> Pieces for Source<S> {
    fn next(&mut self) -> io::Result<Bytes> {
        let piece = match &mut self.compressed {
            None => {
                let mut piece = Vec::with_capacity(PIECE + BEYOND);
                self.more = self.lent.scraper.write_some(&mut piece, PIECE);
                piece
            }
            Some(compressed) => compressed.next(&mut self.lent.scraper, &mut self.more)?,
        };
        Ok(piece.into())
    }

    fn has_more(&self) -> bool {
        self.more
    }
}

impl Compressed {
    fn next<S: Scrapable>(
        &mut self,
        scraper: &mut Scraper<S>,
        more: &mut bool,
    ) -> io::Result<Vec<u8>> {
        while *more && self.encoder.written().len() < PIECE {
            self.text.clear();
            *more = scraper.write_some(&mut self.text, PIECE);
            self.encoder.write(&self.text)?;
        }
        if !*more {
            self.encoder.finish()?;
        }
        Ok(std::mem::take(self.encoder.written()))
    }
}
