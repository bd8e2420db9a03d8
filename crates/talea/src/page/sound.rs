//! Checks whether series that another program wrote can be shown in a page: a scraper that cannot
//! read one line drops the whole page.

use crate::definition::kind::Kind;
use crate::definition::names::{Rules, fault_in_metric};
use crate::snapshot::{FamilySnapshot, Shown};

/// The most labels of a series: more than any real one has, also an info of many settings.
const MOST_LABELS: usize = 1024;

/// Why a family of a region that may be damaged cannot be shown with labels of the page beside its
/// own; `None` if it can. Cost: a look at each byte of its label text.
pub(super) fn fault<'a>(family: &FamilySnapshot<'a>, labels: &'a [String]) -> Option<String> {
    let (name, kind) = (family.name(), family.kind());
    let ending = match kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram | Kind::StateSet | Kind::Summary => "",
    };
    // The process that registered it may have chosen all options.
    let rules = Rules { utf8: true, lenient: true };
    if !name.ends_with(ending) || fault_in_metric(name, ending, kind, rules).is_some() {
        return Some(format!("a {} cannot have this name; {DAMAGED}", kind.as_str()));
    }
    let measures = matches!(kind, Kind::Histogram | Kind::Summary);
    let new = || Sound { labels, measures, names: Vec::new(), begins: Vec::new() };
    let [mut series_text, mut exemplar_text] = [new(), new()];
    let mut in_series = |text, shown| {
        if !series_text.is(text) {
            return Some("the labels of a series cannot be read");
        }
        let is_below =
            kind == Kind::Counter && matches!(shown, Shown::Float(x) if x.is_nan() || x < 0.0);
        is_below.then_some("a counter's total is below 0 or NaN")
    };
    let found = match family.numbers(0) {
        // Most series are numbers, which are cheaper to go through.
        Some((text, form, pieces)) => {
            pieces.flatten().find_map(|(place, value)| in_series(&text[place], form.shown(value)))
        }
        None => {
            family.all_series().find_map(|series| in_series(series.label_bytes(), series.shown()))
        }
    };
    found
        .or_else(|| {
            let mut series = family.all_series().flat_map(|series| series.raw_exemplars());
            let are_sound = !family.has_exemplars()
                || series
                    .all(|it| std::str::from_utf8(&it.text).is_ok() && exemplar_text.is(&it.text));
            (!are_sound).then_some("the labels of an exemplar cannot be read")
        })
        .map(|found| format!("{found}; {DAMAGED}"))
}

const DAMAGED: &str = "the region is damaged, or something else than Talea wrote it";

/// The label names that were checked last. Most texts have the same names as the one before, so
/// only their values need a check: there may be a million.
struct Sound<'a> {
    /// The names of labels that the page adds.
    labels: &'a [String],
    /// Whether Talea adds a label `le` or `quantile` to its series.
    measures: bool,
    /// The names of the last text, in any order.
    names: Vec<&'a [u8]>,
    /// The text before each of its values.
    begins: Vec<Begin<'a>>,
}

/// A text with which another may begin.
struct Begin<'a> {
    text: &'a [u8],
    /// Its bytes, of at most 16, and the mask of their bits.
    word: u128,
    mask: u128,
}

impl<'a> Begin<'a> {
    fn new(text: &'a [u8]) -> Self {
        let word = text.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte));
        let mask = 1_u128.checked_shl(8 * text.len() as u32).map_or(u128::MAX, |end| end - 1);
        Self { text, word, mask }
    }

    /// The rest of a text that begins with it.
    #[inline]
    fn strip_from<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        // Most are short, and a comparison of unknown length is a call.
        match text.first_chunk() {
            Some(first) if self.text.len() <= 16 => {
                let is_equal = u128::from_le_bytes(*first) & self.mask == self.word;
                is_equal.then(|| &text[self.text.len()..])
            }
            _ => text.strip_prefix(self.text),
        }
    }
}

impl<'a> Sound<'a> {
    /// Whether a text consists of labels, each of them once, and of no label that the page or its
    /// formats add.
    #[inline]
    fn is(&mut self, text: &'a [u8]) -> bool {
        text.is_empty() || self.is_like_the_last(text) || self.is_another(text)
    }

