//! The values of OpenMetrics 2.0: a histogram or summary is one sample, `{count:2,sum:1.2,bucket:[0.5:1,+Inf:2]}`. Source:
//! the OpenMetrics specification, 2.0.0-rc0.

use super::lines::{Bounds, push};
use super::native_spans::NativeSpans;
use super::number::{write_float, write_integer, write_seconds};
use crate::histogram::native_buckets::NativeBuckets;
use crate::snapshot::{SeriesSnapshot, Shown};

/// What writes such values.
#[derive(Clone, Debug, Default)]
pub(super) struct Composite {
    native: NativeBuckets,
    spans: NativeSpans,
}

impl Composite {
    /// Native buckets, if there are any, and classic ones, unless these are the one of `+Inf` beside native ones.
    pub(super) fn histogram(
        &mut self,
        out: &mut Vec<u8>,
        series: &SeriesSnapshot<'_>,
        thresholds: &Bounds,
        counts: &[u64],
        count: u64,
    ) {
        push(out, &["{count:"]);
        write_integer(out, count);
        push(out, &[",sum:"]);
        write_float(out, series.sum());
        let has_native = series.native_into(&mut self.native);
        if has_native {
            self.native(out);
        }
        if !has_native || counts.len() > 1 {
            push(out, &[",bucket:["]);
            for (n, (bound, count)) in thresholds.iter().zip(counts).enumerate() {
                push(out, &[if n == 0 { "" } else { "," }]);
                out.extend_from_slice(bound);
                out.push(b':');
                write_integer(out, *count);
            }
            out.push(b']');
        }
        out.push(b'}');
    }

    fn native(&mut self, out: &mut Vec<u8>) {
        let Self { native, spans } = self;
        push(out, &[",schema:"]);
        write_integer(out, native.schema());
        push(out, &[",zero_threshold:"]);
        write_float(out, native.zero_threshold());
        push(out, &[",zero_count:"]);
        write_integer(out, native.zero_count());
        for (sign, buckets) in [("negative", native.negative()), ("positive", native.positive())] {
            spans.fill(buckets);
            if buckets.is_empty() {
                continue;
            }
            push(out, &[",", sign, "_spans:["]);
            for (n, (offset, len)) in spans.spans.iter().enumerate() {
                push(out, &[if n == 0 { "" } else { "," }]);
                write_integer(out, *offset);
                out.push(b':');
                write_integer(out, *len);
            }
            push(out, &["],", sign, "_buckets:["]);
            for (n, count) in spans.counts.iter().enumerate() {
                push(out, &[if n == 0 { "" } else { "," }]);
                write_integer(out, *count);
            }
            out.push(b']');
        }
    }
}

pub(super) fn write_summary(out: &mut Vec<u8>, series: &SeriesSnapshot<'_>, quantiles: &Bounds) {
    push(out, &["{count:"]);
    write_integer(out, series.count());
    push(out, &[",sum:"]);
    write_float(out, series.sum());
    push(out, &[",quantile:["]);
    for (n, (quantile, (_, value))) in quantiles.iter().zip(series.quantiles()).enumerate() {
        push(out, &[if n == 0 { "" } else { "," }]);
        out.extend_from_slice(quantile);
        out.push(b':');
        Shown::Float(value).write(out);
    }
    push(out, &["]}"]);
}

/// When the series began to count, behind its value.
pub(super) fn write_start(out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
    let Some(created) = series.created_nanos() else { return };
    push(out, &[" st@"]);
    write_seconds(out, created);
}
