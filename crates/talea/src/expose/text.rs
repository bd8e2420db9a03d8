//! The Prometheus text format, version 0.0.4. Source: "Exposition formats" in
//! the Prometheus documentation.

use talea_region::Number;

use crate::metric::Kind;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot, Value};

/// What the format is served as.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Appends the text.
pub(crate) fn text(snapshot: &Snapshot, out: &mut Vec<u8>) {
    snapshot.families().for_each(|family| write_family(out, &family));
}

fn write_family(out: &mut Vec<u8>, family: &FamilySnapshot<'_>) {
    let mut series = family.series().peekable();
    if series.peek().is_none() {
        return;
    }
    let name = family.name();
    push(out, &["# HELP ", name, " "]);
    // Label values also escape quotes; the help does not.
    for byte in family.help().bytes() {
        match byte {
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            _ => out.push(byte),
        }
    }
    push(out, &["\n# TYPE ", name, " ", type_word(family.kind()), "\n"]);
    match (family.kind(), family.number()) {
        (Kind::Histogram, _) => series.for_each(|series| write_histogram(out, name, &series)),
        (_, Number::Float) => series.for_each(|series| {
            sample(out, name, &series, |out| write_float(out, f64::from_bits(series.word())));
        }),
        (Kind::Gauge, Number::Integer) => series.for_each(|series| {
            sample(out, name, &series, |out| write_integer(out, series.word() as i64));
        }),
        (_, Number::Integer) => series.for_each(|series| {
            sample(out, name, &series, |out| write_integer(out, series.word()));
        }),
    }
}

/// The word after `# TYPE`: what this format does not know are gauges.
fn type_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Info | Kind::StateSet => Kind::Gauge.as_str(),
        known => known.as_str(),
    }
}

fn write_histogram(out: &mut Vec<u8>, name: &str, series: &SeriesSnapshot<'_>) {
    let Value::Histogram(histogram) = series.value() else { return };
    let labels = series.label_bytes();
    for (bound, count) in histogram.cumulative() {
        push(out, &[name, "_bucket{"]);
        out.extend_from_slice(labels);
        push(out, &[if labels.is_empty() { "" } else { "," }, "le=\""]);
        write_float(out, bound);
        push(out, &["\"} "]);
        write_integer(out, count);
        out.push(b'\n');
    }
    let named = |out: &mut Vec<u8>, ending: &str| {
        push(out, &[name, ending]);
        write_labels(out, labels);
    };
    named(out, "_sum");
    write_float(out, histogram.sum());
    out.push(b'\n');
    named(out, "_count");
    write_integer(out, histogram.count());
    out.push(b'\n');
}

#[inline]
fn sample(
    out: &mut Vec<u8>,
    name: &str,
    series: &SeriesSnapshot<'_>,
    value: impl FnOnce(&mut Vec<u8>),
) {
    let labels = series.label_bytes();
    // All of the line, and the longest number.
    out.reserve(name.len() + labels.len() + 32);
    out.extend_from_slice(name.as_bytes());
    write_labels(out, labels);
    value(out);
    out.push(b'\n');
}

/// The labels in their braces, if there are any, and the blank before a value.
#[inline]
fn write_labels(out: &mut Vec<u8>, labels: &[u8]) {
    if !labels.is_empty() {
        out.push(b'{');
        out.extend_from_slice(labels);
        out.push(b'}');
    }
    out.push(b' ');
}

fn push(out: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
}

#[inline]
fn write_integer(out: &mut Vec<u8>, n: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

pub(crate) fn write_float(out: &mut Vec<u8>, x: f64) {
    if x.is_nan() {
        push(out, &["NaN"]);
    } else if x.is_infinite() {
        push(out, &[if x > 0.0 { "+Inf" } else { "-Inf" }]);
    } else if x == x.trunc() && x.abs() < 1e15 {
        // 10 rather than 10.0: as Prometheus itself writes it.
        if x == 0.0 && x.is_sign_negative() {
            out.push(b'-');
        }
        write_integer(out, x as i64);
    } else {
        push(out, &[ryu::Buffer::new().format_finite(x)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_prometheus_reads_them() {
        let shown = |x| {
            let mut out = Vec::new();
            write_float(&mut out, x);
            String::from_utf8(out).unwrap()
        };
        for (x, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (10.0, "10"),
            (-2.0, "-2"),
            (0.005, "0.005"),
            (1e300, "1e300"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(shown(x), text);
        }
        for x in [0.1, 1.0 / 3.0, f64::MAX, f64::MIN_POSITIVE, 123_456_789.125, 2f64.powi(60)] {
            assert_eq!(shown(x).parse::<f64>().unwrap(), x);
        }
    }
}
