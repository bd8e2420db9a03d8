//! Errors in a text, with their places.

use std::ops::Range;

use toml::Spanned;

/// An error, and its place in the text.
pub(super) type Fault = (Range<usize>, String);

/// Adds the place of a text to a message about it.
pub(super) fn at<T>(text: &Spanned<T>) -> impl FnOnce(String) -> Fault + use<T> {
    let place = text.span();
    move |message| (place, message)
}

/// An error with the name of the file and the line.
pub(super) fn located(name: &str, text: &str, (at, message): Fault) -> String {
    let line = text[..at.start.min(text.len())].matches('\n').count() + 1;
    format!("{name}:{line}: {message}")
}
