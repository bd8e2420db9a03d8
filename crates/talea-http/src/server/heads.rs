//! Finds whether the bytes that a client has sent end within the head of a request or within a
//! frame of HTTP/2: the client then owes the rest.

/// The first bytes of every connection of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// What a client owes after some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    Nothing,
    /// The rest of what it owed before.
    Rest,
    /// The rest of something that began within these bytes; what it owed before is complete.
    Another,
}

/// The protocol that was found, and its state.
#[derive(Debug)]
pub(super) enum Heads {
    /// A number of bytes of the preface, and nothing else.
    Unknown(usize),
    /// HTTP/1: bytes that come while nothing is answered belong to a head.
    Http1,
    /// HTTP/2.
    Http2(Frames),
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

impl Heads {
    pub(super) fn new() -> Self {
        Self::Unknown(0)
    }

    /// Takes bytes that were read.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Owed {
        match self {
            Self::Unknown(matched) => {
                let wanted = &PREFACE[*matched..];
                let common = wanted.len().min(bytes.len());
                if bytes[..common] != wanted[..common] {
                    *self = Self::Http1;
                    return Owed::Rest;
                }
                *matched += common;
                if common < wanted.len() {
                    return Owed::Rest;
                }
                *self = Self::Http2(Frames::default());
                self.read(&bytes[common..])
            }
            Self::Http1 => Owed::Rest,
            Self::Http2(frames) => frames.read(bytes),
        }
    }
}

impl Frames {
    fn read(&mut self, mut bytes: &[u8]) -> Owed {
        let mut came = self.owes_nothing();
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
            came |= self.owes_nothing();
        }
        match (self.owes_nothing(), came) {
            (true, _) => Owed::Nothing,
            (false, true) => Owed::Another,
            (false, false) => Owed::Rest,
        }
    }

    fn owes_nothing(&self) -> bool {
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
    use super::*;

    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

    #[test]
    fn a_connection_of_http_2_owes_nothing_between_its_frames() {
        let mut heads = Heads::new();
        assert_eq!(heads.read(&[PREFACE, SETTINGS].concat()), Owed::Nothing);
        assert_eq!(heads.read(SETTINGS), Owed::Nothing);
    }

    #[test]
    fn it_owes_the_rest_of_the_preface() {
        for at in 1..PREFACE.len() {
            let mut heads = Heads::new();
            assert_eq!(heads.read(&PREFACE[..at]), Owed::Rest, "{at}");
            assert_eq!(heads.read(&PREFACE[at..]), Owed::Nothing, "{at}");
        }
    }

    #[test]
    fn it_owes_the_rest_of_a_frame() {
        let mut heads = Heads::new();
        heads.read(PREFACE);
        assert_eq!(heads.read(&SETTINGS[..4]), Owed::Another);
        assert_eq!(heads.read(&SETTINGS[4..5]), Owed::Rest);
        let end_and_begin = [&SETTINGS[5..], &SETTINGS[..1]].concat();
        assert_eq!(heads.read(&end_and_begin), Owed::Another);
        assert_eq!(heads.read(&SETTINGS[1..]), Owed::Nothing);
    }

    #[test]
    fn it_owes_the_rest_of_a_header_block_whatever_frames_that_has() {
        let mut heads = Heads::new();
        heads.read(PREFACE);
        assert_eq!(heads.read(&[0, 0, 2, HEADERS, 0, 0, 0, 0, 1, 7]), Owed::Another);
        assert_eq!(heads.read(&[7]), Owed::Rest);
        assert_eq!(heads.read(&[0, 0, 1, CONTINUATION, 0, 0, 0, 0, 1, 7]), Owed::Rest);
        assert_eq!(heads.read(&[0, 0, 1, CONTINUATION, END_HEADERS, 0, 0, 0, 1]), Owed::Rest);
        assert_eq!(heads.read(&[7]), Owed::Nothing);
    }

    #[test]
    fn anything_else_is_a_head_of_http_1() {
        for begin in ["G", "PRI ", "PRI * HTTP/1"] {
            let mut heads = Heads::new();
            heads.read(begin.as_bytes());
            assert_eq!(heads.read(b"/ HTTP/1.1\r\n"), Owed::Rest);
            assert!(matches!(heads, Heads::Http1), "{begin}");
        }
    }
}