    #[inline]
    fn is_like_the_last(&self, text: &[u8]) -> bool {
        let mut rest = text;
        for begin in &self.begins {
            match begin.strip_from(rest).and_then(behind_value) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        rest.is_empty()
    }

    #[cold]
    fn is_another(&mut self, text: &'a [u8]) -> bool {
        self.names.clear();
        self.begins.clear();
        let mut rest = text;
        loop {
            let before = rest;
            let comma = usize::from(!self.names.is_empty());
            let Some((name, after)) = rest.get(comma..).and_then(name) else { break };
            let is_taken = self.labels.iter().any(|label| label.as_bytes() == name)
                || name.starts_with(b"__")
                || self.measures && matches!(name, b"le" | b"quantile");
            let Some(value) = after.strip_prefix(b"=\"") else { break };
            let Some(behind) = behind_value(value).filter(|_| !is_taken) else { break };
            self.names.push(name);
            self.begins.push(Begin::new(&before[..before.len() - value.len()]));
            match behind {
                [] if self.has_each_name_once() => return true,
                [b',', ..] if self.names.len() < MOST_LABELS => rest = behind,
                _ => break,
            }
        }
        // Nothing is like it.
        self.begins.clear();
        false
    }

    fn has_each_name_once(&mut self) -> bool {
        self.names.sort_unstable();
        self.names.windows(2).all(|both| both[0] != both[1])
    }
}

/// The name at the beginning of a text, and the rest.
fn name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    // A name that is not plain is in quotes.
    let (name, rest) = match text.strip_prefix(b"\"") {
        Some(quoted) => {
            let len = quoted.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n' | 0))?;
            (&quoted[..len], quoted[len..].strip_prefix(b"\"")?)
        }
        None => {
            let len =
                text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
            text.split_at_checked(len)
                .filter(|(name, _)| !name.first().is_some_and(u8::is_ascii_digit))?
        }
    };
    (!name.is_empty()).then_some((name, rest))
}

/// The text after the quote that ends a value; `None` if there is no such quote.
#[inline]
fn behind_value(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        rest = match &rest[special(rest)?..] {
            [b'"', behind @ ..] => return Some(behind),
            [b'\\', b'\\' | b'"' | b'n', after @ ..] => after,
            _ => return None,
        };
    }
}

