//! Queries, and what they are of.

/// The queries of a guide: the blocks marked `promql`, split at blank lines.
pub fn guide_queries(markdown: &str) -> Vec<&str> {
    let fences = markdown.split("```promql\n").skip(1);
    let fences = fences.map(|rest| rest.split_once("```").expect("a fence ends").0);
    fences.flat_map(|fence| fence.split("\n\n")).collect()
}

/// The kinds of histograms of HTTP requests that a query reads: native ones, classic ones.
pub fn reads(query: &str) -> [bool; 2] {
    let names = query.split(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
    let names: Vec<_> = names.filter(|name| name.starts_with("http_")).collect();
    let any = |endings: &[&str]| {
        names.iter().any(|name| endings.iter().any(|ending| name.ends_with(ending)))
    };
    [any(&["_seconds", "_bytes"]), any(&["_bucket", "_sum", "_count"])]
}

/// The labels that its results are to have: those that it groups by.
pub fn grouped_by(query: &str) -> impl Iterator<Item = &str> {
    let lists = query.split("by (").skip(1).map(|rest| rest.split_once(')').expect("a list").0);
    // The thresholds of a classic histogram are gone when it is read.
    lists.flat_map(|list| list.split(", ")).filter(|label| *label != "le")
}
