//! Whether the bytes that a client has sent end within something that it owes the rest of: the
//! head of a request, or a frame of HTTP/2.

/// How every connection of HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// What was read so far, as far as it matters.
#[derive(Debug)]
pub(super) enum Heads {
    /// So many bytes of the preface, and nothing else.
    Unknown(usize),
    /// HTTP/1: whatever comes while nothing is answered is a head.
    Http1,
    /// HTTP/2.
    Http2(Frames),
}

/// Where in its frames a client is.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The nine bytes that begin a frame, and how many of them are there.
    start: [u8; 9],
    started: usize,
    /// What is missing of the frame's payload.
    payload: u32,
    /// Whether header blocks are open, which other frames go on with.
    block: bool,
}

impl Heads {
    pub(super) fn new() -> Self {
        Self::Unknown(0)
    }

    /// Takes what was read. Whether the client owes the rest of something.
    pub(super) fn read(&mut self, bytes: &[u8]) -> bool {
        match self {
            Self::Unknown(matched) => {
                let wanted = &PREFACE[*matched..];
                let common = wanted.len().min(bytes.len());
                if bytes[..common] != wanted[..common] {
                    *self = Self::Http1;
                    return true;
                }
                *matched += common;
                if common < wanted.len() {
                    return *matched > 0;
                }
                *self = Self::Http2(Frames::default());
                self.read(&bytes[common..])
            }
            Self::Http1 => true,
            Self::Http2(frames) => frames.read(bytes),
        }
    }
}

impl Frames {
    fn read(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let taken = bytes.len().min(self.payload as usize);
                // At most the payload, which is a u32.
                self.payload -= taken as u32;
                bytes = &bytes[taken..];
                continue;
            }
            let taken = bytes.len().min(self.start.len() - self.started);
            self.start[self.started..self.started + taken].copy_from_slice(&bytes[..taken]);
            self.started += taken;
            bytes = &bytes[taken..];
            if self.started == self.start.len() {
                self.started = 0;
                self.begin();
            }
        }
        self.started > 0 || self.payload > 0 || self.block
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
        assert!(!heads.read(&[PREFACE, SETTINGS].concat()));
        assert!(!heads.read(SETTINGS));
    }

    #[test]
    fn it_owes_the_rest_of_a_frame_and_of_a_header_block() {
        for at in 1..PREFACE.len() {
            let mut heads = Heads::new();
            assert!(heads.read(&PREFACE[..at]), "{at}");
            assert!(!heads.read(&PREFACE[at..]), "{at}");
        }
        let mut heads = Heads::new();
        assert!(!heads.read(PREFACE));
        assert!(heads.read(&SETTINGS[..4]));
        assert!(!heads.read(&SETTINGS[4..]));
        assert!(heads.read(&[0, 0, 2, HEADERS, 0, 0, 0, 0, 1, 7]));
        assert!(heads.read(&[7]), "the block goes on");
        assert!(heads.read(&[0, 0, 1, CONTINUATION, END_HEADERS, 0, 0, 0, 1]));
        assert!(!heads.read(&[7]));
    }

    #[test]
    fn whatever_else_comes_is_a_head_of_http_1() {
        let mut heads = Heads::new();
        assert!(heads.read(b"PRI "));
        assert!(heads.read(b"/ HTTP/1.1\r\n"));
        assert!(matches!(heads, Heads::Http1));
        assert!(matches!(
            {
                let mut heads = Heads::new();
                heads.read(b"G");
                heads
            },
            Heads::Http1
        ));
    }
}
