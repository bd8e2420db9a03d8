//! Pages as prom-client writes them: the names that users gave, and labels that a registry adds.

use std::collections::HashMap;
use std::io::Write as _;

use napi_derive::napi;

/// A metric of a page.
#[napi(object)]
pub struct Wanted {
    /// The name that the user gave.
    pub name: String,
    /// The name in the region: that of a counter ends with `_total`.
    pub shown: String,
    pub help: String,
    pub kind: String,
    /// Its series is left out.
    pub is_hidden: bool,
}

/// A label that a registry adds to samples that have none of that name.
#[napi(object)]
pub struct DefaultLabel {
    pub name: String,
    pub value: String,
}

/// Writes a page as the client does: these metrics in their order, with the names of users and a registry's labels.
/// Metrics without a series have their help and type only. The end of OpenMetrics is left to the caller, who may
/// join pages.
pub(crate) fn restyled(
    page: &[u8],
    wanted: &[Wanted],
    labels: &[DefaultLabel],
    is_open_metrics: bool,
) -> Vec<u8> {
    let added: Vec<(&[u8], Vec<u8>)> =
        labels.iter().map(|label| (label.name.as_bytes(), label_text(label))).collect();
    let sections = sections(page);
    let mut out = Vec::with_capacity(page.len());
    for metric in wanted {
        if !is_open_metrics && !out.is_empty() {
            out.push(b'\n');
        }
        let shown = if is_open_metrics { metric.family() } else { &metric.shown };
        let name = if is_open_metrics { shown } else { &metric.name };
        let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {}\n", metric.kind);
        if let Some(lines) = sections.get(shown.as_bytes()).filter(|_| !metric.is_hidden) {
            let style = Style { shown, name, kind: &metric.kind, added: &added, is_open_metrics };
            style.write(lines, &mut out);
        }
    }
    out
}

impl Wanted {
    /// The name of the family in OpenMetrics.
    fn family(&self) -> &str {
        if self.kind == "counter" { without_total(&self.shown) } else { &self.shown }
    }
}

/// The parts of a page by the name of their family.
fn sections(page: &[u8]) -> HashMap<&[u8], &[u8]> {
    let mut found = HashMap::new();
    let (mut family, mut begin, mut end): (&[u8], _, _) = (b"", 0, 0);
    for line in page.split_inclusive(|&byte| byte == b'\n') {
        let name = family_of(line).unwrap_or(family);
        if name != family {
            found.insert(family, &page[begin..end]);
            (family, begin) = (name, end);
        }
        end += line.len();
    }
    found.insert(family, &page[begin..end]);
    found
}

/// The name in `# HELP name …`, or in another such line.
fn family_of(line: &[u8]) -> Option<&[u8]> {
    let mut words = line.strip_suffix(b"\n").unwrap_or(line).split(|&byte| byte == b' ');
    if words.next() == Some(b"#") { words.nth(1) } else { None }
}

/// How the lines of one metric are written.
struct Style<'a> {
    /// The name that the page has.
    shown: &'a str,
    name: &'a str,
    kind: &'a str,
    added: &'a [(&'a [u8], Vec<u8>)],
    is_open_metrics: bool,
}

