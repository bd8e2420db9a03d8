//! Encodes a snapshot in pieces, compressed if the client asked for it.

use std::io;

use bytes::Bytes;
use talea::Scrapable;

use super::encoder::{Encoder, encoder};
use super::scrape_request::ScrapeRequest;
use super::scrapers::ScraperLease;
use super::stream::Pieces;

const PIECE: usize = 256 << 10;
/// Room for the last series of a piece, which ends it beyond that length.
const BEYOND: usize = 1 << 10;

pub(super) struct SnapshotPieces<S: Scrapable> {
    lease: ScraperLease<S>,
    compressor: Option<Compressor>,
}

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
        Ok(Self { lease, compressor })
    }
}

impl<S: Scrapable> Pieces for SnapshotPieces<S> {
    fn next(&mut self) -> io::Result<(Bytes, bool)> {
        let scraper = &mut self.lease.scraper;
        let Some(Compressor { text, encoder }) = &mut self.compressor else {
            let mut piece = Vec::with_capacity(PIECE + BEYOND);
            let more = scraper.write_some(&mut piece, PIECE);
            return Ok((piece.into(), more));
        };
        let mut more = true;
        while more && encoder.written().len() < PIECE {
            text.clear();
            more = scraper.write_some(text, PIECE);
            encoder.write_all(text)?;
        }
        if !more {
            encoder.finish()?;
        }
        Ok((std::mem::take(encoder.written()).into(), more))
    }
}
