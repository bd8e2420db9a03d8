//! Pages with few faults, so that a mutation reaches the borders of the grammar and not only what
//! is refused at once.

const LINES: [&str; 16] = [
    "# TYPE x_total counter\n",
    "# HELP x_total A \\\\ b \\n c.\n",
    "x_total{a=\"1\",b=\"2\"} 3\n",
    "x_total 1 1700000000000\n",
    "# TYPE h histogram\n",
    "h_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 1.5\nh_count 2\n",
    "# TYPE s summary\ns{quantile=\"0.5\"} NaN\n",
    "{\"a.b\",\"c d\"=\"e\"} 1\n",
    "# TYPE \"a.b\" gauge\n",
    "# a comment\n",
    "# UNIT x_seconds seconds\n",
    "x_seconds 1 # {t=\"u\"} 0.5 1.5\n",
    "x{a=\"line\nfeed\"} 1\n",
    "{a=\"b\",\"x\"} 1\n",
    "  x{ a = \"1\" , } 2 3 \n",
    "# EOF\n",
];

const PIECES: [&str; 32] = [
    " ",
    "\t",
    "\n",
    "\r",
    "\0",
    "\"",
    "\\",
    "\\z",
    "{",
    "}",
    ",",
    "=",
    "#",
    "# ",
    "#TYPE ",
    "# TYPE ",
    "# HELP ",
    "# UNIT ",
    "# EOF\n",
    "x",
    "é",
    "\u{feff}",
    "1",
    "+1",
    ".5",
    "1e999",
    "NaN",
    "le",
    "a=\"b\"",
    "\"q\"",
    " # {a=\"b\"} 1",
    "gauge",
];

/// A page with faults: the first bytes choose its lines, the others what is changed where.
pub(crate) fn page(input: &[u8]) -> String {
    let (lines, faults) = input.split_at(input.len().min(4));
    let mut page: String =
        lines.iter().map(|&line| LINES[usize::from(line) % LINES.len()]).collect();
    for fault in faults.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([fault[0], fault[1]])) % (page.len() + 1);
        let at = (0..=at).rev().find(|&at| page.is_char_boundary(at)).unwrap_or(0);
        match (usize::from(fault[2]), page[at..].chars().next()) {
            (0..64, Some(char)) => page.replace_range(at..at + char.len_utf8(), ""),
            (piece, _) => page.insert_str(at, PIECES[piece % PIECES.len()]),
        }
    }
    page
}
