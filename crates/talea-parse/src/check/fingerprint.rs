//! Fingerprints of series, which take the same memory however long the labels are.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

/// Two hashes. Equal ones are taken for the same series: of a million series, two different ones
/// are equal with a probability of 10^-27.
pub(super) type Fingerprint = [u64; 2];

/// A name and its value.
pub(super) type Label<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Takes fingerprints, with random keys: no text can be written so that its series collide.
#[derive(Debug, Default)]
pub(super) struct Fingerprints([RandomState; 2]);

impl Fingerprints {
    /// The fingerprint of a name and labels, which are in some order of their own.
    pub(super) fn of<'a, 'b: 'a>(
        &self,
        name: &str,
        labels: impl Iterator<Item = &'a Label<'b>> + Clone,
    ) -> Fingerprint {
        self.0.each_ref().map(|keys| {
            let mut hasher = keys.build_hasher();
            // Each text is hashed with its end, so that no two sequences look alike.
            name.hash(&mut hasher);
            labels.clone().for_each(|label| label.hash(&mut hasher));
            hasher.finish()
        })
    }
}
