//! A registry, options and labels for tests that need no others.

use talea::{Error, Labels, Opts, Registry, Snapshot};

#[derive(Clone, Copy, Labels)]
pub(crate) struct By<'a> {
    pub(crate) user: &'a str,
}

pub(crate) fn registry() -> Registry {
    Registry::for_test().unwrap()
}

pub(crate) fn opts(name: &str) -> Opts<'_> {
    Opts::new(name, "Some.")
}

/// The message of an error.
#[track_caller]
pub(crate) fn message_of<T>(result: Result<T, Error>) -> String {
    result.err().expect("it was accepted").to_string()
}

/// The error says that a name is taken, by which definition, and the remedy.
#[track_caller]
pub(crate) fn assert_name_is_taken<T>(result: Result<T, Error>, name: &str, difference: &str) {
    let expected = format!(
        "cannot register the metric {name:?}: {difference}; use one definition, or another name"
    );
    assert_eq!(message_of(result), expected);
}

/// The reason of an error, which follows the metric's name.
#[track_caller]
pub(crate) fn reason<T>(result: Result<T, Error>) -> String {
    let message = message_of(result);
    let begin = message.starts_with("cannot register the metric \"");
    let (_, reason) = message.split_once("\": ").filter(|_| begin).expect("the metric is named");
    reason.to_owned()
}

/// How many series a family shows.
pub(crate) fn count(snapshot: &Snapshot, name: &str) -> usize {
    snapshot.select(name, &[]).count()
}
