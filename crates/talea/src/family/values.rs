//! Families whose label names are known at run time, for bindings and for those who
//! dislike derives.

use talea_region::Hold;

use super::{Family, SeriesGuard, Values};
use crate::definition::names::is_plain_label;
use crate::error::SeriesError;
use crate::labels::{KeyWriter, LabelText};
use crate::metric::slot::{Bound, Slot};
use crate::metric::{Metric, Sealed};

/// The labels of a family whose label names are known at run time; see
/// [`Registry::family`](crate::Registry::family). They are dynamic labels.
#[derive(Clone, Copy, Debug)]
pub enum DynamicLabels {}

impl<M: Metric> Family<DynamicLabels, M> {
    /// The metric of a family without labels, for a caller that keeps the family as long as the
    /// process lives; of a family with labels, its overflow series. Cost: a load.
    #[doc(hidden)]
    #[inline(always)]
    pub fn only(&'static self) -> SeriesGuard<M> {
        match self.bound() {
            Some(bound) => bound.overflow_series(),
            None => self.looked_up_unbound(),
        }
    }

    /// The metric of one label combination, by its values in the order of the names, made if it is
    /// new. If there is no room for a new one, or the number of values differs from the number of names,
    /// the family's overflow series.
    ///
    /// Cost: as [`with`](Self::with), if not all labels are fixed.
    #[inline]
    pub fn with_values(&self, values: &[impl AsRef<str>]) -> SeriesGuard<M> {
        self.try_with_values(values).unwrap_or_else(|_| self.overflow_or_unbound())
    }

    fn overflow_or_unbound(&self) -> SeriesGuard<M> {
        match self.bound() {
            Some(bound) => bound.overflow_series(),
            None => self.looked_up_unbound(),
        }
    }

    /// As [`with_values`](Self::with_values), but an error if there is no such series. A family
    /// that is not installed yet accepts any values.
    ///
    /// # Errors
    ///
    /// There are more values than names or fewer; or as [`Family::try_with`].
    pub fn try_with_values(
        &self,
        values: &[impl AsRef<str>],
    ) -> Result<SeriesGuard<M>, SeriesError> {
        let Some(bound) = self.bound() else { return Ok(self.looked_up_unbound()) };
        check(bound.openings, values)?;
        if values.is_empty() {
            // Its only series is the one that would overflow.
            return Ok(bound.overflow_series());
        }
        let values = InOrder { openings: bound.openings, values };
        bound.get_cached(&values).or_else(|miss| bound.search(miss, &values))
    }

    /// As [`try_with_values`](Self::try_with_values), held until the result is dropped. If there is
    /// no room to note that, the family's overflow series.
    #[doc(hidden)]
    pub fn hold_values(&self, values: &[impl AsRef<str>]) -> Result<HeldSeries<M>, SeriesError>
    where
        M: Clone,
    {
        loop {
            let found = self.try_with_values(values)?;
            let Slot::Bound { bound, passes: true } = Sealed::slot(&*found) else {
                return Ok(HeldSeries { metric: found.keep(), hold: None });
            };
            match Hold::of(bound.cell()) {
                Ok(None) => continue,
                Ok(hold) => {
                    return Ok(HeldSeries { metric: M::holding(Slot::bound(*bound)), hold });
                }
                Err(_) => {
                    let metric = self.overflow_or_unbound().keep();
                    return Ok(HeldSeries { metric, hold: None });
                }
            }
        }
    }

    /// Sets a label combination to 0, if it exists. Counts in flight and per-process gauges stay.
    #[doc(hidden)]
    pub fn reset_values(&self, values: &[impl AsRef<str>]) {
        let Some(bound) = self.bound() else { return };
        let mut text = LabelText::new();
        write(&mut text, bound.openings, values);
        if check(bound.openings, values).is_ok() {
            self.each_added().for_each(|family| family.reset_series(text.as_bytes()));
        }
    }

    /// Removes a label combination, as [`Family::remove`]; false also if there are more values than
    /// names or fewer.
    pub fn remove_values(&self, values: &[impl AsRef<str>]) -> bool {
        let Some(bound) = self.bound() else { return false };
        let mut text = LabelText::new();
        write(&mut text, bound.openings, values);
        check(bound.openings, values).is_ok() && self.remove_text(text.as_bytes())
    }
}

/// A metric and what keeps its series.
#[doc(hidden)]
#[derive(Debug)]
pub struct HeldSeries<M> {
    /// It is not to be used longer than the hold.
    pub metric: M,
    /// `None` if the series stays.
    pub hold: Option<Hold>,
}

/// Values in the order of the names, and the label text before each.
struct InOrder<'a, V> {
    openings: &'a [String],
    values: &'a [V],
}

impl<V: AsRef<str>> Values for InOrder<'_, V> {
    #[inline]
    fn add_to_key<K: KeyWriter>(&self, key: &mut K) {
        self.values.iter().for_each(|value| key.text(value.as_ref()));
    }
    fn write(&self, text: &mut LabelText) {
        write(text, self.openings, self.values);
    }
}

fn check(openings: &[String], values: &[impl AsRef<str>]) -> Result<(), SeriesError> {
    let (found, expected) = (values.len(), openings.len());
    if found == expected { Ok(()) } else { Err(SeriesError::Values { found, expected }) }
}

pub(crate) fn write(text: &mut LabelText, openings: &[String], values: &[impl AsRef<str>]) {
    for (opening, value) in openings.iter().zip(values) {
        text.push_raw(opening);
        text.push_escaped(value.as_ref());
    }
    if !openings.is_empty() {
        text.push_raw("\"");
    }
}

/// The label text before each value: the end of the value before, and the name.
pub(crate) fn openings(names: &[&str]) -> Vec<String> {
    names
        .iter()
        .enumerate()
        .map(|(n, name): (usize, &&str)| {
            let quote = if is_plain_label(name) { "" } else { "\"" };
            let end = if n == 0 { "" } else { "\"," };
            [end, quote, name, quote, "=\""].concat()
        })
        .collect()
}
