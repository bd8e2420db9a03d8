//! The hash of names and label texts: part of the layout, so that every
//! process and every language finds the same place.
//!
//! It folds two words at a time by a 64×64→128 bit multiply, as wyhash and its
//! kin do. It resists accidents, not attackers: every user who can read a region
//! can read its seed.

const K: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

/// The hash of `text` within `domain` (a family's number, or the name space of
/// families).
#[inline]
pub(crate) fn hash(seed: u64, domain: u64, text: &[u8]) -> u64 {
    let mut state = fold(seed ^ K[0], domain ^ (text.len() as u64).rotate_right(24) ^ K[1]);
    let mut pairs = text.chunks_exact(16);
    for pair in &mut pairs {
        state = fold(state ^ word(&pair[..8]), K[1] ^ word(&pair[8..]));
    }
    // The rest is a whole word, a part of one, or both.
    let rest = pairs.remainder();
    if !rest.is_empty() {
        let (first, second) = match rest.len() {
            n @ 8.. => (word(&rest[..8]), if n > 8 { last_word(text) } else { 0 }),
            _ => (last_word(text), 0),
        };
        state = fold(state ^ first, K[1] ^ second);
    }
    fold(state ^ K[0], K[1])
}

/// The hash of a text as the arena stores it: its length and its words, the last one padded with
/// zeros.
pub(crate) fn hash_of_words(
    seed: u64,
    domain: u64,
    len: u64,
    mut words: impl Iterator<Item = u64>,
) -> u64 {
    let mut state = fold(seed ^ K[0], domain ^ len.rotate_right(24) ^ K[1]);
    while let Some(first) = words.next() {
        state = fold(state ^ first, K[1] ^ words.next().unwrap_or(0));
    }
    fold(state ^ K[0], K[1])
}

/// Eight bytes as a little-endian word.
#[inline]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// The end of a text whose length is no multiple of eight, as a word padded with
/// zeros: how the arena stores it.
#[inline]
pub(crate) fn last_word(text: &[u8]) -> u64 {
    let over = text.len() % 8;
    match text.last_chunk::<8>() {
        // The last eight bytes, less those of the word before: no copy of an odd
        // length, which would cost more than all the rest.
        Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * over as u32),
        None => text.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// A text in words, as the arena stores it.
pub(crate) fn words_of(text: &[u8]) -> impl Iterator<Item = u64> + Clone {
    let whole = text.chunks_exact(8);
    let rest = (!whole.remainder().is_empty()).then(|| last_word(text));
    whole.map(word).chain(rest)
}

#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn near_texts_and_domains_spread_over_the_low_and_the_high_bits() {
        let (mut low, mut high) = (HashSet::new(), HashSet::new());
        for n in 0..10_000u64 {
            let h = hash(7, n % 3, format!("id=\"{n}\"").as_bytes());
            low.insert(h & 0xF_FFFF);
            high.insert(h >> 44);
        }
        // 10,000 balls in 2^20 bins leave about 9,950 bins hit.
        assert!(low.len() > 9_850 && high.len() > 9_850, "{} {}", low.len(), high.len());
    }

    #[test]
    fn every_byte_of_a_text_of_any_length_counts() {
        let mut seen = HashSet::new();
        for len in 0..50 {
            let text = vec![b'x'; len];
            assert!(seen.insert(hash(1, 0, &text)), "length {len}");
            for at in 0..len {
                let mut other = text.clone();
                other[at] = b'y';
                assert!(seen.insert(hash(1, 0, &other)), "length {len}, byte {at}");
            }
        }
    }

    #[test]
    fn trailing_zeros_the_seed_and_the_domain_count() {
        let all: HashSet<u64> = [
            hash(1, 0, b""),
            hash(1, 0, b"\0"),
            hash(1, 0, b"\0\0"),
            hash(1, 1, b""),
            hash(2, 0, b""),
        ]
        .into();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn a_text_and_its_words_which_are_padded_with_zeros_have_one_hash() {
        let text = b"method=\"GET\",route=\"/api/items/{id}\"";
        for len in 0..text.len() {
            let text = &text[..len];
            let words = text.chunks(8).map(|part| {
                let mut word = [0; 8];
                word[..part.len()].copy_from_slice(part);
                u64::from_le_bytes(word)
            });
            assert!(words_of(text).eq(words.clone()), "{len}");
            assert_eq!(hash_of_words(5, 6, len as u64, words), hash(5, 6, text), "{len}");
        }
    }
}
