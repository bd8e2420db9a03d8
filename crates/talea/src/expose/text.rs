//! The Prometheus text format, version 0.0.4. Source: "Exposition formats" in
//! the Prometheus documentation.

use crate::metric::Kind;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot, Value};

/// What the format is served as.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn text(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    snapshot.families().for_each(|family| write_family(&mut out, &family));
    out
}

fn write_family(out: &mut String, family: &FamilySnapshot<'_>) {
    let mut series = family.series().peekable();
    if series.peek().is_none() {
        return;
    }
    let name = family.name();
    out.extend(["# HELP ", name, " "]);
    // Label values also escape quotes; the help does not.
    for c in family.help().chars() {
        match c {
            '\\' => out.push_str(r"\\"),
            '\n' => out.push_str(r"\n"),
            _ => out.push(c),
        }
    }
    out.extend(["\n# TYPE ", name, " ", type_word(family.kind()), "\n"]);
    series.for_each(|series| write_series(out, name, family.kind(), &series));
}

/// The word after `# TYPE`: what this format does not know are gauges.
fn type_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Info | Kind::StateSet => Kind::Gauge.as_str(),
        known => known.as_str(),
    }
}

fn write_series(out: &mut String, name: &str, kind: Kind, series: &SeriesSnapshot<'_>) {
    let labels = series.label_text();
    match series.value() {
        Value::Histogram(histogram) => {
            debug_assert_eq!(kind, Kind::Histogram);
            for (bound, count) in histogram.cumulative() {
                out.extend([
                    name,
                    "_bucket{",
                    labels,
                    if labels.is_empty() { "" } else { "," },
                    "le=\"",
                ]);
                write_float(out, bound);
                out.push_str("\"} ");
                write_integer(out, count);
                out.push('\n');
            }
            sample(out, name, "_sum", labels, |out| write_float(out, histogram.sum()));
            sample(out, name, "_count", labels, |out| write_integer(out, histogram.count()));
        }
        Value::Unsigned(n) => sample(out, name, "", labels, |out| write_integer(out, n)),
        Value::Signed(n) => sample(out, name, "", labels, |out| write_integer(out, n)),
        Value::Float(x) => sample(out, name, "", labels, |out| write_float(out, x)),
    }
}

fn sample(
    out: &mut String,
    name: &str,
    ending: &str,
    labels: &str,
    value: impl FnOnce(&mut String),
) {
    out.extend([name, ending]);
    if !labels.is_empty() {
        out.extend(["{", labels, "}"]);
    }
    out.push(' ');
    value(out);
    out.push('\n');
}

fn write_integer(out: &mut String, n: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(n));
}

pub(crate) fn write_float(out: &mut String, x: f64) {
    if x.is_nan() {
        out.push_str("NaN");
    } else if x.is_infinite() {
        out.push_str(if x > 0.0 { "+Inf" } else { "-Inf" });
    } else if x == x.trunc() && x.abs() < 1e15 {
        // 10 rather than 10.0: as Prometheus itself writes it.
        if x == 0.0 && x.is_sign_negative() {
            out.push('-');
        }
        write_integer(out, x as i64);
    } else {
        out.push_str(ryu::Buffer::new().format_finite(x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_prometheus_reads_them() {
        let shown = |x| {
            let mut out = String::new();
            write_float(&mut out, x);
            out
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
