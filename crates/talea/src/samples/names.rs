//! What the family is called that has a summary's samples.

/// The kind of such families, which is none that is shown.
pub(crate) const KIND: u8 = 7;

/// No name of a metric that can be exposed as it is ends so.
const ENDING: &str = " samples";

/// That of a summary's.
pub(crate) fn own_name(summary: &str) -> String {
    format!("{summary}{ENDING}")
}

/// The summary that a family belongs to; of others their own name.
pub(crate) fn owner_of(family: &str) -> &str {
    family.strip_suffix(ENDING).unwrap_or(family)
}

/// Whether a family is one of samples, by its name.
pub(crate) fn is_own(family: &[u8]) -> bool {
    family.ends_with(ENDING.as_bytes())
}
