//! A registry, options and labels for tests that need no others.

use talea::{Error, Family, Labels, Opts, Registrable, Registry, Snapshot};

#[derive(Clone, Copy, Labels)]
pub(crate) struct By<'a> {
    pub(crate) user: &'a str,
}

pub(crate) type Users<M> = Family<By<'static>, M>;

/// Labels whose values are fixed.
#[derive(Clone, Copy, Labels)]
pub(crate) struct Fixed {
    pub(crate) gift: bool,
}

/// The labels of the series that takes what overflows.
pub(crate) const OVERFLOW: [(&str, &str); 1] = [("otel_metric_overflow", "true")];

pub(crate) fn registry() -> Registry {
    Registry::for_test().unwrap()
}

pub(crate) fn opts(name: &str) -> Opts<'_> {
    Opts::new(name, "Some.")
}

pub(crate) fn register<R: Registrable>(registry: &Registry, name: &str) -> R {
    registry.register(opts(name)).unwrap()
}

/// A metric in a registry of its own.
pub(crate) fn alone<R: Registrable>(opts: Opts<'_>) -> (Registry, R) {
    let registry = registry();
    let metric = registry.register(opts).unwrap();
    (registry, metric)
}

#[track_caller]
pub(crate) fn message_of<T>(result: Result<T, Error>) -> String {
    result.err().expect("it was accepted").to_string()
}

/// The name and the difference that an error says where a name is taken.
#[track_caller]
pub(crate) fn difference<T>(result: Result<T, Error>) -> String {
    let message = message_of(result);
    let rest = message.strip_prefix("cannot register the metric ");
    let difference = rest.and_then(|it| it.strip_suffix("; use one definition, or another name"));
    difference.unwrap_or_else(|| panic!("{message}")).to_owned()
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
