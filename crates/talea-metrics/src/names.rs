//! Names that Prometheus has, of names that it does not.

/// A metric's name as it is shown, but for what its type adds.
pub(crate) fn metric(name: &str) -> String {
    replaced(name, is_in_metric)
}

/// A part of one, which may begin with a digit.
pub(crate) fn part_of_metric(name: &str) -> String {
    name.chars().map(|c| if is_in_metric(c) { c } else { '_' }).collect()
}

fn is_in_metric(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// A label's name as it is shown.
pub(crate) fn label(name: &str) -> String {
    let name = replaced(name, |c| c.is_ascii_alphanumeric() || c == '_');
    // Histograms and summaries write these labels themselves. Prometheus renames labels that
    // its own would hide in the same way.
    if name == "le" || name == "quantile" { format!("exported_{name}") } else { name }
}

/// Each character that is not valid as `_`, and a digit that is the first.
fn replaced(name: &str, is_valid: impl Fn(char) -> bool) -> String {
    let is_valid = |n: usize, c: char| is_valid(c) && (n > 0 || !c.is_ascii_digit());
    let name: String =
        name.chars().enumerate().map(|(n, c)| if is_valid(n, c) { c } else { '_' }).collect();
    // Names that begin with two are reserved.
    match name.is_empty() || name.starts_with("__") {
        true => format!("_{}", name.trim_start_matches('_')),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_as_the_exporter_does_it() {
        for (name, shown) in [
            ("foo_bar", "foo_bar"),
            ("*", "_"),
            ("\"", "_"),
            ("foo1:bar2", "foo1:bar2"),
            ("1foobar", "_foobar"),
            ("123", "_23"),
            ("http.server.größe", "http_server_gr__e"),
        ] {
            assert_eq!(metric(name), shown);
        }
        for (name, shown) in [(":", "_"), ("1foobar", "_foobar"), ("a.b:c", "a_b_c")] {
            assert_eq!(label(name), shown);
        }
    }

    #[test]
    fn empty_and_reserved_names_are_replaced_too() {
        for (name, shown) in [("", "_"), ("__name__", "_name__"), ("..a", "_a"), ("__", "_")] {
            assert_eq!((&*metric(name), &*label(name)), (shown, shown));
        }
        assert_eq!((&*label("le"), &*label("quantile")), ("exported_le", "exported_quantile"));
        assert_eq!(metric("le"), "le");
    }
}
