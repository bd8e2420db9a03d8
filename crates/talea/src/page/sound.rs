//! Whether what somebody else wrote can stand in a page: a single line that no scraper can
//! read would cost it all the others.

use crate::metric::Kind;
use crate::names::fault_in_metric;
use crate::snapshot::FamilySnapshot;

/// More labels than anybody gives a series.
const MOST_LABELS: usize = 64;

/// Why a family of a region that may be damaged cannot be shown; `None` where it can. Cost: a
/// look at each byte of its label text.
pub(super) fn fault(family: &FamilySnapshot<'_>, label: &str) -> Option<String> {
    let (name, kind) = (family.name(), family.kind());
    let ending = match kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram | Kind::StateSet | Kind::Summary => "",
    };
    if !name.ends_with(ending) || fault_in_metric(name, kind, true).is_some() {
        return Some(format!("a {} cannot have this name; {DAMAGED}", kind.as_str()));
    }
    let mut names = Vec::new();
    let mut is_sound = |text| is_sound(text, label.as_bytes(), &mut names);
    for series in family.all_series() {
        if !is_sound(series.label_bytes()) {
            return Some(format!("the labels of a series cannot be read; {DAMAGED}"));
        }
        let is_text = |text: &[u8]| std::str::from_utf8(text).is_ok();
        let exemplars = series.raw_exemplars();
        if !exemplars.iter().all(|exemplar| is_text(&exemplar.text) && is_sound(&exemplar.text)) {
            return Some(format!("the labels of an exemplar cannot be read; {DAMAGED}"));
        }
    }
    None
}

const DAMAGED: &str = "the region is damaged, or something else than Talea wrote it";

/// Whether a text is that of some labels, each of them once, and none that the page or its
/// formats add. `names` is memory.
fn is_sound<'a>(text: &'a [u8], label: &[u8], names: &mut Vec<&'a [u8]>) -> bool {
    if text.is_empty() {
        return true;
    }
    names.clear();
    let mut rest = text;
    loop {
        let Some((name, after)) = name(rest) else { return false };
        let is_taken =
            name == label || name.starts_with(b"__") || matches!(name, b"le" | b"quantile");
        if is_taken || names.contains(&name) || names.len() == MOST_LABELS {
            return false;
        }
        names.push(name);
        rest = match after.strip_prefix(b"=\"").and_then(behind_value) {
            Some([]) => return true,
            Some([b',', next @ ..]) => next,
            _ => return false,
        };
    }
}

/// The name that a text begins with, and what comes after it.
fn name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    // One that is not plain stands in quotes.
    let (name, rest) = match text.strip_prefix(b"\"") {
        Some(quoted) => {
            let len = quoted.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'))?;
            (&quoted[..len], quoted[len..].strip_prefix(b"\"")?)
        }
        None => {
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let len = text.iter().position(|byte| !is_plain(byte))?;
            text.split_at_checked(len)
                .filter(|(name, _)| !name.first().is_some_and(u8::is_ascii_digit))?
        }
    };
    (!name.is_empty()).then_some((name, rest))
}

/// What comes behind the quote that ends a value; `None` where none does.
fn behind_value(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'))?;
        rest = match &rest[end..] {
            [b'"', behind @ ..] => return Some(behind),
            [b'\\', b'\\' | b'"' | b'n', after @ ..] => after,
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_sound_as_it_is_written_and_not_otherwise() {
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
            ("1a=\"b\"", false),
            ("a:b=\"c\"", false),
            ("a=\"b\",a=\"c\"", false),
            ("\"a\"=\"b\",a=\"c\"", false),
            ("region=\"b\"", false),
            ("\"region\"=\"b\"", false),
            ("__name__=\"b\"", false),
            ("le=\"1\"", false),
            ("quantile=\"1\"", false),
        ] {
            assert_eq!(is_sound(text.as_bytes(), b"region", &mut Vec::new()), expected, "{text}");
        }
        let many = |n: usize| (0..n).map(|n| format!("a{n}=\"\"")).collect::<Vec<_>>().join(",");
        assert!(is_sound(many(64).as_bytes(), b"", &mut Vec::new()));
        assert!(!is_sound(many(65).as_bytes(), b"", &mut Vec::new()));
    }
}
