//! Escaping of names that the older formats do not have.
//!
//! Source: "Escaping schemes" in the Prometheus documentation; the replacement of each character is
//! the escaping of Prometheus' own Go library.

use std::borrow::Cow;

use crate::definition::names::is_plain_at;

/// How names outside `[a-zA-Z_:][a-zA-Z0-9_:]*` are shown to a scraper; its Accept header names the
/// escaping that it accepts.
///
/// A name within that is shown as it is. A name that would be the same as another one of the page,
/// or as the name of another family's samples, is shown as [`Values`](Self::Values) has it: beside
/// `a_b`, `a b` is `U__a_20_b` also by [`Underscores`](Self::Underscores). Of several such names
/// the first in their order has the short form. So it is with the labels of a family, and with a
/// label that would begin with `__`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Escaping {
    /// As they are, in quotes.
    AllowUtf8,
    /// Each such character becomes `_`. The default.
    #[default]
    Underscores,
    /// `.` becomes `_dot_`, `_` becomes `__`, and so does each other such character.
    Dots,
    /// `U__`, and then each such character as its number in base 16 between `_`; `_`
    /// becomes `__`.
    Values,
}

impl Escaping {
    /// Its name in headers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllowUtf8 => "allow-utf-8",
            Self::Underscores => "underscores",
            Self::Dots => "dots",
            Self::Values => "values",
        }
    }

    /// The escaping of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::AllowUtf8, Self::Underscores, Self::Dots, Self::Values]
            .into_iter()
            .find(|escaping| escaping.as_str().eq_ignore_ascii_case(name))
    }

    /// A metric's name, escaped. A name that every format has stays unchanged.
    pub fn name(self, name: &str) -> Cow<'_, str> {
        self.escape(name, is_plain_at)
    }

    /// A label's name, escaped. It has no colons.
    pub fn label(self, name: &str) -> Cow<'_, str> {
        self.escape(name, |n, c| c != ':' && is_plain_at(n, c))
    }

    fn escape(self, name: &str, is_plain_at: fn(usize, char) -> bool) -> Cow<'_, str> {
        if self == Self::AllowUtf8 || name.chars().enumerate().all(|(n, c)| is_plain_at(n, c)) {
            return Cow::Borrowed(name);
        }
        let mut out = String::with_capacity(name.len() + 8);
        if self == Self::Values {
            out.push_str("U__");
        }
        for (n, c) in name.chars().enumerate() {
            match self {
                Self::Dots if c == '.' => out.push_str("_dot_"),
                Self::Dots | Self::Values if c == '_' => out.push_str("__"),
                _ if is_plain_at(n, c) => out.push(c),
                Self::Dots => out.push_str("__"),
                Self::Values => out.extend(["_", &format!("{:x}", u32::from(c)), "_"]),
                Self::Underscores | Self::AllowUtf8 => out.push('_'),
            }
        }
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_shows_names_as_prometheus_does() {
        // Name; underscores, dots, values.
        for (name, shown) in [
            ("plain_name:x", ["plain_name:x", "plain_name:x", "plain_name:x"]),
            ("http.server", ["http_server", "http_dot_server", "U__http_2e_server"]),
            ("a_b.c", ["a_b_c", "a__b_dot_c", "U__a__b_2e_c"]),
            ("9x", ["_x", "__x", "U___39_x"]),
            ("blüte 🌺", ["bl_te__", "bl__te____", "U__bl_fc_te_20__1f33a_"]),
        ] {
            for (scheme, expected) in
                [Escaping::Underscores, Escaping::Dots, Escaping::Values].into_iter().zip(shown)
            {
                assert_eq!(scheme.name(name), expected, "{scheme:?}");
            }
            assert_eq!(Escaping::AllowUtf8.name(name), name);
            assert_eq!(Escaping::AllowUtf8.label(name), name);
        }
    }

    #[test]
    fn labels_have_no_colons() {
        assert_eq!(Escaping::Underscores.label("a:b"), "a_b");
        assert_eq!(Escaping::Dots.label("a:b"), "a__b");
        assert_eq!(Escaping::Values.label("a:b"), "U__a_3a_b");
        assert_eq!(Escaping::Dots.name("a:b"), "a:b");
        assert_eq!(Escaping::Dots.label("a_b"), "a_b");
    }
}
