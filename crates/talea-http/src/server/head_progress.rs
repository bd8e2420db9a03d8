//! Finds whether the bytes that a client has sent end within the head of a request or within a
//! frame of HTTP/2, so that the client has to send the rest.
//!
//! hyper's own limits fall short of that. Its time for heads of HTTP/1 also ends a connection that is
//! idle between two scrapes, and nothing limits the bytes before the protocol is known: half a preface
//! stays open. Over HTTP/2 its keep-alive pings do end a head that is drawn out, since a client cannot
//! answer within it. But they end a client that is stopped for as long just the same, which has
//! [`patience`](super::Limits::patience).

/// The first bytes of every connection of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// The state of a client's heads and frames after some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadProgress {
    /// All are complete.
    Complete,
    /// The head or frame that was incomplete before still is.
    Continued,
    /// A head or frame that began within these bytes is incomplete; earlier ones are complete.
    Started,
}

#[derive(Debug)]
pub(super) enum HeadTracker {
    /// So many bytes of the preface, and nothing else.
    Unknown(usize),
    /// HTTP/1: requests without bodies, so heads only.
    Http1(Lines),
    /// HTTP/1 from a request with a body on, which is the last of the connection.
    Body,
    Http2(Frames),
}

/// The client's position within its heads of HTTP/1. An empty line ends a head, and those before a head
/// are skipped.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Whether the line has bytes before its end; `None` between two heads.
    line: Option<bool>,
}

/// The client's position within its frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The nine bytes that begin a frame, and how many of them are there.
    start: [u8; 9],
    started: usize,
    /// Bytes that are missing of the frame's payload.
    payload: u32,
    /// Whether a header block is open, which CONTINUATION frames continue.
    block: bool,
}

impl HeadTracker {
    pub(super) fn read(&mut self, bytes: &[u8]) -> HeadProgress {
        match self {
            Self::Unknown(matched) => {
                let wanted = &PREFACE[*matched..];
                let common = wanted.len().min(bytes.len());
                if bytes[..common] != wanted[..common] {
                    let mut lines = Lines::default();
                    lines.read(&PREFACE[..*matched]);
                    let progress = lines.read(bytes);
                    *self = Self::Http1(lines);
                    return progress;
                }
                *matched += common;
                if common < wanted.len() {
                    return HeadProgress::Continued;
                }
                *self = Self::Http2(Frames::default());
                self.read(&bytes[common..])
            }
            Self::Http1(lines) => lines.read(bytes),
            Self::Body => HeadProgress::Complete,
            Self::Http2(frames) => frames.read(bytes),
        }
    }
}

impl Lines {
    fn read(&mut self, bytes: &[u8]) -> HeadProgress {
        let mut was_complete = self.line.is_none();
        for byte in bytes {
            self.line = match (self.line, byte) {
                (None, b'\r' | b'\n') => None,
                (line, b'\r') => line,
                (Some(false), b'\n') => None,
                (Some(true), b'\n') => Some(false),
                _ => Some(true),
            };
            was_complete |= self.line.is_none();
        }
        HeadProgress::of(self.line.is_none(), was_complete)
    }
}

impl HeadProgress {
    /// The state after some bytes, by whether all was complete at their end, and at any byte of them or
    /// before.
    fn of(is_complete: bool, was_complete: bool) -> Self {
        match (is_complete, was_complete) {
            (true, _) => Self::Complete,
            (false, true) => Self::Started,
            (false, false) => Self::Continued,
        }
    }
}

impl Frames {
    fn read(&mut self, mut bytes: &[u8]) -> HeadProgress {
        let mut was_complete = self.is_complete();
        while !bytes.is_empty() {
            if self.payload > 0 {
                let taken = bytes.len().min(self.payload as usize);
                // At most the payload, which is a u32.
                self.payload -= taken as u32;
                bytes = &bytes[taken..];
            } else {
                let taken = bytes.len().min(self.start.len() - self.started);
                self.start[self.started..self.started + taken].copy_from_slice(&bytes[..taken]);
                self.started += taken;
                bytes = &bytes[taken..];
                if self.started == self.start.len() {
                    self.started = 0;
                    self.begin();
                }
            }
            was_complete |= self.is_complete();
        }
        HeadProgress::of(self.is_complete(), was_complete)
    }

    fn is_complete(&self) -> bool {
        self.started == 0 && self.payload == 0 && !self.block
    }

    fn begin(&mut self) {
        let [a, b, c, kind, flags, ..] = self.start;
        self.payload = u32::from_be_bytes([0, a, b, c]);
        if matches!(kind, HEADERS | CONTINUATION) {
            self.block = flags & END_HEADERS == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HeadProgress::{Complete, Continued, Started};
    use super::*;

    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

    #[test]
    fn http_2_is_incomplete_within_the_preface() {
        for at in 1..PREFACE.len() {
            let mut heads = HeadTracker::Unknown(0);
            assert_eq!(heads.read(&PREFACE[..at]), Continued, "{at}");
            assert_eq!(heads.read(&PREFACE[at..]), Complete, "{at}");
        }
    }

    #[test]
    fn http_2_is_incomplete_within_a_frame_or_a_header_block_of_several() {
        let end_and_begin = [&SETTINGS[5..], &SETTINGS[..1]].concat();
        let mut heads = HeadTracker::Unknown(0);
        for (bytes, expected) in [
            (&[PREFACE, SETTINGS].concat()[..], Complete),
            (SETTINGS, Complete),
            (&SETTINGS[..4], Started),
            (&SETTINGS[4..5], Continued),
            (&end_and_begin, Started),
            (&SETTINGS[1..], Complete),
            (&[0, 0, 2, HEADERS, 0, 0, 0, 0, 1, 7], Started),
            (&[7], Continued),
            (&[0, 0, 1, CONTINUATION, 0, 0, 0, 0, 1, 7], Continued),
            (&[0, 0, 1, CONTINUATION, END_HEADERS, 0, 0, 0, 1], Continued),
            (&[7], Complete),
        ] {
            assert_eq!(heads.read(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn other_bytes_are_a_head_of_http_1() {
        for begin in ["G", "PRI ", "PRI * HTTP/1"] {
            let mut heads = HeadTracker::Unknown(0);
            heads.read(begin.as_bytes());
            assert_eq!(heads.read(b"/ HTTP/1.1\r\n"), Continued);
            assert!(matches!(heads, HeadTracker::Http1(_)), "{begin}");
            assert_eq!(heads.read(b"\r\n"), Complete);
        }
    }

    #[test]
    fn http_1_is_incomplete_within_each_of_several_heads() {
        let mut heads = HeadTracker::Unknown(0);
        for (bytes, expected) in [
            ("GET / HTTP/1.1\r\nhost: x\r\n", Started),
            ("\r", Continued),
            ("\n", Complete),
            ("\r\n\n", Complete),
            ("GET / HTTP/1.1\n\nGET", Started),
            (" / HTTP/1.1\r\nhost: x\r\n", Continued),
            ("\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n", Complete),
        ] {
            assert_eq!(heads.read(bytes.as_bytes()), expected, "{bytes:?}");
        }
    }
}
