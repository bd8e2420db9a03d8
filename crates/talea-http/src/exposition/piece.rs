//! Where the pieces of a scrape come from.

use std::io::{self, Write};

use ::axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use talea::{Scrapable, Scraper};

use super::asked::Asked;
use super::scrapers::Lent;

/// About how long a piece is.
const PIECE: usize = 64 << 10;
/// By how much one mostly is longer, with the series that makes it as long.
const BEYOND: usize = 1 << 10;

/// What is sent piece by piece.
pub(super) trait Pieces: Send {
    /// The next piece.
    fn next(&mut self) -> io::Result<Bytes>;

    /// Whether there is another.
    fn has_more(&self) -> bool;
}

/// A snapshot that is sent so.
#[derive(Debug)]
pub(super) struct Source<S: Scrapable> {
    lent: Lent<S>,
    gzip: Option<Gzip>,
    more: bool,
}

#[derive(Debug)]
struct Gzip {
    /// Text on its way to the encoder.
    text: Vec<u8>,
    encoder: GzEncoder<Vec<u8>>,
}

impl<S: Scrapable> Source<S> {
    /// Takes the snapshot.
    pub(super) fn new(mut lent: Lent<S>, asked: &Asked) -> Self {
        lent.scraper.format(asked.format, asked.escaping);
        lent.scraper.begin(|family| asked.wants(family));
        Self { lent, gzip: asked.gzip.then(Gzip::new), more: true }
    }
}

impl<S: Scrapable> Pieces for Source<S> {
    fn next(&mut self) -> io::Result<Bytes> {
        let piece = match &mut self.gzip {
            None => {
                let mut piece = Vec::with_capacity(PIECE + BEYOND);
                self.more = self.lent.scraper.write_some(&mut piece, PIECE);
                piece
            }
            Some(gzip) => gzip.next(&mut self.lent.scraper, &mut self.more)?,
        };
        Ok(piece.into())
    }

    fn has_more(&self) -> bool {
        self.more
    }
}

impl Gzip {
    fn new() -> Self {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        Self { text: Vec::with_capacity(PIECE + BEYOND), encoder }
    }

    fn next<S: Scrapable>(
        &mut self,
        scraper: &mut Scraper<S>,
        more: &mut bool,
    ) -> io::Result<Vec<u8>> {
        while *more && self.encoder.get_ref().len() < PIECE {
            self.text.clear();
            *more = scraper.write_some(&mut self.text, PIECE);
            self.encoder.write_all(&self.text)?;
        }
        if !*more {
            self.encoder.try_finish()?;
        }
        Ok(std::mem::take(self.encoder.get_mut()))
    }
}
