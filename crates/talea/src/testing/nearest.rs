//! The families and series nearest to one that does not exist. Only failing assertions use it, so
//! it may be slow.

use std::cmp::Reverse;

use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot};

/// All families: first those whose name contains the asked one, or of which that may be a
/// sample, then by how much the names have in common.
pub(crate) fn families<'a>(snapshot: &'a Snapshot, asked: &str) -> Vec<FamilySnapshot<'a>> {
    let mut families: Vec<_> = snapshot.families().collect();
    families.sort_by_cached_key(|family| {
        let name = family.name();
        let is_sample = asked.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
        Reverse((name.contains(asked) || is_sample, likeness(name, asked)))
    });
    families
}

/// All series of a family: those with most of the asked labels first, then those with most of the
/// label names, then those whose values have the longest common beginning.
pub(crate) fn series<'a>(
    family: FamilySnapshot<'a>,
    asked: &[(&str, &str)],
) -> Vec<SeriesSnapshot<'a>> {
    let mut series: Vec<_> = family.series().collect();
    series.sort_by_cached_key(|series| {
        let labels = series.labels();
        let (mut equal, mut named, mut alike) = (0, 0, 0);
        for (name, wanted) in asked {
            let Some((_, found)) = labels.iter().find(|(n, _)| n == name) else { continue };
            named += 1;
            match found == wanted {
                true => equal += 1,
                false => alike += common_prefix(found, wanted),
            }
        }
        Reverse((equal, named, alike))
    });
    series
}

/// How many of a thousand characters two names have in common, in order. A share
/// rather than an edit distance, by which a short name is near to everything.
fn likeness(a: &str, b: &str) -> usize {
    2000 * common_subsequence(a, b) / (a.len() + b.len()).max(1)
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// The length of the longest common subsequence, in bytes.
fn common_subsequence(a: &str, b: &str) -> usize {
    // Entry n: the length for what of `a` is done and the first n bytes of `b`.
    let mut lengths = vec![0; b.len() + 1];
    for a in a.bytes() {
        let mut diagonal = 0;
        for (n, b) in b.bytes().enumerate() {
            let above = lengths[n + 1];
            lengths[n + 1] = if a == b { diagonal + 1 } else { above.max(lengths[n]) };
            diagonal = above;
        }
    }
    lengths[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_subsequence_may_have_gaps_but_keeps_its_order() {
        for (a, b, length) in [
            ("", "", 0),
            ("", "abc", 0),
            ("abc", "abc", 3),
            ("abc", "cba", 1),
            ("orders", "ordres", 5),
            ("a_b_c", "abc", 3),
            ("abcbdab", "bdcaba", 4),
        ] {
            assert_eq!(common_subsequence(a, b), length, "{a} {b}");
            assert_eq!(common_subsequence(b, a), length, "{b} {a}");
        }
    }

    #[test]
    fn a_short_name_is_not_near_to_everything() {
        let asked = "shop_ordres_total";
        let near = ["shop_orders_total", "shop_errors_total", "http_request_duration_seconds", "a"];
        assert!(near.map(|name| likeness(name, asked)).is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn prefixes_are_counted_in_characters() {
        assert_eq!(common_prefix("düne", "dürr"), 2);
        assert_eq!(common_prefix("", "x"), 0);
    }
}
