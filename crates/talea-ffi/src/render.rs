//! Rendering: from the region to the text that a scraper reads, piece by piece.

use std::ffi::c_char;

use talea::{Escaping, Format, Scraper};

use crate::boundary::{guarded, place, required};
use crate::fork::{self, WithoutSignals};
use crate::kept::Kept;
use crate::registry::Registry;
use crate::status::Status;
use crate::text::Text;

/// The least bytes of a piece but the last: it ends with the series that reaches them.
const PIECE: usize = 64 << 10;

/// A scrape that is under way, used by one thread at a time.
pub struct Rendering {
    /// The scraper and the last piece, until it ends.
    memory: Option<(Scraper, Vec<u8>)>,
    more: bool,
    kept: &'static Kept<(Scraper, Vec<u8>)>,
}

/// Writes the Content-Type of a page for an Accept header (if it is empty: text), with a zero after
/// it. `written` receives its length without the zero. 256 bytes are enough.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _TOO_SHORT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_content_type(
    accept: Text,
    buffer: *mut c_char,
    buffer_len: usize,
    written: *mut usize,
) -> Status {
    // SAFETY: the header demands valid pointers, and a buffer of that length.
    guarded(|| unsafe {
        let (place, (format, escaping)) = (place(written)?, format_of(accept)?);
        if buffer.is_null() {
            return Err(Status::Null);
        }
        let text = format.content_type(escaping);
        if text.len() >= buffer_len {
            return Err(Status::TooShort);
        }
        buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.add(text.len()).write(0);
        place.write(text.len());
        Ok(())
    })
}

/// The format of an Accept header. A header that is not UTF-8 counts as empty.
///
/// # Safety
///
/// As [`Text::as_str`].
unsafe fn format_of(accept: Text) -> Result<(Format, Escaping), Status> {
    // SAFETY: as the caller promises.
    match unsafe { accept.as_str() } {
        Err(Status::NotUtf8) => Ok(Format::negotiate("")),
        accept => accept.map(Format::negotiate),
    }
}

/// Takes a snapshot of all values, to be rendered for an Accept header (which may be empty:
/// text) by talea_render_next. End it by talea_render_end.
///
/// Its memory is that of the values, not of the text, and a piece.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_render_begin(
    registry: *const Registry,
    accept: Text,
    rendering: *mut *mut Rendering,
) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let (registry, place) = (required(registry)?, place(rendering)?);
        let format = format_of(accept)?;
        place.write(Box::into_raw(Box::new(Rendering::of(registry, format))));
        Ok(())
    })
}

/// Renders the next piece: about 64 KiB, more if a single series is longer. It stays until the next
/// call; its length is 0 after the last piece.
///
/// TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_render_next(rendering: *mut Rendering, piece: *mut Text) -> Status {
    // SAFETY: the header demands a rendering that was begun and not ended, and that no other thread
    // uses.
    guarded(|| unsafe {
        let (rendering, place) = (rendering.as_mut().ok_or(Status::Null)?, place(piece)?);
        let next = rendering.next();
        place.write(Text { data: next.as_ptr().cast(), len: next.len() });
        Ok(())
    })
}

/// Ends a scrape, at any time. Its memory stays for the registry's next one: that of a snapshot.
/// Null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_render_end(rendering: *mut Rendering) {
    // SAFETY: `talea_render_begin` made it, and it is ended once.
    guarded(|| unsafe {
        if !rendering.is_null() {
            drop(Box::from_raw(rendering));
        }
        Ok(())
    });
}

impl Rendering {
    fn of(registry: &'static Registry, (format, escaping): (Format, Escaping)) -> Self {
        let _inside = fork::enter();
        let _blocked = WithoutSignals::new();
        let new = || (registry.registry.scraper(), Vec::new());
        let mut memory = registry.kept_scrape.take().unwrap_or_else(new);
        memory.0.format(format, escaping);
        memory.0.begin(|_| true);
        Self { memory: Some(memory), more: true, kept: &registry.kept_scrape }
    }

    fn next(&mut self) -> &[u8] {
        let Some((scraper, piece)) = &mut self.memory else { return &[] };
        piece.clear();
        while self.more && piece.is_empty() {
            self.more = scraper.write_some(piece, PIECE);
        }
        piece
    }
}

impl Drop for Rendering {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            let _inside = fork::enter();
            self.kept.put(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use talea::{Counter, Opts};

    use super::*;

    const TEXT: (Format, Escaping) = (Format::Text, Escaping::Underscores);

    fn opened() -> (&'static Registry, Counter) {
        let registry = talea::Registry::for_test().unwrap();
        let orders = registry.register(Opts::new("orders", "Orders.")).unwrap();
        (Box::leak(Box::new(Registry::new(registry))), orders)
    }

    fn rest(rendering: &mut Rendering) -> String {
        let mut all = String::new();
        loop {
            let piece = rendering.next();
            if piece.is_empty() {
                return all;
            }
            all.push_str(std::str::from_utf8(piece).unwrap());
        }
    }

    fn page(orders: u64) -> String {
        format!("# HELP orders_total Orders.\n# TYPE orders_total counter\norders_total {orders}\n")
    }

    #[test]
    fn scrapes_one_after_the_other_and_at_once_each_have_their_own_values() {
        let (registry, orders) = opened();
        assert_eq!(rest(&mut Rendering::of(registry, TEXT)), page(0));
        orders.inc();
        let mut one = Rendering::of(registry, TEXT);
        orders.inc();
        let mut two = Rendering::of(registry, TEXT);
        assert_eq!([rest(&mut two), rest(&mut one)], [page(2), page(1)]);
        drop((one, two));
        orders.inc();
        // One that stops before its end leaves nothing behind.
        drop(Rendering::of(registry, TEXT));
        let openmetrics = (Format::OpenMetrics, Escaping::Underscores);
        assert!(rest(&mut Rendering::of(registry, openmetrics)).ends_with("# EOF\n"));
        assert_eq!(rest(&mut Rendering::of(registry, TEXT)), page(3));
    }

    #[test]
    fn a_scrape_does_not_wait_for_the_memory_of_another() {
        let (registry, _) = opened();
        drop(Rendering::of(registry, TEXT));
        let kept = registry.kept_scrape.0.lock().unwrap();
        assert!(kept.is_some());
        assert_eq!(rest(&mut Rendering::of(registry, TEXT)), page(0));
    }
}
