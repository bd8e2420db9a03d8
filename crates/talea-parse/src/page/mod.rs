//! Pages of services, in the types of talea-page.

#[cfg(feature = "protobuf")]
mod protobuf;
mod text;

use std::fmt;

use talea_page::{Bucket, Family, Histogram};

use super::{ParseError, Syntax};

/// The first bytes of what gzip compressed. Source: RFC 1952, section 2.3.1.
const GZIP: &[u8] = &[0x1F, 0x8B];

/// The families of a page in Prometheus' text format or in OpenMetrics; with the feature `protobuf`
/// also in Prometheus' protobuf format, as messages that each follow their length.
///
/// A page by anybody is read as far as it makes sense: native buckets whose numbers leave the range
/// of their type are left out, and counts that are not whole or below zero are rounded down or 0.
/// Cost: memory and time linear in the page.
///
/// ```
/// use talea_page::Kind;
///
/// let text = "# TYPE wait histogram\nwait_bucket{le=\"1\"} 2\nwait_bucket{le=\"+Inf\"} 3\nwait_count 3\n";
/// let families = talea_parse::page(text.as_bytes())?;
/// assert_eq!((families[0].name.as_str(), families[0].kind), ("wait", Kind::Histogram));
/// let wait = families[0].series[0].value.histogram().unwrap();
/// assert_eq!((wait.count, wait.classic[0].cumulative_count), (3, 2));
/// # Ok::<(), talea_parse::PageError>(())
/// ```
///
/// # Errors
/// The page has none of these formats. The error names the first departure from the text format.
pub fn page(page: &[u8]) -> Result<Vec<Family>, PageError> {
    #[cfg(feature = "protobuf")]
    if let Some(families) = protobuf::families(page) {
        return Ok(families);
    }
    let text = utf8(page)?;
    text::families(text, Syntax::of_text(text)).map_err(PageError::Text)
}

/// A page as text.
///
/// # Errors
/// The page is compressed, or not UTF-8.
pub fn utf8(page: &[u8]) -> Result<&str, PageError> {
    if page.starts_with(GZIP) {
        return Err(PageError::Compressed);
    }
    std::str::from_utf8(page).map_err(|error| {
        let valid = &page[..error.valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        PageError::NotUtf8 { line, byte: page[valid.len()] }
    })
}

/// The reason why a page cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageError {
    /// It is compressed with gzip.
    Compressed,
    /// It is not UTF-8, and so not a text.
    NotUtf8 {
        /// The number of the line, from 1.
        line: usize,
        /// The byte that was found there.
        byte: u8,
    },
    /// It is not of the text format that it looks like.
    Text(ParseError),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compressed => f.write_str(
                "the page is compressed with gzip, though nothing asked for that, and a text of \
                 metrics is expected: decompress the file, or have the service compress only if it \
                 is asked to",
            ),
            Self::NotUtf8 { line, byte } => write!(
                f,
                "the page is neither protobuf nor text: line {line} is not UTF-8, found the byte \
                 {byte:#04x}"
            ),
            Self::Text(error) => {
                write!(f, "the page is neither protobuf nor a text of metrics: {error}")
            }
        }
    }
}

impl std::error::Error for PageError {}

/// A count that a page has as a float.
fn count_of(value: f64) -> u64 {
    // Rounds down, and makes NaN and what is below zero 0.
    value as u64
}

/// Makes +Inf the last classic bucket, with all observations if it was missing.
fn close(histogram: &mut Histogram) {
    let buckets = &mut histogram.classic;
    buckets.sort_by(|one, other| one.upper_bound.total_cmp(&other.upper_bound));
    if buckets.last().is_none_or(|last| last.upper_bound < f64::INFINITY) {
        let (upper_bound, cumulative_count) = (f64::INFINITY, histogram.count);
        buckets.push(Bucket { upper_bound, cumulative_count, exemplar: None });
    }
}

#[cfg(test)]
mod tests {
    use talea_page::Kind;

    use super::*;