/// The place of the first quote, backslash or line end, found eight bytes at a time.
#[inline]
fn special(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // The lowest bit that is set belongs to the first byte that is 0. (A borrow can set bits
    // above it.)
    let are = |word: u64, byte: u8| {
        let word = word ^ (ONES * u64::from(byte));
        word.wrapping_sub(ONES) & !word & HIGHS
    };
    let first_in = |bytes: &[u8; 8]| {
        let word = u64::from_le_bytes(*bytes);
        let found = are(word, b'"') | are(word, b'\\') | are(word, b'\n');
        (found != 0).then(|| found.trailing_zeros() as usize / 8)
    };
    let mut at = 0;
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk) {
        match first_in(bytes) {
            Some(n) => return Some(at + n),
            None => at += 8,
        }
    }
    match text.last_chunk() {
        // None of those that were looked at before is found again.
        Some(bytes) => Some(text.len() - 8 + first_in(bytes)?),
        None => text.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_sound_as_it_is_written_and_not_otherwise() {
        let labels = ["region", "zone"].map(str::to_owned);
        for (text, expected) in [
            ("", true),
            ("a=\"\"", true),
            ("a=\"b\",c_1=\"d,e=f\"", true),
            ("\"a.b\"=\"c\",größe=\"1\"", false),
            ("\"a.b\"=\"c\",\"größe\"=\"1\"", true),
            (r#"a="\"\\\n""#, true),
            (r#"a="\x""#, false),
            (r#"a="b\""#, false),
            ("a=\"b\nc\"", false),
            ("a=\"b\"} 1\nx 2", false),
            ("a=\"b\",", false),
            ("a=\"b\" ", false),
            ("a=\"b\"c=\"d\"", false),
            (",a=\"b\"", false),
            ("a", false),
            ("a=", false),
            ("a=b", false),
            ("=\"b\"", false),
            ("\"\"=\"b\"", false),
            ("\"a\0\"=\"b\"", false),
            ("1a=\"b\"", false),
            ("a:b=\"c\"", false),
            ("a=\"b\",a=\"c\"", false),
            ("\"a\"=\"b\",a=\"c\"", false),
            ("region=\"b\"", false),
            ("zone=\"b\"", false),
            ("\"region\"=\"b\"", false),
            ("__name__=\"b\"", false),
            ("le=\"1\"", false),
            ("quantile=\"1\"", false),
        ] {
            assert_eq!(sound(&labels).is(text.as_bytes()), expected, "{text}");
            // The text before makes no difference.
            for before in ["a=\"x\"", "a=\"x\",c_1=\"y\"", "\"a.b\"=\"c\"", "a=\"b", ""] {
                let mut sound = sound(&labels);
                let _ = sound.is(before.as_bytes());
                assert_eq!(sound.is(text.as_bytes()), expected, "{text} after {before}");
            }
        }
        let many = |n: usize| (0..n).map(|n| format!("a{n}=\"\"")).collect::<Vec<_>>().join(",");
        assert!(sound(&[]).is(many(1024).as_bytes()));
        assert!(!sound(&[]).is(many(1025).as_bytes()));
        assert!(!sound(&[]).is((many(1000) + ",a7=\"\"").as_bytes()));
    }

    fn sound(labels: &[String]) -> Sound<'_> {
        Sound { labels, measures: true, names: Vec::new(), begins: Vec::new() }
    }

    #[test]
    fn an_exemplar_whose_labels_cannot_be_read_is_found() {
        use crate::{Counter, Opts, Registry};
        let registry = Registry::for_test().unwrap();
        let counter: Counter = registry.register(Opts::new("orders", "Orders.")).unwrap();
        let fault = || {
            let snapshot = registry.snapshot();
            let family = snapshot.families().next().unwrap();
            fault(&family, &[])
        };
        let cell = *counter.cell.get().unwrap();
        for (text, is_sound) in
            [(&b"a=\"b\""[..], true), (b"a=\"b\" 1", false), (b"a=\"\xFF\"", false)]
        {
            cell.set_exemplar(0, 1.0, text).unwrap();
            assert_eq!(fault().is_none(), is_sound, "{text:?}");
        }
    }

    #[test]
    fn what_can_be_registered_can_be_read_however_many_labels_it_has() {
        use crate::{Combine, Counter, FloatGauge, Opts, Registry};
        let opts = Opts::new("wide", "Wide.");
        for count in [1, 1000, 1001, 1024, 1025, 3000] {
            let registry = Registry::for_test().unwrap();
            let names: Vec<String> = (0..count).map(|n| format!("l{n}")).collect();
            let each = Opts::new("level", "Level.").combine(Combine::Each);
            let results = [
                registry.family::<Counter>(opts, &names).map(|of| of.with_values(&names).inc()),
                registry
                    .family::<FloatGauge>(each, &names)
                    .map(|of| of.with_values(&names).set(1.0)),
            ];
            for result in &results {
                let error = result.as_ref().err().map(ToString::to_string);
                assert_eq!(error.is_some(), count > 1000, "{count}: {error:?}");
                assert!(
                    error.as_ref().is_none_or(|error: &String| {
                        error.contains(&count.to_string()) && error.contains("the maximum is 1000")
                    }),
                    "{error:?}"
                );
            }
            let info = registry.info(Opts::new("facts", "Facts."), &["group"]).unwrap();
            let facts: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
            info.set_pairs(&["a"], &facts);
            let snapshot = registry.snapshot();
            for family in snapshot.families() {
                assert_eq!(fault(&family, &[]), None, "{} of {count}", family.name());
            }
        }
    }

    #[test]
    fn a_text_begins_with_another_or_does_not() {
        let text: Vec<u8> = (1..=40).collect();
        for len in 0..=text.len() {
            let begin = Begin::new(&text[..len]);
            for end in 0..=text.len() {
                let expected = (len <= end).then(|| &text[len..end]);
                assert_eq!(begin.strip_from(&text[..end]), expected, "{len} of {end}");
            }
            for at in 0..len {
                let mut other = text.clone();
                other[at] ^= 0x80;
                assert_eq!(begin.strip_from(&other), None, "byte {at} of {len}");
            }
        }
    }

    #[test]
    fn the_first_special_byte_is_found_wherever_it_is() {
        for len in 0..40 {
            let plain = vec![b'!'; len];
            assert_eq!(special(&plain), None);
            for (at, byte) in (0..len).flat_map(|at| b"\"\\\n".map(|byte| (at, byte))) {
                let mut text = plain.clone();
                text[at] = byte;
                assert_eq!(special(&text), Some(at));
                // The text after it is not part of it.
                text[at + 1..].fill(b'#');
                assert_eq!(special(&text), Some(at));
            }
        }
    }
}
