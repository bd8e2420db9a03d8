//! Native buckets as runs: how formats for Prometheus have them.

/// So many empty buckets cost less in a run than another run.
const BRIDGED: i32 = 2;

/// The buckets of one side. Those that lie next to each other are a span.
#[derive(Clone, Debug, Default)]
pub(super) struct NativeSpans {
    /// Where each span begins (the first), or how far behind the one before (the others), and its length.
    pub(super) spans: Vec<(i32, u32)>,
    /// What the buckets of all spans hold.
    pub(super) counts: Vec<u64>,
}

impl NativeSpans {
    /// Takes buckets in the order of their numbers.
    pub(super) fn fill(&mut self, buckets: &[(i32, u64)]) {
        self.spans.clear();
        self.counts.clear();
        let Some(&(first, _)) = buckets.first() else { return };
        let (mut offset, mut from, mut end) = (first, first, first);
        for &(bucket, count) in buckets {
            if bucket.saturating_sub(end) > BRIDGED {
                self.spans.push((offset, (end - from) as u32));
                (offset, from) = (bucket - end, bucket);
            } else {
                self.counts.extend((end..bucket).map(|_| 0));
            }
            self.counts.push(count);
            end = bucket + 1;
        }
        self.spans.push((offset, (end - from) as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_buckets_are_one_span() {
        for (buckets, spans, counts) in [
            (&[][..], &[][..], &[][..]),
            (&[(-3, 7)], &[(-3, 1)], &[7]),
            (&[(0, 1), (1, 2)], &[(0, 2)], &[1, 2]),
            (&[(0, 1), (3, 2)], &[(0, 4)], &[1, 0, 0, 2]),
            (&[(0, 1), (4, 2), (5, 3)], &[(0, 1), (3, 2)], &[1, 2, 3]),
        ] {
            let mut found = NativeSpans::default();
            found.fill(buckets);
            assert_eq!((&*found.spans, &*found.counts), (spans, counts), "{buckets:?}");
        }
    }
}
