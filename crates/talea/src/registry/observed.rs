//! Notes for readers when the observable values of a family were last read.

use std::process;

use talea_region::{Cell, Combine, FamilySpec, Region, boot_nanos};

use crate::labels::LabelText;
use crate::metric::FloatGauge;
use crate::snapshot::observed::{KIND, NAME, Reading};

/// What a function that reads observable values is of.
pub(super) struct Observed {
    family: String,
    /// Where the time of its last success stands; `None` if the region has no room.
    reading: Option<Cell>,
    values: Values,
}

/// What the function sets.
pub(super) enum Values {
    Gauge(FloatGauge),
    Counter,
    /// Gauges, which it removes itself if it cannot read them.
    Gauges,
}

impl Observed {
    /// Observable values of a family, given by its name as samples have it.
    pub(super) fn of(region: &'static Region, family: String, values: Values) -> Self {
        let spec = FamilySpec {
            name: NAME.as_bytes(),
            kind: KIND,
            combine: Combine::Latest,
            ..FamilySpec::default()
        };
        let readings = region.family(spec).ok();
        let text = LabelText::one("family", &family);
        let cells = readings.and_then(|all| all.family.permanent_series(text.as_bytes()).ok());
        Self { family, reading: cells.map(|cells| cells.at(0)), values }
    }

    pub(super) fn family(&self) -> &str {
        &self.family
    }

    pub(super) fn note_success(&self) {
        let now = Reading::Success { at_millis: boot_nanos() / 1_000_000, process: process::id() };
        self.reading.iter().for_each(|reading| reading.set(now.pack()));
    }

    /// Takes this process's value out. If that is impossible, because processes share the value, readers hide
    /// it until a process has read it again.
    pub(super) fn note_failure(&self) {
        let is_out = match &self.values {
            Values::Gauge(gauge) => gauge.unset(),
            Values::Counter => false,
            Values::Gauges => true,
        };
        if is_out {
            return;
        }
        let failure = Reading::Failure { process: process::id() }.pack();
        self.reading.iter().for_each(|reading| {
            reading.update(|word| {
                let before = Reading::unpack(word);
                let is_own = before == Reading::Unknown || before.is_of(process::id());
                is_own.then_some(failure)
            })
        });
    }
}
