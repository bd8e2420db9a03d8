//! Counts the messages in a body: each has a prefix of five bytes, a flag and the length.

use talea::Counter;

const PREFIX: u8 = 5;

/// Counts messages as the bytes of a body pass, in pieces of any size.
#[derive(Debug)]
pub(super) struct MessageCount {
    counter: Option<&'static Counter>,
    /// The bytes of the prefix that passed, and the length as far as they state it.
    prefix: u8,
    length: u32,
    /// The bytes of the message that have not passed yet.
    left: u32,
}

impl MessageCount {
    pub(super) fn new(counter: Option<&'static Counter>) -> Self {
        Self { counter, prefix: 0, length: 0, left: 0 }
    }

    /// Counts the messages that end within these bytes.
    #[inline]
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        let Some(counter) = self.counter else { return };
        let ended = self.ended(bytes);
        if ended > 0 {
            counter.add(ended);
        }
    }

    fn ended(&mut self, mut bytes: &[u8]) -> u64 {
        let mut ended = 0;
        while let Some((&first, rest)) = bytes.split_first() {
            if self.left > 0 {
                let passed = bytes.len().min(self.left as usize);
                bytes = &bytes[passed..];
                self.left -= passed as u32;
                ended += u64::from(self.left == 0);
                continue;
            }
            bytes = rest;
            // The flag is shifted out by the length.
            self.length = self.length << 8 | u32::from(first);
            self.prefix += 1;
            if self.prefix == PREFIX {
                self.prefix = 0;
                self.left = self.length;
                ended += u64::from(self.left == 0);
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flag: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![flag];
        bytes.extend((length as u32).to_be_bytes());
        bytes.resize(bytes.len() + length, 0xff);
        bytes
    }

    #[test]
    fn messages_are_counted_in_pieces_of_any_size() {
        let lengths = [0, 1, 4, 5, 300, 0, 70_000];
        let bytes: Vec<u8> =
            lengths.iter().flat_map(|&length| message((length % 2) as u8, length)).collect();
        for size in [1, 2, 3, 4, 5, 6, 7, 300, 1 << 20] {
            let mut count = MessageCount::new(None);
            let ended: u64 = bytes.chunks(size).map(|piece| count.ended(piece)).sum();
            assert_eq!(ended, lengths.len() as u64, "pieces of {size}");
        }
    }

    #[test]
    fn a_message_that_is_cut_off_is_not_counted() {
        let whole = message(0, 10);
        for cut in 0..whole.len() {
            assert_eq!(MessageCount::new(None).ended(&whole[..cut]), 0, "{cut}");
        }
        // The longest length does not overflow.
        let mut endless = MessageCount::new(None);
        assert_eq!(endless.ended(&[0xff; 5]), 0);
        assert_eq!(endless.ended(&[0xff; 1000]), 0);
    }
}
