//! Finds the ends of names and values, eight bytes at a time if they are long.

const LOW: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// A bit in each byte that is `byte`; above the first of them there can be others.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    let x = word ^ (LOW * u64::from(byte));
    x.wrapping_sub(LOW) & !x & HIGH
}

/// The number of bytes before the first that is one of three; all if no byte is.
#[inline]
fn before(bytes: &[u8], any: [u8; 3]) -> usize {
    let mut rest = bytes;
    while let Some((chunk, more)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let found = equal(word, any[0]) | equal(word, any[1]) | equal(word, any[2]);
        if found != 0 {
            return bytes.len() - rest.len() + found.trailing_zeros() as usize / 8;
        }
        rest = more;
    }
    let tail = rest.iter().position(|byte| any.contains(byte)).unwrap_or(rest.len());
    bytes.len() - rest.len() + tail
}

/// How much of quoted text stands before its next quote, backslash or line end.
#[inline]
pub(super) fn before_quote(bytes: &[u8]) -> usize {
    before(bytes, *b"\"\\\n")
}

/// How long a label's name is that is known to be one.
#[inline]
pub(super) fn before_equals(bytes: &[u8]) -> usize {
    before(bytes, *b"= \t")
}

/// How much stands before the line's end.
#[inline]
pub(super) fn before_line_end(bytes: &[u8]) -> usize {
    before(bytes, *b"\n\n\n")
}

/// How many blanks and tabs stand at the beginning.
#[inline]
pub(super) fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(bytes.len())
}

/// How many NULs stand at the beginning.
#[inline]
pub(super) fn nuls(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len())
}

/// How much stands before the next blank or the line's end.
#[inline]
pub(super) fn word(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n')).unwrap_or(bytes.len())
}

const OTHER: u8 = 0;
const DIGIT: u8 = 1;
const LETTER: u8 = 2;
const COLON: u8 = 3;

const CLASSES: [u8; 256] = {
    let mut classes = [OTHER; 256];
    let mut n = 0;
    while n < 256 {
        let byte = n as u8;
        if byte.is_ascii_digit() {
            classes[n] = DIGIT;
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            classes[n] = LETTER;
        } else if byte == b':' {
            classes[n] = COLON;
        }
        n += 1;
    }
    classes
};

/// The length of the metric's name at the beginning; 0 if there is no name.
#[inline]
pub(super) fn metric_name(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(&first) if CLASSES[usize::from(first)] >= LETTER => {}
        _ => return 0,
    }
    unit(bytes)
}

/// The length of the unit at the beginning, which may start with a digit.
#[inline]
pub(super) fn unit(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte: &u8| CLASSES[usize::from(*byte)] == OTHER).unwrap_or(bytes.len())
}

/// The length of the label's name at the beginning; it has no colons.
#[inline]
pub(super) fn label_name(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(&first) if CLASSES[usize::from(first)] == LETTER => {}
        _ => return 0,
    }
    bytes
        .iter()
        .position(|byte: &u8| matches!(CLASSES[usize::from(*byte)], OTHER | COLON))
        .unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_them_is_found_wherever_it_stands() {
        for len in 0..40 {
            for at in 0..=len {
                let mut text = vec![b'!'; len];
                if at < len {
                    text[at] = b'"';
                    // Neither the bytes after it nor bytes that nearly match matter.
                    text[at + 1..].fill(b'\\');
                    text[..at].fill(b'#');
                }
                assert_eq!(before_quote(&text), at);
            }
        }
        assert_eq!(before_line_end("äöü€\u{8a}\nx".as_bytes()), 11);
    }

    #[test]
    fn names_end_where_they_must() {
        for (text, metric, label) in [
            ("a:b1 1", 4, 1),
            ("_x{", 2, 2),
            ("9x", 0, 0),
            (":x", 2, 0),
            ("ä", 0, 0),
            ("", 0, 0),
            ("abc", 3, 3),
        ] {
            assert_eq!(metric_name(text.as_bytes()), metric, "{text}");
            assert_eq!(label_name(text.as_bytes()), label, "{text}");
        }
    }
}
