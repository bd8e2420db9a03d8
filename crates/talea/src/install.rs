//! Sets of metrics, and how an application installs them.

use crate::error::Error;
use crate::registry::Registry;

/// A set of metrics that an application installs: by `#[derive(Metrics)]` on a
/// struct whose fields are metrics, families or further sets.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no set of metrics",
    label = "give it `#[derive(Metrics)]`; if it is a metric or a Family, remove `nested`"
)]
pub trait Metrics: Sync {
    /// Registers each of them.
    ///
    /// # Errors
    ///
    /// As [`Registry::register`].
    fn register(&self, registry: &Registry) -> Result<(), Error>;
}

/// Installs sets of metrics, once, at the start of the application. Doing it
/// again with the same registry changes nothing. Any thread may do it, at any time; what
/// metrics were told before went nowhere.
///
/// # Errors
///
/// The first metric that cannot be registered; those before it are. One that is
/// installed in another registry already cannot.
pub fn install(registry: &Registry, sets: &[&dyn Metrics]) -> Result<(), Error> {
    sets.iter().try_for_each(|set| set.register(registry))
}