    fn read(text: &str) -> Vec<Family> {
        page(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn one(text: &str) -> Histogram {
        read(text)[0].series[0].value.histogram().expect("a histogram").clone()
    }

    #[test]
    fn what_is_no_page_is_an_error_that_says_what_was_found() {
        for (page, expected) in [
            (&b"<html>"[..], "neither protobuf nor a text of metrics: line 1, column 1: expected"),
            (b"\x05abc", "neither protobuf nor a text of metrics: line 1"),
            (&[0xFF; 40], "line 1 is not UTF-8, found the byte 0xff"),
            (b"a 1\nb\xFE 2\n", "line 2 is not UTF-8, found the byte 0xfe"),
            (b"\x1F\x8B\x08", "compressed with gzip"),
        ] {
            let error = super::page(page).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(super::page(b""), Ok(Vec::new()));
    }

    #[test]
    fn names_are_as_samples_have_them() {
        for (text, name, kind) in [
            ("# TYPE a counter\na 1\n", "a", Kind::Counter),
            ("# TYPE a_total counter\na_total 1\n", "a_total", Kind::Counter),
            ("# TYPE a counter\na_total 1\n# EOF\n", "a_total", Kind::Counter),
            ("# TYPE a info\na_info{b=\"c\"} 1\n# EOF\n", "a_info", Kind::Info),
            ("# TYPE a stateset\na{a=\"b\"} 1\n# EOF\n", "a", Kind::StateSet),
            ("# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\n", "a", Kind::Histogram),
            ("# TYPE a summary\na_count 1\n", "a", Kind::Summary),
            ("# TYPE a gaugehistogram\na_gcount 1\n# EOF\n", "a", Kind::GaugeHistogram),
            ("a_total 1\n", "a_total", Kind::Unknown),
        ] {
            let families = read(text);
            assert_eq!((families[0].name.as_str(), families[0].kind), (name, kind), "{text}");
            assert_eq!((families.len(), families[0].series.len()), (1, 1), "{text}");
        }
    }

    #[test]
    fn buckets_are_closed_whatever_is_missing() {
        let all = f64::INFINITY;
        for (samples, count, expected) in [
            ("a_bucket{le=\"1\"} 2\na_count 3\n", 3, vec![(1.0, 2), (all, 3)]),
            ("a_bucket{le=\"+Inf\"} 3\na_bucket{le=\"1\"} 2\n", 3, vec![(1.0, 2), (all, 3)]),
            ("a_count 3\n", 3, vec![(all, 3)]),
            ("a_sum 3\n", 0, vec![(all, 0)]),
            ("a_bucket{le=\"x\"} 1\na_bucket{le=\"NaN\"} 1\na_count 1\n", 1, vec![(all, 1)]),
            ("a_count -4\n", 0, vec![(all, 0)]),
            ("a_count 1e300\n", u64::MAX, vec![(all, u64::MAX)]),
            ("a_count NaN\n", 0, vec![(all, 0)]),
            ("a_count 2.9\n", 2, vec![(all, 2)]),
        ] {
            let found = one(&format!("# TYPE a histogram\n{samples}"));
            let classic: Vec<_> =
                found.classic.iter().map(|it| (it.upper_bound, it.cumulative_count)).collect();
            assert_eq!((found.count, classic), (count, expected), "{samples}");
        }
        let gauge = "a_bucket{le=\"1\"} 2\na_gcount 3\na_gsum -1\n";
        let found = one(&format!("# TYPE a gaugehistogram\n{gauge}# EOF\n"));
        assert_eq!((found.count, found.sum), (3, -1.0));
    }

    #[test]
    fn exemplars_and_times_are_those_of_their_series() {
        let families = read(
            "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
             a_seconds_total{x=\"1\"} 2 # {trace_id=\"b\"} 1 1.5\n\
             a_seconds_created{x=\"1\"} 1.25\na_seconds_created{x=\"2\"} 9\n# TYPE h histogram\n\
             h_bucket{le=\"+Inf\"} 1 # {trace_id=\"c\"} 7\nh_count 1\nh_sum 7\nh_created -1\n# EOF\n",
        );
        let counter = families[0].series.as_slice();
        assert_eq!(families[0].unit, "seconds");
        assert_eq!(counter.len(), 1, "a time alone is no series");
        let since = |time: std::time::SystemTime| {
            time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64()
        };
        assert_eq!(counter[0].created.map(since), Some(1.25));
        let exemplar = counter[0].exemplars().next().unwrap();
        assert_eq!((exemplar.value, exemplar.time.map(since)), (1.0, Some(1.5)));
        let histogram = &families.last().unwrap().series[0];
        let exemplar = histogram.exemplars().next().unwrap();
        assert_eq!((histogram.created, exemplar.value, exemplar.time), (None, 7.0, None));
        assert_eq!(exemplar.labels, [talea_page::Label::new("trace_id", "c")]);
    }
}
