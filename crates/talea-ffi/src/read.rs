//! Reading values: those that a scrape shows, as numbers and texts rather than as a page.

use std::ffi::c_char;
use std::ptr::{null, without_provenance};

use talea::{FamilySnapshot, SeriesSnapshot, Snapshot, Value, write_canonical};

use crate::boundary::{guarded, place, required};
use crate::fork::{self, WithoutSignals};
use crate::kept::Kept;
use crate::number::Number;
use crate::registry::Registry;
use crate::status::Status;
use crate::text::Text;
use crate::updates::time_of;

/// A label of a series.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Label {
    /// Its name.
    pub name: Text,
    /// Its value, as it was given.
    pub value: Text,
}

/// A sample: a line of a scrape.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Sample {
    /// Its name: the family's, or with `_bucket`, `_sum`, `_count` at its end.
    pub name: Text,
    /// A label that it has beside those of its series: `le` of a bucket, `quantile` of a
    /// quantile, or none, and its value as a scrape of the text format has it.
    pub label: Label,
    /// That value as a number; 0 if there is none.
    pub bound: f64,
    /// The value.
    pub number: Number,
}

/// A series with its samples: of a histogram its buckets, which are cumulative, its count and
/// its sum; of a summary its quantiles, its count and its sum; of others one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SeriesView {
    /// Its labels. Those of the overflow series are `otel_metric_overflow="true"`, whatever its
    /// family's are.
    pub labels: *const Label,
    /// Their number.
    pub label_count: usize,
    /// Its samples.
    pub samples: *const Sample,
    /// Their number.
    pub sample_count: usize,
    /// Whether it keeps samples (TALEA_FAMILY_SAMPLED) and so has the next two.
    pub is_sampled: bool,
    /// The number of observations in the window of its quantiles.
    pub window_count: u64,
    /// Their sum.
    pub window_sum: f64,
}

/// A family with its series, in the order of their creation.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FamilyView {
    /// The name, as samples have it (a counter's with `_total`).
    pub name: Text,
    /// counter, gauge, histogram, summary, info or stateset.
    pub kind: Text,
    /// The help.
    pub help: Text,
    /// How often label values counted in its overflow series, because they were new and there was
    /// no room for them; over all processes. Scrapes show it as talea_series_dropped_total.
    pub dropped: u64,
    /// Its series.
    pub series: *const SeriesView,
    /// Their number; perhaps 0.
    pub series_count: usize,
}

/// A snapshot that is read family by family, by one thread at a time.
pub struct Reading {
    snapshot: Snapshot,
    next: usize,
    family: FamilyData,
    /// For the snapshot at the end, unless it is of one family alone.
    kept: Option<&'static Kept<Snapshot>>,
}

/// Takes a snapshot of the family of a name, or of all families if the name is empty;
/// talea_read_next reads it. The name is as samples have it (a counter's with `_total`). End the
/// reading by talea_read_end.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_read_begin(
    registry: *const Registry,
    name: Text,
    reading: *mut *mut Reading,
) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let (registry, place) = (required(registry)?, place(reading)?);
        let reading = Reading::of(registry, name.as_str()?);
        place.write(Box::into_raw(Box::new(reading)));
        Ok(())
    })
}

/// Ends the windows of families that keep samples at another time, in milliseconds since 1970: for
/// tests that choose the time. Later observations are not left out.
///
/// TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_reading_at(reading: *mut Reading, unix_millis: u64) -> Status {
    guarded(|| {
        // SAFETY: the header demands one that was begun and not ended, and that no other thread
        // uses.
        let reading = unsafe { reading.as_mut() }.ok_or(Status::Null)?;
        reading.snapshot.show_samples(time_of(unix_millis));
        Ok(())
    })
}

/// Reads the next family, in the order of names; null after the last. All that it points to stays
/// until the next call.
///
/// TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_read_next(
    reading: *mut Reading,
    family: *mut *const FamilyView,
) -> Status {
    // SAFETY: the header demands a reading that was begun and not ended, and that no other thread
    // uses.
    guarded(|| unsafe {
        let (reading, place) = (reading.as_mut().ok_or(Status::Null)?, place(family)?);
        place.write(reading.next().map_or(null(), std::ptr::from_ref));
        Ok(())
    })
}

/// Ends a reading, at any time. The memory of one of all families stays for the registry's next
/// one. Null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_read_end(reading: *mut Reading) {
    // SAFETY: `talea_read_begin` made it, and it is ended once.
    guarded(|| unsafe {
        if !reading.is_null() {
            drop(Box::from_raw(reading));
        }
        Ok(())
    });
}

impl Reading {
    fn of(registry: &'static Registry, name: &str) -> Self {
        let _inside = fork::enter();
        let _blocked = WithoutSignals::new();
        let kept = name.is_empty().then_some(&registry.kept_reading);
        let mut snapshot = kept.and_then(Kept::take).unwrap_or_default();
        registry.registry.snapshot_into(&mut snapshot, |found| name.is_empty() || found == name);
        Self { snapshot, next: 0, family: FamilyData::default(), kept }
    }

    fn next(&mut self) -> Option<&FamilyView> {
        let found = self.snapshot.family_at(self.next)?;
        self.next += 1;
        Some(self.family.fill(&found))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(kept) = self.kept {
            let _inside = fork::enter();
            kept.put(std::mem::take(&mut self.snapshot));
        }
    }
}

