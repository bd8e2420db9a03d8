//! Native buckets as spans and differences.

use super::message::BucketSpan;

/// The most empty buckets in a row that a span goes over: they cost less there than another span.
const BRIDGED: i64 = 2;

/// The spans of buckets that ascend, and the difference of each count from the one before.
pub(super) fn spans(buckets: &[(i32, u64)]) -> (Vec<BucketSpan>, Vec<i64>) {
    let (mut spans, mut deltas): (Vec<BucketSpan>, Vec<i64>) = Default::default();
    let (mut end, mut before) = (0_i32, 0_i64);
    for &(index, count) in buckets {
        let gap = i64::from(index) - i64::from(end);
        match spans.last_mut() {
            Some(span) if gap <= BRIDGED => {
                for _ in 0..gap {
                    deltas.push(-before);
                    before = 0;
                }
                span.length += gap as u32 + 1;
            }
            // The first begins at its index, another so far behind the one before.
            _ => spans.push(BucketSpan { offset: gap as i32, length: 1 }),
        }
        deltas.push((count as i64).wrapping_sub(before));
        (end, before) = (index.saturating_add(1), count as i64);
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_bridge_two_empty_buckets_and_no_more() {
        for (buckets, expected_spans, expected_deltas) in [
            (&[][..], &[][..], &[][..]),
            (&[(-3, 5)], &[(-3, 1)], &[5]),
            (&[(0, 1), (1, 3)], &[(0, 2)], &[1, 2]),
            (&[(0, 1), (3, 4)], &[(0, 4)], &[1, -1, 0, 4]),
            (&[(0, 1), (4, 4)], &[(0, 1), (3, 1)], &[1, 3]),
            (&[(-2, 2), (7, 1), (8, 2)], &[(-2, 1), (8, 2)], &[2, -1, 1]),
        ] {
            let (spans, deltas) = spans(buckets);
            let spans: Vec<_> = spans.iter().map(|span| (span.offset, span.length)).collect();
            assert_eq!((&spans[..], &deltas[..]), (expected_spans, expected_deltas), "{buckets:?}");
        }
    }
}
