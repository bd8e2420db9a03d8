//! The hash of names and label texts: part of the layout, so that every
//! process and every language finds the same place.
//!
//! It folds one word at a time by a 64×64→128 bit multiply, as wyhash and its
//! kin do. It resists accidents, not attackers: a region's seed is readable by
//! whoever can read the region.

const K: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

/// The hash of `text` within `domain` (a family's number, or the name space of
/// families).
pub(crate) fn hash(seed: u64, domain: u64, text: &[u8]) -> u64 {
    let mut state = fold(seed ^ K[0], domain ^ (text.len() as u64).rotate_right(24) ^ K[1]);
    let mut chunks = text.chunks_exact(8);
    for chunk in &mut chunks {
        state = fold(state ^ word(chunk), K[1]);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        state = fold(state ^ word(rest), K[1]);
    }
    fold(state ^ K[0], K[1])
}

/// Up to eight bytes as a little-endian word, padded with zeros: how the arena
/// stores text.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    if let Ok(whole) = bytes.try_into() {
        return u64::from_le_bytes(whole);
    }
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}

fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

#[cfg(test)]
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
    fn trailing_zeros_and_the_domain_count() {
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
}
