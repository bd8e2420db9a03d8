//! Pages as prom-client writes them: the names that users gave, and labels that a registry adds.

use std::collections::HashMap;
use std::collections::HashSet;
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
}

/// A label that a registry adds to samples that have none of that name.
#[napi(object)]
pub struct DefaultLabel {
    pub name: String,
    pub value: String,
}

/// Writes a page with the names of users and with a registry's labels. Metrics without a series
/// have their help and type only. The end of OpenMetrics is left to the caller, who may join pages.
pub(crate) fn restyled(
    page: &[u8],
    wanted: &[Wanted],
    labels: &[DefaultLabel],
    is_open_metrics: bool,
) -> Vec<u8> {
    let renamed = wanted.iter().filter(|one| !is_open_metrics && one.name != one.shown);
    let renamed: HashMap<&[u8], &[u8]> =
        renamed.map(|one| (one.shown.as_bytes(), one.name.as_bytes())).collect();
    let added: Vec<(&[u8], Vec<u8>)> =
        labels.iter().map(|label| (label.name.as_bytes(), label_text(label))).collect();
    let mut out = Vec::with_capacity(page.len());
    let mut written = HashSet::new();
    for line in page.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_prefix(b"# ") {
            Some(b"EOF\n") => {}
            Some(rest) => {
                // `HELP name …`, `TYPE name …`, `UNIT name …`.
                let (word, rest) = rest.split_at(5.min(rest.len()));
                let (name, rest) = rest.split_at(len_until(rest, b" "));
                let name = renamed.get(name).copied().unwrap_or(name);
                written.insert(name);
                [b"# ", word, name, rest].iter().for_each(|part| out.extend_from_slice(part));
            }
            None => write_sample(line, &renamed, &added, &mut out),
        }
    }
    for metric in wanted {
        let name = if is_open_metrics { without_total(&metric.name) } else { &metric.name };
        if !written.contains(name.as_bytes()) {
            let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {}\n", metric.kind);
        }
    }
    out
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

fn write_sample(
    line: &[u8],
    renamed: &HashMap<&[u8], &[u8]>,
    added: &[(&[u8], Vec<u8>)],
    out: &mut Vec<u8>,
) {
    let (name, rest) = line.split_at(len_until(line, b"{ "));
    out.extend_from_slice(renamed.get(name).copied().unwrap_or(name));
    let Some(labels) = rest.strip_prefix(b"{") else {
        if !added.is_empty() {
            out.push(b'{');
            let mut separator: &[u8] = b"";
            for (_, text) in added {
                out.extend_from_slice(separator);
                out.extend_from_slice(text);
                separator = b",";
            }
            out.push(b'}');
        }
        return out.extend_from_slice(rest);
    };
    out.push(b'{');
    for (name, text) in added {
        if !has_label(labels, name) {
            out.extend_from_slice(text);
            out.push(b',');
        }
    }
    out.extend_from_slice(labels);
}

/// Whether the labels that a text begins with have one of this name.
fn has_label(labels: &[u8], wanted: &[u8]) -> bool {
    let mut at = 0;
    while labels.get(at).is_some_and(|&byte| byte != b'}') {
        let name = at..at + len_until(&labels[at..], b"=");
        if labels[name.clone()] == *wanted {
            return true;
        }
        // The quote behind `=`, the value, the quote, a comma.
        at = (name.end + 2).min(labels.len());
        while labels.get(at).is_some_and(|&byte| byte != b'"') {
            at += if labels[at] == b'\\' { 2 } else { 1 };
        }
        at += 1;
        at += usize::from(labels.get(at) == Some(&b','));
    }
    false
}
