//! How a variant's name becomes a text.

/// The text of a variant.
pub(crate) type Case = fn(&str) -> String;

/// The cases of `#[label(rename_all = "…")]`, as in serde: a word begins at each
/// capital letter. The first is the default.
const CASES: [(&str, Case); 7] = [
    ("snake_case", |variant| words(variant, '_')),
    ("SCREAMING_SNAKE_CASE", |variant| words(variant, '_').to_uppercase()),
    ("kebab-case", |variant| words(variant, '-')),
    ("lowercase", str::to_lowercase),
    ("UPPERCASE", str::to_uppercase),
    ("camelCase", |variant| {
        let mut chars = variant.chars();
        chars.next().into_iter().flat_map(char::to_lowercase).chain(chars).collect()
    }),
    ("PascalCase", str::to_owned),
];

pub(crate) fn default() -> Case {
    CASES[0].1
}

pub(crate) fn named(name: &str) -> Option<Case> {
    CASES.iter().find(|(known, _)| *known == name).map(|(_, case)| *case)
}

/// All that there are, for an error.
pub(crate) fn names() -> String {
    CASES.map(|(name, _)| format!("{name:?}")).join(", ")
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
            assert_eq!(named(case).unwrap()("BankTransfer"), expected);
        }
        assert!(named("Title Case").is_none());
    }
}
