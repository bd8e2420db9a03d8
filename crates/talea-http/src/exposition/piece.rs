//! Encodes a snapshot in pieces, compressed if the client asked for it.

use std::io;

use bytes::Bytes;
use talea::{Scrapable, Scraper};

use super::encoder::{Encoder, encoder};
use super::scrape_request::ScrapeRequest;
use super::scrapers::ScraperLease;
use super::stream::Pieces;

/// The approximate length of a piece.
const PIECE: usize = 256 << 10;
/// Room for the last series of a piece, which ends it beyond that length.
const BEYOND: usize = 1 << 10;

/// A snapshot that is encoded piece by piece.
pub(super) struct SnapshotPieces<S: Scrapable> {
    lease: ScraperLease<S>,
    compressor: Option<Compressor>,
    more: bool,
}

/// Compresses a scrape as it is written.
struct Compressor {
    /// The buffer for text before compression.
    text: Vec<u8>,
    encoder: Box<dyn Encoder>,
}

impl<S: Scrapable> SnapshotPieces<S> {
    /// Takes the snapshot.
    ///
    /// # Errors
    ///
    /// There is no memory for the encoder.
    pub(super) fn new(mut lease: ScraperLease<S>, request: &ScrapeRequest) -> io::Result<Self> {
        let encoder = encoder(request.coding)?;
        lease.scraper.format(request.format, request.escaping);
        lease.scraper.begin_named(&request.names);
        let compressor =
            encoder.map(|encoder| Compressor { text: Vec::with_capacity(PIECE + BEYOND), encoder });
        Ok(Self { lease, compressor, more: true })
    }
}

impl<S: Scrapable> Pieces for SnapshotPieces<S> {
    fn next(&mut self) -> io::Result<Bytes> {
        let piece = match &mut self.compressor {
            None => {
                let mut piece = Vec::with_capacity(PIECE + BEYOND);
                self.more = self.lease.scraper.write_some(&mut piece, PIECE);
                piece
            }
            Some(compressor) => compressor.next(&mut self.lease.scraper, &mut self.more)?,
        };
        Ok(piece.into())
    }

    fn has_more(&self) -> bool {
        self.more
    }
}

impl Compressor {
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
