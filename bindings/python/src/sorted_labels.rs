//! Pages with the labels of each sample in the order of their names, as the official client writes them. Regions
//! have them in the order of a metric's definition, which processes in other languages share.

use std::ops::Range;

/// A label of a sample, as ranges of the page: its name, and the whole of it.
struct Label {
    name: Range<usize>,
    whole: Range<usize>,
}

/// Sorts the labels of each sample and of each exemplar of a page that Talea wrote.
pub(crate) fn sort_labels(page: &[u8]) -> Vec<u8> {
    let mut sorted = Vec::with_capacity(page.len());
    let (mut labels, mut copied) = (Vec::new(), 0);
    let mut at = 0;
    while let Some(&byte) = page.get(at) {
        match byte {
            // A line of a help or a type may have any characters. The `#` before an exemplar begins no line.
            b'#' if at == 0 || page[at - 1] == b'\n' => at = line_end(page, at),
            b'{' => {
                let end = read_labels(page, at + 1, &mut labels);
                if !labels.is_sorted_by_key(|label| &page[label.name.clone()]) {
                    sorted.extend_from_slice(&page[copied..=at]);
                    write_sorted(page, &mut labels, &mut sorted);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    sorted.extend_from_slice(&page[copied..]);
    sorted
}

fn line_end(page: &[u8], at: usize) -> usize {
    page[at..].iter().position(|&byte| byte == b'\n').map_or(page.len(), |len| at + len)
}

/// Reads the labels from behind a `{` up to its `}`, and returns where that is. A quoted name of the metric, which
/// has no value, counts as one of no name: it stays the first.
fn read_labels(page: &[u8], from: usize, labels: &mut Vec<Label>) -> usize {
    labels.clear();
    let mut at = from;
    while at < page.len() && page[at] != b'}' {
        let begin = at;
        let name = match page[at] {
            b'"' => {
                at = after_quoted(page, at);
                begin + 1..at - 1
            }
            _ => {
                at += page[at..].iter().take_while(|&&byte| byte != b'=').count();
                begin..at
            }
        };
        let has_value = page.get(at) == Some(&b'=');
        if has_value {
            at = after_quoted(page, at + 1);
        }
        let name = if has_value { name } else { begin..begin };
        labels.push(Label { name, whole: begin..at });
        if page.get(at) == Some(&b',') {
            at += 1;
        }
    }
    at
}

/// The place behind a quoted text that begins here.
fn after_quoted(page: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < page.len() && page[at] != b'"' {
        at += if page[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(page.len())
}

fn write_sorted(page: &[u8], labels: &mut [Label], out: &mut Vec<u8>) {
    labels.sort_by_key(|label| &page[label.name.clone()]);
    for (n, label) in labels.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&page[label.whole.clone()]);
    }
}
