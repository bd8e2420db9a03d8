//! Reading values: what a scrape shows, as numbers and texts rather than as a page.

use talea::{FamilySnapshot, SeriesSnapshot, Snapshot, Value};

use crate::boundary::{guarded, place, required};
use crate::fork::{self, WithoutSignals};
use crate::kept::Kept;
use crate::metric::time_of;
use crate::number::Number;
use crate::registry::Registry;
use crate::status::Status;
use crate::text::Text;

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
    /// How many these are.
    pub label_count: usize,
    /// Its samples.
    pub samples: *const Sample,
    /// How many these are.
    pub sample_count: usize,
    /// Whether it keeps samples, TALEA_FAMILY_SAMPLED: then the next two tell of its window.
    pub is_sampled: bool,
    /// How many observations there were in the window of its quantiles.
    pub window_count: u64,
    /// Their sum.
    pub window_sum: f64,
}

/// A family with its series, in the order of their birth.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FamilyView {
    /// The name, as samples have it (a counter's with `_total`).
    pub name: Text,
    /// counter, gauge, histogram, summary, info or stateset.
    pub kind: Text,
    /// The help.
    pub help: Text,
    /// How often label values counted in its overflow series for want of room.
    pub dropped: u64,
    /// Its series.
    pub series: *const SeriesView,
    /// How many these are; perhaps 0.
    pub series_count: usize,
}

/// A snapshot that is read family by family, by one thread at a time.
pub struct Reading {
    snapshot: Snapshot,
    next: usize,
    family: FamilyRoom,
    /// Where the snapshot goes at the end, unless it is of some families alone.
    kept: Option<&'static Kept<Snapshot>>,
}

/// Takes a snapshot of the family of a name, which is as samples have it (a counter's with
/// `_total`), or of all where the name is empty; talea_read_next reads it. End it by
/// talea_read_end.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_read_begin(
    registry: *const Registry,
    name: Text,
    reading: *mut *mut Reading,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let (registry, place) = unsafe { (required(registry)?, place(reading)?) };
        // SAFETY: the same.
        let reading = Reading::of(registry, unsafe { name.as_str()? });
        place.write(Box::into_raw(Box::new(reading)));
        Ok(())
    })
}

/// Has families that keep samples tell of windows that end at another time, in milliseconds since
/// 1970: for tests of what time does. What was observed later than that is not left out.
///
/// TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_reading_at(reading: *mut Reading, unix_millis: u64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much: it is one that was begun and not ended, and no
        // other thread uses it.
        let reading = unsafe { reading.as_mut() }.ok_or(Status::Null)?;
        reading.snapshot.show_samples(time_of(unix_millis));
        Ok(())
    })
}

/// Reads the next family, by name; null after the last. All that it points to stays until the
/// next call.
///
/// TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_read_next(
    reading: *mut Reading,
    family: *mut *const FamilyView,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much: it is one that was begun and not ended, and no
        // other thread uses it.
        let reading = unsafe { reading.as_mut() }.ok_or(Status::Null)?;
        // SAFETY: the header asks for as much.
        let place = unsafe { place(family)? };
        place.write(reading.next().map_or(std::ptr::null(), std::ptr::from_ref));
        Ok(())
    })
}

/// Ends a reading, at any time. Where it was of all families, its memory stays for the registry's
/// next one. Null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_read_end(reading: *mut Reading) {
    guarded(|| {
        if !reading.is_null() {
            // SAFETY: `talea_read_begin` made it so, and it is ended once.
            drop(unsafe { Box::from_raw(reading) });
        }
        Ok(())
    });
}

