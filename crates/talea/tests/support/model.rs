//! Pages in the types of talea-page: what each way of filling them must agree in.

use std::time::{Duration, SystemTime};

use talea::model::{Family, Kind, Series, Value};
use talea::{Escaping, Format, Scrapable, Scraper};

/// Half of a microsecond: times in OpenMetrics are floats of seconds.
const ROUNDING: Duration = Duration::from_nanos(500);

/// What a format shows of families.
pub(crate) fn as_shown_by(format: Format, mut families: Vec<Family>) -> Vec<Family> {
    for family in &mut families {
        if format != Format::OpenMetrics {
            family.unit.clear();
            if matches!(family.kind, Kind::Info | Kind::StateSet) {
                family.kind = Kind::Gauge;
            }
        }
        family.series.iter_mut().for_each(|series| reduce(series, format));
    }
    // An info may have the name of a gauge in another part.
    families.dedup_by(|next, last| {
        let is_same = (&next.name, next.kind) == (&last.name, last.kind);
        if is_same {
            last.series.append(&mut next.series);
        }
        is_same
    });
    families
}

fn reduce(series: &mut Series, format: Format) {
    if format == Format::Text {
        series.created = None;
    }
    match &mut series.value {
        Value::Number(number) if format == Format::Text => number.exemplar = None,
        Value::Histogram(histogram) if format != Format::Protobuf => {
            histogram.native = None;
            histogram.exemplars.clear();
            if format == Format::Text {
                histogram.classic.iter_mut().for_each(|bucket| bucket.exemplar = None);
            }
            let goes_below_zero = histogram.classic[0].upper_bound < 0.0;
            if format == Format::OpenMetrics && goes_below_zero {
                histogram.sum = f64::NAN;
            }
        }
        _ => {}
    }
}

/// A page directly, and read back from a format.
pub(crate) fn both_ways<S: Scrapable>(of: &S, format: Format) -> [Vec<Family>; 2] {
    let mut scraper = Scraper::new(of);
    scraper.format(format, Escaping::AllowUtf8);
    scraper.begin(|_| true);
    let mut page = Vec::new();
    while scraper.write_some(&mut page, usize::MAX) {}
    let read =
        talea_parse::page(&page).unwrap_or_else(|it| panic!("{it}\n{}", page.escape_ascii()));
    [scraper.page().to_families(), read]
}

/// Checks that families are the same, floats to the bit but for the payload of a NaN.
#[track_caller]
pub(crate) fn assert_same(mut found: Vec<Family>, mut expected: Vec<Family>, way: &str) {
    let [times, expected_times] = [&mut found, &mut expected].map(|all| take_times(all));
    let [found, expected] = [found, expected].map(|all| format!("{all:#?}"));
    assert_eq!(found, expected, "{way}");
    assert_eq!(times.len(), expected_times.len(), "{way}");
    for (time, expected) in times.iter().zip(&expected_times) {
        let difference = time.max(expected).duration_since(*time.min(expected)).unwrap();
        assert!(difference <= ROUNDING, "{way}: {time:?} instead of {expected:?}");
    }
}

/// Takes all times out of families.
fn take_times(families: &mut [Family]) -> Vec<SystemTime> {
    let mut times = Vec::new();
    for series in families.iter_mut().flat_map(|family| &mut family.series) {
        times.extend(series.created.take());
        match &mut series.value {
            Value::Number(number) => {
                times.extend(number.exemplar.as_mut().and_then(|it| it.time.take()));
            }
            Value::Histogram(histogram) => {
                let classic = histogram.classic.iter_mut();
                let all = classic.filter_map(|bucket| bucket.exemplar.as_mut());
                times.extend(all.chain(&mut histogram.exemplars).filter_map(|it| it.time.take()));
            }
            Value::Summary(_) => {}
        }
    }
    times
}

/// Checks that a page says in protobuf what it says directly.
#[track_caller]
pub(crate) fn assert_protobuf_agrees<S: Scrapable>(of: &S) {
    let [direct, read] = both_ways(of, Format::Protobuf);
    assert_same(read, as_shown_by(Format::Protobuf, direct), "protobuf");
}
