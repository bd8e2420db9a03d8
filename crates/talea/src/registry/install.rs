//! Sets of metrics, and how an application installs them.

use std::any::TypeId;

use super::Registry;
use crate::error::Error;

/// A set of metrics that an application installs: by `#[derive(Metrics)]` on a
/// struct whose fields are metrics, families or further sets.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no set of metrics",
    label = "give it `#[derive(Metrics)]`; if it is a metric or a Family, remove `nested` and the prefix"
)]
pub trait Metrics: Sync {
    /// Registers each of them.
    ///
    /// # Errors
    ///
    /// As [`Registry::register`].
    fn register(&self, registry: &Registry) -> Result<(), Error>;

    /// The type of the set, and its name; `None` if it is not known.
    #[doc(hidden)]
    fn set_type(&self) -> Option<(TypeId, &'static str)> {
        None
    }
}

/// Installs sets of metrics, once, at the start of the application. Doing it
/// again with the same registry changes nothing. Any thread may do it, at any time; updates
/// before that were discarded. Clones of the metrics are installed too.
///
/// Sets of several types that have equal definitions of a metric share it, for example the sets of two
/// versions of a library. So does a second set of an installed type, in a later call: a part of a
/// program that is built again continues with its metrics.
///
/// # Errors
///
/// The first metric that cannot be registered; those before it are registered. A metric that is
/// installed in another registry cannot be, nor one that two fields of a set define. If two derived
/// sets of one type are passed, no set is installed.
pub fn install(registry: &Registry, sets: &[&dyn Metrics]) -> Result<(), Error> {
    refuse_two_of_one_type(sets)?;
    sets.iter().try_for_each(|set| set.register(registry))
}

/// Refuses two that would share all their metrics. The same set twice is one.
fn refuse_two_of_one_type(sets: &[&dyn Metrics]) -> Result<(), Error> {
    let place = |set: &dyn Metrics| std::ptr::from_ref(set).cast::<()>();
    for (second, set) in sets.iter().enumerate() {
        let Some((kind, name)) = set.set_type() else { continue };
        if let Some(first) = sets[..second].iter().position(|other: &&dyn Metrics| {
            other.set_type().is_some_and(|(of, _)| of == kind) && place(*other) != place(*set)
        }) {
            return Err(Error::SetTwice { set: name, first, second });
        }
    }
    Ok(())
}
