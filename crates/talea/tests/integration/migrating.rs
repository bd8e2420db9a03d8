//! The numbers in docs/how-to/migrating.md are those of the two examples that it counts.

use std::collections::BTreeMap;

const TALEA: &str = include_str!("../../examples/shop_talea.rs");
const OTHER: &str = include_str!("../../examples/shop_prometheus_client.rs");
const DOC: &str = include_str!("../../../../docs/how-to/migrating.md");

/// Lines of each part: not blank, no comment. A doc comment is a line, since it is a
/// metric's help.
fn lines(program: &str) -> BTreeMap<&str, usize> {
    let mut parts = BTreeMap::new();
    let mut part = "";
    for line in program.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("// Part: ") {
            part = name;
        } else if !line.is_empty() && (!line.starts_with("//") || line.starts_with("///")) {
            *parts.entry(part).or_default() += 1;
        }
    }
    parts
}

#[test]
fn the_reported_lines_are_those_of_the_examples() {
    let (ours, theirs) = (lines(TALEA), lines(OTHER));
    let row = |part: &str, ours: usize, theirs: usize| format!("| {part} | {ours} | {theirs} |");
    let mut rows: Vec<_> =
        ["declare", "use", "test"].iter().map(|part| row(part, ours[part], theirs[part])).collect();
    rows.push(row("all", ours.values().sum(), theirs.values().sum()));
    assert_eq!((ours.len(), theirs.len()), (3, 3), "no line is outside of a part");
    for row in &rows {
        assert!(DOC.contains(row.as_str()), "docs/how-to/migrating.md should have {rows:#?}");
    }
}
