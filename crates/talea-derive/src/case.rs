//! How a variant's name becomes a text.

/// The cases of `#[label(rename_all = "…")]`, as in serde: a word begins at each
/// capital letter.
#[derive(Clone, Copy, Default)]
pub(crate) enum Case {
    #[default]
    Snake,
    ScreamingSnake,
    Kebab,
    Lower,
    Upper,
    Camel,
    Pascal,
}

const CASES: [(&str, Case); 7] = [
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("camelCase", Case::Camel),
    ("PascalCase", Case::Pascal),
];

impl Case {
    pub(crate) fn named(name: &str) -> Option<Self> {
        CASES.iter().find(|(known, _)| *known == name).map(|(_, case)| *case)
    }

    /// All that there are, for an error.
    pub(crate) fn names() -> String {
        CASES.map(|(name, _)| format!("{name:?}")).join(", ")
    }

    pub(crate) fn of(self, variant: &str) -> String {
        match self {
            Self::Snake => words(variant, '_'),
            Self::ScreamingSnake => words(variant, '_').to_uppercase(),
            Self::Kebab => words(variant, '-'),
            Self::Lower => variant.to_lowercase(),
            Self::Upper => variant.to_uppercase(),
            Self::Camel => {
                let mut chars = variant.chars();
                chars.next().into_iter().flat_map(char::to_lowercase).chain(chars).collect()
            }
            Self::Pascal => variant.to_owned(),
        }
    }
}

/// The words in small letters, with a sign between them.
fn words(name: &str, between: char) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push(between);
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_writes_a_name_its_own_way() {
        for (case, expected) in [
            ("snake_case", "bank_transfer"),
            ("SCREAMING_SNAKE_CASE", "BANK_TRANSFER"),
            ("kebab-case", "bank-transfer"),
            ("lowercase", "banktransfer"),
            ("UPPERCASE", "BANKTRANSFER"),
            ("camelCase", "bankTransfer"),
            ("PascalCase", "BankTransfer"),
        ] {
            assert_eq!(Case::named(case).unwrap().of("BankTransfer"), expected);
        }
        assert!(Case::named("Title Case").is_none());
    }
}