/// The data that the view of a family points to.
#[derive(Default)]
struct FamilyData {
    /// Names of samples, label names and values, one after the other.
    text: String,
    labels: Vec<Label>,
    samples: Vec<Sample>,
    series: Vec<SeriesView>,
    bounds: Bounds,
    view: Option<FamilyView>,
}

/// The texts of the last bounds, by their place in a series: the next series mostly has the same.
#[derive(Default)]
struct Bounds(Vec<(f64, Vec<u8>)>);

impl Bounds {
    fn text(&mut self, place: usize, bound: f64) -> &str {
        while self.0.len() <= place {
            // No bound is NaN.
            self.0.push((f64::NAN, Vec::new()));
        }
        let (known, text) = &mut self.0[place];
        if known.to_bits() != bound.to_bits() {
            *known = bound;
            text.clear();
            write_canonical(text, bound);
        }
        std::str::from_utf8(text).unwrap_or_default()
    }
}

const NO_TEXT: Text = Text { data: null(), len: 0 };

/// Appends to a text that may still move: the data is the distance from its beginning.
fn append(text: &mut String, parts: [&str; 2]) -> Text {
    let begin = text.len();
    parts.iter().for_each(|part| text.push_str(part));
    Text { data: without_provenance(begin), len: text.len() - begin }
}

impl FamilyData {
    fn fill(&mut self, family: &FamilySnapshot<'_>) -> &FamilyView {
        let Self { text, labels, samples, series, bounds, .. } = self;
        text.clear();
        labels.clear();
        samples.clear();
        series.clear();
        let name = family.name();
        let names = [
            [name, ""],
            [name, "_bucket"],
            [name, "_sum"],
            [name, "_count"],
            ["le", ""],
            ["quantile", ""],
        ]
        .map(|parts| append(text, parts));
        for one in family.series() {
            let (label_count, sample_count) = (labels.len(), samples.len());
            for (name, value) in one.labels() {
                let name = append(text, [name, ""]);
                labels.push(Label { name, value: append(text, [&value, ""]) });
            }
            append_samples(&names, &one, text, samples, bounds);
            let window = one.window_totals();
            let (window_count, window_sum) = window.unwrap_or_default();
            series.push(SeriesView {
                labels: null(),
                label_count: labels.len() - label_count,
                samples: null(),
                sample_count: samples.len() - sample_count,
                is_sampled: window.is_some(),
                window_count,
                window_sum,
            });
        }
        // From here on nothing moves.
        let begin: *const c_char = text.as_ptr().cast();
        let settle = |text: &mut Text| text.data = begin.wrapping_byte_add(text.data.addr());
        let own = samples.iter_mut().map(|sample| &mut sample.label);
        labels.iter_mut().chain(own).for_each(|label| {
            settle(&mut label.name);
            settle(&mut label.value);
        });
        samples.iter_mut().for_each(|sample| settle(&mut sample.name));
        let (mut label, mut sample) = (labels.as_ptr(), samples.as_ptr());
        for one in &mut *series {
            (one.labels, one.samples) = (label, sample);
            label = label.wrapping_add(one.label_count);
            sample = sample.wrapping_add(one.sample_count);
        }
        self.view.insert(FamilyView {
            name: Text::of(family.name()),
            kind: Text::of(family.kind().as_str()),
            help: Text::of(family.help()),
            dropped: family.dropped(),
            series: series.as_ptr(),
            series_count: series.len(),
        })
    }
}

/// The names of samples: the family's, and that with `_bucket`, `_sum` and `_count`; and of their
/// labels: `le` and `quantile`.
type Names = [Text; 6];

fn append_samples(
    names: &Names,
    series: &SeriesSnapshot<'_>,
    text: &mut String,
    samples: &mut Vec<Sample>,
    bounds: &mut Bounds,
) {
    let &[family, bucket, sum, count, le, quantile] = names;
    const NO_LABEL: Label = Label { name: NO_TEXT, value: NO_TEXT };
    let plain = |samples: &mut Vec<Sample>, name, number| {
        samples.push(Sample { name, label: NO_LABEL, bound: 0.0, number });
    };
    let mut bounded = |samples: &mut Vec<Sample>, name, label, place, bound, number| {
        let label = Label { name: label, value: append(text, [bounds.text(place, bound), ""]) };
        samples.push(Sample { name, label, bound, number });
    };
    match series.value() {
        Value::Unsigned(n) => plain(samples, family, Number::unsigned(n)),
        Value::Signed(n) => plain(samples, family, Number::signed(n)),
        Value::Float(x) => plain(samples, family, Number::double(x)),
        Value::Histogram(histogram) => {
            for (place, (bound, below)) in histogram.cumulative().enumerate() {
                bounded(samples, bucket, le, place, bound, Number::unsigned(below));
            }
            plain(samples, sum, Number::double(histogram.sum()));
            plain(samples, count, Number::unsigned(histogram.count()));
        }
        Value::Summary(summary) => {
            for (place, (bound, value)) in summary.quantiles.into_iter().enumerate() {
                bounded(samples, family, quantile, place, bound, Number::double(value));
            }
            plain(samples, sum, Number::double(summary.sum));
            plain(samples, count, Number::unsigned(summary.count));
        }
    }
}
