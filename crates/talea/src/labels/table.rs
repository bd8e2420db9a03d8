//! Texts by number and numbers by text: a hash table that is built once and then
//! only read.
//!
//! The main cost of a look-up is a mispredicted branch: the routes of a service come in any order
//! and length. So all texts of 8 to 32 bytes take the same path, of four loads that overlap if a
//! text is short:
//!
//! ```text
//!   /api/v1/users/:id          17 bytes
//!   ├──0───┤├──1───┤           from the beginning
//!    ├──2───┤├──3───┤          to the end
//! ```
//!
//! These four words and the length determine such a text. A slot holds them, so the comparison
//! reads only the slot. A longer text is compared as a whole when its first and last 16 bytes
//! agree.

use std::collections::HashSet;
use std::num::NonZeroU32;

/// A place in a set: its number and 1, so that an `Option` of it takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member(NonZeroU32);

impl Member {
    /// The number is below [`Table::MAX`].
    pub(super) fn nth(n: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(n as u32))
    }

    #[inline]
    pub(super) fn number(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Debug)]
pub(super) struct Table {
    values: Box<[Value]>,
    hasher: Hasher,
    /// A power of two of them, at least half of them free.
    slots: Box<[Slot]>,
}

#[derive(Debug)]
struct Value {
    text: Box<str>,
    escaped: Box<str>,
}

// A cache line each, which are found without a multiplication.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Slot {
    key: Key,
    /// `None` if the slot is free.
    member: Option<Member>,
}

impl Table {
    pub(super) const MAX: usize = 1 << 16;

    /// Seeds that are tried for one by which no two texts collide. A table with
    /// many texts has none; then the best of those is used.
    const TRIES: u64 = 64;
    /// So many texts are hashed to choose a seed, at most: some milliseconds.
    const HASHES: u64 = 1 << 18;

    /// The reason why the texts cannot be a set, if they cannot.
    pub(super) fn new(texts: Vec<String>) -> Result<Self, String> {
        if texts.is_empty() {
            return Err("found no values; expected at least one".to_owned());
        }
        if texts.len() > Self::MAX {
            return Err(format!("found {} values; expected at most {}", texts.len(), Self::MAX));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = texts.iter().find(|text| !seen.insert(text.as_str())) {
            return Err(format!("found the value {twice:?} twice; expected each once"));
        }
        let keys: Vec<Key> = texts.iter().map(|text| Key::of(text.as_bytes())).collect();
        // With few texts, a wide table makes it likely that none collide.
        let room = if texts.len() <= 64 { 4 } else { 2 } * texts.len();
        let mut slots = vec![Slot { key: Key::NONE, member: None }; room.next_power_of_two()];
        let tries = (Self::HASHES / texts.len() as u64).clamp(1, Self::TRIES);
        let hasher = best_hasher(tries, slots.len(), &texts, &keys);
        for (n, (text, key)) in texts.iter().zip(keys).enumerate() {
            let mut at = hasher.slot(&key, text.as_bytes());
            while slots[at].member.is_some() {
                at = (at + 1) % slots.len();
            }
            slots[at] = Slot { key, member: Some(Member::nth(n)) };
        }
        let values = texts
            .into_iter()
            .map(|text: String| Value {
                escaped: text
                    .replace('\\', r"\\")
                    .replace('"', r#"\""#)
                    .replace('\n', r"\n")
                    .into(),
                text: text.into(),
            })
            .collect();
        Ok(Self { values, hasher, slots: slots.into() })
    }

    /// The text's number. Without a collision it is in the first slot.
    #[inline]
    pub(super) fn find(&self, text: &str) -> Option<Member> {
        let text = text.as_bytes();
        let Some(key) = Key::of_usual(text) else { return self.search(text) };
        let slot = self.slots.get(self.hasher.slot_of_ends(&key))?;
        // A free slot means that there is no such text, and no member.
        if slot.key == key || slot.member.is_none() {
            return slot.member;
        }
        self.search(text)
    }

    /// Finds a text of any length, wherever it is. Out of line, so that the rest is
    /// short enough to stand where it is called.
    #[inline(never)]
    fn search(&self, text: &[u8]) -> Option<Member> {
        let key = Key::of(text);
        let mut at = self.hasher.slot(&key, text);
        loop {
            // There is always a free slot to end at.
            let slot = self.slots.get(at & self.slots.len().wrapping_sub(1))?;
            let member = slot.member?;
            if slot.key == key && (text.len() <= WHOLE || self.text(member).as_bytes() == text) {
                return Some(member);
            }
            at += 1;
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn text(&self, member: Member) -> &str {
        self.values.get(member.number()).map_or("", |value| &value.text)
    }

    #[inline]
    pub(super) fn escaped(&self, n: usize) -> &str {
        self.values.get(n).map_or("", |value| &value.escaped)
    }

    pub(super) fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(|value| &*value.text)
    }
}

/// The one by which the fewest texts have the slot of another.
fn best_hasher(tries: u64, slots: usize, texts: &[String], keys: &[Key]) -> Hasher {
    let mut best = (usize::MAX, 0);
    for seed in 1..=tries {
        let hasher = Hasher::new(seed, slots);
        let mut taken = vec![false; slots];
        let places = texts.iter().zip(keys).map(|(text, key)| hasher.slot(key, text.as_bytes()));
        let collisions = places.filter(|&at| std::mem::replace(&mut taken[at], true)).count();
        best = best.min((collisions, seed));
        if best.0 == 0 {
            break;
        }
    }
    Hasher::new(best.1, slots)
}

/// The slot in which the search for a text begins: the first bits of a sum of products of its
/// words, two by two, with factors that are chosen by trial. (Multiply-shift hashing of a vector;
/// it takes few instructions, and the products do not wait for each other.)
#[derive(Debug)]
struct Hasher {
    factors: [u64; 2],
    /// By how much a sum is shifted for the number of a slot.
    shift: u32,
}

impl Hasher {
    /// For a number of slots, which is a power of two and at least 2.
    fn new(seed: u64, slots: usize) -> Self {
        Self {
            factors: [0, 1].map(|n: u64| fold(seed.wrapping_mul(MIX[0]) ^ n, MIX[1] ^ n << 32) | 1),
            shift: 64 - slots.ilog2(),
        }
    }

    #[inline]
    fn slot_of_ends(&self, key: &Key) -> usize {
        (self.ends(key) >> self.shift) as usize
    }

    fn slot(&self, key: &Key, text: &[u8]) -> usize {
        let ends = self.ends(key);
        let hash = if text.len() <= WHOLE { ends } else { middle(text, ends) };
        (hash >> self.shift) as usize
    }

    #[inline]
    fn ends(&self, key: &Key) -> u64 {
        let [a, b] = self.factors;
        let [first, second, third, last] = key.words;
        // Sums, since of a short text the first is the third and the second the last.
        let (one, other) = (first.wrapping_add(third), second.wrapping_add(last));
        one.wrapping_mul(a).wrapping_add(other.wrapping_mul(b))
    }
}

/// Texts up to this length are compared by their keys alone.
const WHOLE: usize = 32;

/// Numbers whose bits look random: the fractions of the square roots of 2, 3 and 7.
const MIX: [u64; 3] = [0x6A09_E667_F3BC_C909, 0xBB67_AE85_84CA_A73B, 0xA54F_F53A_5F1D_36F1];

/// A text's length, its first and its last 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Key {
    words: [u64; 4],
    len: u32,
}

impl PartialEq for Key {
    /// One branch for all words: a branch for each could not be predicted.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let [a, b, c, d] = self.words;
        let [e, f, g, h] = other.words;
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) | u64::from(self.len ^ other.len) == 0
    }
}

