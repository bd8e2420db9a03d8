//! Numbers as text.

/// An integer.
#[inline]
pub(crate) fn write_integer(out: &mut Vec<u8>, n: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// A float in the fewest digits that are read back as the same: `10` rather than
/// `10.0`, as Prometheus itself writes it.
pub(crate) fn write_float(out: &mut Vec<u8>, x: f64) {
    if x.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if x.is_infinite() {
        out.extend_from_slice(if x > 0.0 { b"+Inf" } else { b"-Inf" });
    } else if x == x.trunc() && x.abs() < 1e15 {
        if x == 0.0 && x.is_sign_negative() {
            // Readers that take what has no point for an integer lose the sign of `-0`.
            out.extend_from_slice(b"-0.0");
        } else {
            write_integer(out, x as i64);
        }
    } else {
        out.extend_from_slice(ryu::Buffer::new().format_finite(x).as_bytes());
    }
}

/// A float as OpenMetrics wants it in `le` and `quantile`: `10.0` rather than `10`.
pub(crate) fn write_canonical_float(out: &mut Vec<u8>, x: f64) {
    let from = out.len();
    write_float(out, x);
    if x.is_finite() && !out[from..].iter().any(|byte| matches!(byte, b'.' | b'e')) {
        out.extend_from_slice(b".0");
    }
}

/// Nanoseconds since 1970 in seconds, to the last of them.
pub(crate) fn write_seconds(out: &mut Vec<u8>, nanos: u64) {
    write_integer(out, nanos / 1_000_000_000);
    let mut rest = nanos % 1_000_000_000;
    if rest > 0 {
        let mut digits = *b".000000000";
        for digit in digits[1..].iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        let zeros = digits.iter().rev().take_while(|&&digit| digit == b'0').count();
        out.extend_from_slice(&digits[..digits.len() - zeros]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_written_as_prometheus_reads_them() {
        for (x, shown, canonical) in [
            (0.0, "0", "0.0"),
            (-0.0, "-0.0", "-0.0"),
            (10.0, "10", "10.0"),
            (-2.0, "-2", "-2.0"),
            (0.005, "0.005", "0.005"),
            (1e300, "1e300", "1e300"),
            (5e-324, "5e-324", "5e-324"),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf"),
            (f64::NAN, "NaN", "NaN"),
        ] {
            assert_eq!(text(|out| write_float(out, x)), shown);
            assert_eq!(text(|out| write_canonical_float(out, x)), canonical);
        }
        for x in [0.1, 1.0 / 3.0, f64::MAX, f64::MIN_POSITIVE, 123_456_789.125, 2f64.powi(60)] {
            assert_eq!(text(|out| write_float(out, x)).parse::<f64>().unwrap(), x);
        }
    }

    #[test]
    fn times_keep_each_nanosecond() {
        for (nanos, shown) in [
            (0, "0"),
            (1, "0.000000001"),
            (1_700_000_000_120_000_000, "1700000000.12"),
            (1_700_000_000_000_000_000, "1700000000"),
        ] {
            assert_eq!(text(|out| write_seconds(out, nanos)), shown);
        }
    }
}