impl Reading {
    fn of(registry: &'static Registry, name: &str) -> Self {
        let _inside = fork::enter();
        let _alone = WithoutSignals::new();
        let kept = name.is_empty().then_some(&registry.kept_reading);
        let mut snapshot = kept.and_then(Kept::take).unwrap_or_default();
        let wants = |found: &str| name.is_empty() || found == name;
        registry.registry.snapshot_into(&mut snapshot, wants);
        Self { snapshot, next: 0, family: FamilyRoom::default(), kept }
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
struct FamilyRoom {
    /// Names of samples, label names and values, one after the other.
    text: String,
    labels: Vec<Label>,
    samples: Vec<Sample>,
    series: Vec<SeriesView>,
    label_places: Vec<(Place, Place)>,
    drafts: Vec<Draft>,
    bounds: Bounds,
    view: Option<FamilyView>,
}

/// The texts of the bounds that samples had last, by their place in a series: the next has mostly
/// the same.
#[derive(Default)]
struct Bounds(Vec<(f64, String)>);

impl Bounds {
    fn text(&mut self, place: usize, bound: f64) -> &str {
        while self.0.len() <= place {
            self.0.push((0.0, shown(0.0)));
        }
        let (known, text) = &mut self.0[place];
        if known.to_bits() != bound.to_bits() {
            (*known, *text) = (bound, shown(bound));
        }
        text
    }
}

/// A text in the room, which may move while that is filled.
type Place = (usize, usize);

impl FamilyRoom {
    fn fill(&mut self, family: &FamilySnapshot<'_>) -> &FamilyView {
        let Self { text, labels, samples, series, label_places, drafts, bounds, .. } = self;
        text.clear();
        labels.clear();
        samples.clear();
        series.clear();
        label_places.clear();
        drafts.clear();
        let mut filling = Filling { text, label_places, samples: drafts, bounds };
        let mut ends = Vec::new();
        let names = Names::of(family.name(), filling.text);
        for one in family.series() {
            filling.labels(&one);
            filling.samples(&names, &one);
            let lately = one.window_totals();
            ends.push((filling.label_places.len(), filling.samples.len(), lately));
        }
        // From here on the text stays where it is.
        let text = &*text;
        let at = |(from, to): Place| Text::of(text.get(from..to).unwrap_or_default());
        let label = |&(name, value): &(Place, Place)| Label { name: at(name), value: at(value) };
        labels.extend(label_places.iter().map(label));
        samples.extend(drafts.iter().map(|draft| Sample {
            name: at(draft.name),
            label: label(&draft.label),
            bound: draft.bound,
            number: draft.number,
        }));
        let (mut first_label, mut first_sample) = (0, 0);
        for (label_end, sample_end, lately) in ends {
            let (own, shown) =
                (&labels[first_label..label_end], &samples[first_sample..sample_end]);
            series.push(SeriesView {
                labels: own.as_ptr(),
                label_count: own.len(),
                samples: shown.as_ptr(),
                sample_count: shown.len(),
                is_sampled: lately.is_some(),
                window_count: lately.map_or(0, |(count, _)| count),
                window_sum: lately.map_or(0.0, |(_, sum)| sum),
            });
            (first_label, first_sample) = (label_end, sample_end);
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

/// The names of a family's samples.
struct Names {
    family: Place,
    bucket: Place,
    sum: Place,
    count: Place,
    le: Place,
    quantile: Place,
}

impl Names {
    fn of(name: &str, text: &mut String) -> Self {
        let mut with = |[one, other]: [&str; 2]| {
            let (from, _) = put(text, one);
            (from, put(text, other).1)
        };
        Self {
            family: with([name, ""]),
            bucket: with([name, "_bucket"]),
            sum: with([name, "_sum"]),
            count: with([name, "_count"]),
            le: with(["le", ""]),
            quantile: with(["quantile", ""]),
        }
    }
}

fn put(text: &mut String, more: &str) -> Place {
    let from = text.len();
    text.push_str(more);
    (from, text.len())
}

/// A sample whose texts may still move.
struct Draft {
    name: Place,
    label: (Place, Place),
    bound: f64,
    number: Number,
}

/// A family's series on their way into the room.
struct Filling<'a> {
    text: &'a mut String,
    label_places: &'a mut Vec<(Place, Place)>,
    samples: &'a mut Vec<Draft>,
    bounds: &'a mut Bounds,
}

impl Filling<'_> {
    fn labels(&mut self, series: &SeriesSnapshot<'_>) {
        for (name, value) in series.labels() {
            let label = (put(self.text, name), put(self.text, &value));
            self.label_places.push(label);
        }
    }

    fn samples(&mut self, names: &Names, series: &SeriesSnapshot<'_>) {
        const NONE: (Place, Place) = ((0, 0), (0, 0));
        let mut push = |name, label, bound, number| {
            self.samples.push(Draft { name, label, bound, number });
        };
        match series.value() {
            Value::Unsigned(n) => push(names.family, NONE, 0.0, Number::unsigned(n)),
            Value::Signed(n) => push(names.family, NONE, 0.0, Number::signed(n)),
            Value::Float(x) => push(names.family, NONE, 0.0, Number::double(x)),
            Value::Histogram(histogram) => {
                for (place, (bound, count)) in histogram.cumulative().enumerate() {
                    let text = put(self.text, self.bounds.text(place, bound));
                    push(names.bucket, (names.le, text), bound, Number::unsigned(count));
                }
                push(names.sum, NONE, 0.0, Number::double(histogram.sum()));
                push(names.count, NONE, 0.0, Number::unsigned(histogram.count()));
            }
            Value::Summary(summary) => {
                for (place, (quantile, value)) in summary.quantiles.into_iter().enumerate() {
                    let text = put(self.text, self.bounds.text(place, quantile));
                    push(names.family, (names.quantile, text), quantile, Number::double(value));
                }
                push(names.sum, NONE, 0.0, Number::double(summary.sum));
                push(names.count, NONE, 0.0, Number::unsigned(summary.count));
            }
        }
    }
}

/// A bound as the text format has it: with an exponent from a million on, and below a
/// ten-thousandth.
fn shown(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if x == 0.0 || (1e-4..1e6).contains(&x.abs()) {
        return format!("{x}");
    }
    let text = format!("{x:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