impl Key {
    /// The key of a free slot. The empty text has it too, and finds no member there.
    const NONE: Self = Self { words: [0; 4], len: 0 };

    /// For a text of more than a word that its key holds whole.
    #[inline]
    fn of_usual(text: &[u8]) -> Option<Self> {
        (8..=WHOLE).contains(&text.len()).then(|| Self::of_ends(text))
    }

    fn of(text: &[u8]) -> Self {
        if text.len() >= 8 {
            return Self::of_ends(text);
        }
        Self { words: [short(text), 0, 0, 0], len: text.len() as u32 }
    }

    /// For a text of at least 8 bytes.
    #[inline]
    fn of_ends(text: &[u8]) -> Self {
        let last = text.len().wrapping_sub(8);
        let starts = [0, last.min(8), last.saturating_sub(8), last];
        // Beyond 4 GiB the length does not fit; long texts are compared as a whole.
        Self { words: starts.map(|at| word(text, at)), len: text.len() as u32 }
    }
}

/// Hashes the bytes between the ends of a long text.
fn middle(text: &[u8], ends: u64) -> u64 {
    text.chunks_exact(8).fold(ends, |hash, chunk| {
        fold(hash ^ chunk.first_chunk().copied().map_or(0, u64::from_le_bytes), MIX[2])
    })
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// All of a text of less than 8 bytes, as two parts that overlap or one of three
/// bytes.
#[inline]
pub(super) fn short(text: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
    }
    let byte = |at| text.get(at).copied().map_or(0, u64::from);
    byte(0) << 16 | byte(1) << 8 | byte(2)
}

/// The eight bytes at a place that is followed by at least eight.
#[inline]
pub(super) fn word(text: &[u8], at: usize) -> u64 {
    let bytes = text.get(at..).and_then(<[u8]>::first_chunk);
    bytes.copied().map_or(0, u64::from_le_bytes)
}