impl Style<'_> {
    /// Writes the samples: OpenMetrics has the count before the sum, and the client behind it.
    fn write(&self, lines: &[u8], out: &mut Vec<u8>) {
        let (mut count, mut labels) = (None, Vec::new());
        for line in lines.split_inclusive(|&byte| byte == b'\n').filter(|line| line[0] != b'#') {
            let (name, rest) = line.split_at(len_until(line, b"{ "));
            if self.is_open_metrics
                && self.kind != "counter"
                && name.ends_with(b"_count")
                && name != self.shown.as_bytes()
            {
                count = Some((name, rest));
                continue;
            }
            self.write_sample(name, rest, &mut labels, out);
            if let Some((name, rest)) = count.take() {
                self.write_sample(name, rest, &mut labels, out);
            }
        }
    }

    fn write_sample<'a>(
        &self,
        name: &[u8],
        rest: &'a [u8],
        labels: &mut Vec<Label<'a>>,
        out: &mut Vec<u8>,
    ) {
        let name = if name == self.shown.as_bytes() { self.name.as_bytes() } else { name };
        out.extend_from_slice(name);
        if self.leaves_labels() && !self.is_open_metrics {
            return out.extend_from_slice(rest);
        }
        let value = split_labels(rest, labels);
        self.write_labels(labels, out);
        self.write_value(value, out);
    }

    fn leaves_labels(&self) -> bool {
        self.added.is_empty() && self.first_label().is_empty()
    }

    /// The label that the client writes first.
    fn first_label(&self) -> &'static str {
        match self.kind {
            "histogram" => "le",
            "summary" => "quantile",
            _ => "",
        }
    }

    /// `le` or `quantile` first; a registry's labels before those of a histogram, and after those of others.
    fn write_labels(&self, labels: &[Label<'_>], out: &mut Vec<u8>) {
        let begin = out.len();
        let first = self.first_label();
        for (_, text) in labels.iter().filter(|(name, _)| *name == first.as_bytes()) {
            // The client writes whole numbers without a fraction.
            match text.strip_suffix(b".0\"") {
                Some(whole) => {
                    push_label(whole, begin, out);
                    out.push(b'"');
                }
                None => push_label(text, begin, out),
            }
        }
        if self.kind != "histogram" {
            push_others(labels, first, begin, out);
        }
        for (name, text) in self.added {
            if !labels.iter().any(|(own, _)| own == name) {
                push_label(text, begin, out);
            }
        }
        if self.kind == "histogram" {
            push_others(labels, first, begin, out);
        }
        if out.len() > begin {
            out.push(b'}');
        }
    }

    /// A value, and what follows it: whole numbers without a fraction, and 0 for a quantile without observations.
    fn write_value(&self, text: &[u8], out: &mut Vec<u8>) {
        let text = if self.kind == "summary" && text == b" NaN\n" { b" 0\n" } else { text };
        if !self.is_open_metrics {
            return out.extend_from_slice(text);
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let words: Vec<&[u8]> = text.split(|&byte| byte == b' ').collect();
        for (n, word) in words.iter().enumerate() {
            // The value, and the value and the time of an exemplar; not what its labels contain.
            let is_number = n == 1 || (words.len() > 3 && n + 2 >= words.len());
            let word = if is_number { word.strip_suffix(b".0").unwrap_or(word) } else { word };
            if n > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(word);
        }
        out.push(b'\n');
    }
}

/// Adds all labels but one.
fn push_others(labels: &[Label<'_>], but: &str, begin: usize, out: &mut Vec<u8>) {
    for (_, text) in labels.iter().filter(|(name, _)| *name != but.as_bytes()) {
        push_label(text, begin, out);
    }
}

/// Adds a label to those that begin there.
fn push_label(text: &[u8], begin: usize, out: &mut Vec<u8>) {
    out.push(if out.len() == begin { b'{' } else { b',' });
    out.extend_from_slice(text);
}

fn without_total(name: &str) -> &str {
    name.strip_suffix("_total").unwrap_or(name)
}

fn label_text(label: &DefaultLabel) -> Vec<u8> {
    let value = label.value.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
    format!("{}=\"{value}\"", label.name).into_bytes()
}

fn len_until(text: &[u8], ends: &[u8]) -> usize {
    text.iter().position(|byte| ends.contains(byte)).unwrap_or(text.len())
}

/// The name of a label, and its text.
type Label<'a> = (&'a [u8], &'a [u8]);

/// Finds the labels that a text begins with; returns the rest.
fn split_labels<'a>(text: &'a [u8], labels: &mut Vec<Label<'a>>) -> &'a [u8] {
    labels.clear();
    if text.first() != Some(&b'{') {
        return text;
    }
    let mut at = 1;
    while text.get(at).is_some_and(|&byte| byte != b'}') {
        let begin = at;
        let name = &text[begin..begin + len_until(&text[begin..], b"=")];
        // The quote behind `=`, the value, the quote, a comma.
        at = (begin + name.len() + 2).min(text.len());
        while text.get(at).is_some_and(|&byte| byte != b'"') {
            at += if text[at] == b'\\' { 2 } else { 1 };
        }
        at = (at + 1).min(text.len());
        labels.push((name, &text[begin..at]));
        at += usize::from(text.get(at) == Some(&b','));
    }
    &text[(at + 1).min(text.len())..]
}
