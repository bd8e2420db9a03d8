//! Values that display themselves.

use std::fmt::Display;

use super::{LabelText, LabelValue};

/// A label value of any type with `Display`. In a struct with `#[derive(Labels)]`,
/// `#[label(display)]` on the field does the same for a type that is not wrapped.
///
/// Cost: a call of `Display`. The text is escaped while it is written into the label text; nothing is
/// allocated for it. If `Display` returns an error, the text written until then is the value.
///
/// ```
/// use std::net::{IpAddr, Ipv4Addr};
/// use talea::{Counter, Displayed, Family, Labels, Opts, Registry};
///
/// #[derive(Labels)]
/// struct Call {
///     host: Displayed<IpAddr>,
///     #[label(display)]
///     from: IpAddr,
/// }
///
/// let registry = Registry::for_test()?;
/// let calls: Family<Call, Counter> = registry.register(Opts::new("calls", "Calls."))?;
/// let here = IpAddr::from(Ipv4Addr::LOCALHOST);
/// calls.with(Call { host: Displayed(here), from: here }).inc();
/// let labels = [("host", "127.0.0.1"), ("from", "127.0.0.1")];
/// assert_eq!(registry.snapshot().value("calls_total", &labels), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Displayed<T: Display>(pub T);

impl<T: Display> LabelValue for Displayed<T> {
    #[inline]
    fn write(&self, out: &mut LabelText) {
        out.push_displayed(&self.0);
    }
}
