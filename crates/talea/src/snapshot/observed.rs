//! Observable values that were not read lately: their age, and which of them are shown.
//!
//! A region keeps for each family of observable values when a process last read them, in a family that is
//! not shown. So every reader knows their age, also one outside of the process and after it died.

use std::time::Duration;

use talea_region::{OneCell, Snapshot, boot_nanos};

use super::derived_series::{AGE, of_family};
use crate::definition::Definition;
use crate::definition::kind::Kind;
use crate::labels::pairs;

/// The kind of the family, which no metric has.
pub(crate) const KIND: u8 = 10;

/// Its name, which no metric can have.
pub(crate) const NAME: &str = " observed";

/// Counts the panics of functions that read observable values.
pub(crate) const FAILURES: &str = "talea_observable_failures";

/// From which age on that is shown.
const SHOWN_FROM: Duration = Duration::from_secs(10);
/// Older values are not shown: as long as Prometheus looks back for a sample.
pub(crate) const OLDEST: Duration = Duration::from_secs(5 * 60);

/// What became of the last reading of a family. A word of 0 says nothing: the region was wiped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// When it was, by the boot clock, and the process that did it.
    Success {
        at_millis: u64,
        process: u32,
    },
    /// The process that could not read it.
    Failure {
        process: u32,
    },
    Unknown,
}

const PROCESS_BITS: u32 = 22;
const PROCESS: u64 = (1 << PROCESS_BITS) - 1;

impl Reading {
    pub(crate) fn pack(self) -> u64 {
        match self {
            Self::Success { at_millis, process } => {
                at_millis.max(1) << PROCESS_BITS | u64::from(process) & PROCESS
            }
            Self::Failure { process } => (u64::from(process) & PROCESS).max(1),
            Self::Unknown => 0,
        }
    }

    pub(crate) fn unpack(word: u64) -> Self {
        let process = (word & PROCESS) as u32;
        match word >> PROCESS_BITS {
            0 if process == 0 => Self::Unknown,
            0 => Self::Failure { process },
            at_millis => Self::Success { at_millis, process },
        }
    }

    pub(crate) fn is_of(self, other: u32) -> bool {
        match self {
            Self::Success { process, .. } | Self::Failure { process } => {
                process == (u64::from(other) & PROCESS) as u32
            }
            Self::Unknown => false,
        }
    }
}

/// The families of a snapshot whose values are not shown, and the ages of the others.
#[derive(Debug, Default)]
pub(super) struct Ages {
    hidden: Vec<String>,
    /// In whole seconds, of families whose values are shown and not fresh.
    ages: Vec<(String, u64)>,
}

impl Ages {
    pub(super) fn of(raw: &Snapshot) -> Self {
        let mut out = Self::default();
        let readings = raw.families().iter().filter(|family| family.kind == KIND);
        for series in readings.flat_map(|family| raw.series(family)) {
            let text = std::str::from_utf8(series.text).unwrap_or_default();
            let Some((_, family)) = pairs(text).into_iter().next() else { continue };
            if !raw.families().iter().any(|it| it.name == family.as_bytes()) {
                continue;
            }
            match Reading::unpack(series.values.first().copied().unwrap_or_default()) {
                Reading::Success { at_millis, .. } => out.note(family, at_millis),
                Reading::Failure { .. } => out.hidden.push(family),
                Reading::Unknown => {}
            }
        }
        out
    }

    fn note(&mut self, family: String, at_millis: u64) {
        // A time to come was written by another thread just now, or is damage.
        let age = Duration::from_millis((boot_nanos() / 1_000_000).saturating_sub(at_millis));
        if age > OLDEST {
            self.hidden.push(family);
        } else if age >= SHOWN_FROM {
            self.ages.push((family, age.as_secs()));
        }
    }

    pub(super) fn hides(&self, family: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == family)
    }

    pub(super) fn add_to(&self, raw: &mut Snapshot) {
        if self.ages.is_empty() {
            return;
        }
        let help = "Seconds since a process last read these observable values, if that was not in the \
                    last 10 seconds.";
        let definition = Definition {
            labels: vec!["family".to_owned()],
            help: help.to_owned(),
            ..Definition::default()
        };
        let series: Vec<OneCell> =
            self.ages.iter().map(|(name, age)| of_family(name, *age)).collect();
        raw.add_family(AGE, definition.encode(), Kind::Gauge as u8, series);
    }
}

#[cfg(test)]
mod tests {
    use super::{AGE, Duration, KIND, NAME, OLDEST, Reading};

    use crate::{Combine, Opts, Registry, Snapshot};

    /// A snapshot as a reader outside takes it: without the functions.
    fn unrefreshed(registry: &Registry) -> Snapshot {
        let mut out = Snapshot::default();
        out.take(|_| true, |raw, wants| registry.region.snapshot_into(raw, wants));
        out
    }

    /// Makes readings as old as that.
    fn age(registry: &Registry, by: Duration) {
        let spec = talea_region::FamilySpec {
            name: NAME.as_bytes(),
            kind: KIND,
            combine: Combine::Latest,
            ..talea_region::FamilySpec::default()
        };
        let readings = registry.region.family(spec).unwrap().family;
        for family in ["level", "busy_total"] {
            let text = crate::labels::LabelText::one("family", family);
            let cell = readings.permanent_series(text.as_bytes()).unwrap().at(0);
            cell.update(|word| {
                let Reading::Success { at_millis, process } = Reading::unpack(word) else {
                    panic!()
                };
                let at_millis = at_millis.saturating_sub(by.as_millis() as u64);
                Some(Reading::Success { at_millis, process }.pack())
            });
        }
    }

    #[test]
    fn old_values_are_shown_with_their_age_and_then_not_at_all() {
        for (by, shown, age_shown) in [
            (Duration::ZERO, true, false),
            (Duration::from_secs(9), true, false),
            (Duration::from_secs(11), true, true),
            (OLDEST - Duration::from_secs(120), true, true),
            (OLDEST + Duration::from_secs(1), false, false),
            (OLDEST * 12, false, false),
        ] {
            let registry = Registry::for_test().unwrap();
            registry.observable_gauge(Opts::new("level", "Level."), || 3.0).unwrap();
            registry.observable_counter(Opts::new("busy", "Busy."), || 4.0).unwrap();
            age(&registry, by);
            let snapshot = unrefreshed(&registry);
            for (family, value) in [("level", 3.0), ("busy_total", 4.0)] {
                let found = snapshot.value(family, &[]);
                assert_eq!(found, shown.then_some(value), "{family}, {by:?} old");
                let age = snapshot.value(AGE, &[("family", family)]);
                assert_eq!(age.is_some(), age_shown, "{family}, {by:?} old: {age:?}");
                assert!(age.is_none_or(|age| age >= by.as_secs_f64()), "{family}: {age:?}");
            }
            assert_eq!(registry.snapshot().value("level", &[]), Some(3.0), "{by:?} old");
        }
    }

    #[test]
    fn a_reading_survives_packing() {
        for reading in [
            Reading::Success { at_millis: 1, process: 1 },
            Reading::Success { at_millis: 1 << 40, process: (1 << 22) - 1 },
            Reading::Failure { process: 4_194_303 },
            Reading::Unknown,
        ] {
            assert_eq!(Reading::unpack(reading.pack()), reading);
        }
    }
}
