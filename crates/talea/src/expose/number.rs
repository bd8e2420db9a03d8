//! Numbers as text.

use crate::snapshot::Shown;

#[inline]
pub(crate) fn write_integer(out: &mut Vec<u8>, n: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Puts the digits of a number into a line, if there is room; returns where they end.
#[inline(always)]
pub(crate) fn put_digits(line: &mut [u8], at: usize, n: u64) -> Option<usize> {
    // Many counts are small. And where this branch is foreseen, the next line can begin
    // before the number of digits is known.
    if n < 10 {
        *line.get_mut(at)? = b'0' + n as u8;
        return Some(at + 1);
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(n).as_bytes();
    line.get_mut(at..at + digits.len())?.copy_from_slice(digits);
    Some(at + digits.len())
}

/// A float in the fewest digits that are read back as the same: `10` rather than
/// `10.0`, as Prometheus itself writes it.
pub(crate) fn write_float(out: &mut Vec<u8>, x: f64) {
    if x.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if x.is_infinite() {
        out.extend_from_slice(if x > 0.0 { b"+Inf" } else { b"-Inf" });
    } else if let Some(whole) = whole(x) {
        write_integer(out, whole);
    } else {
        out.extend_from_slice(ryu::Buffer::new().format_finite(x).as_bytes());
    }
}

/// Puts a float into a line, if there is room; returns where it ends.
#[inline(never)]
pub(crate) fn put_float(line: &mut [u8], at: usize, x: f64) -> Option<usize> {
    let (mut buffer, mut digits) = (ryu::Buffer::new(), itoa::Buffer::new());
    let text = match whole(x) {
        Some(whole) => digits.format(whole),
        None => buffer.format(x),
    };
    // Infinity is written with a sign.
    let text = match x {
        f64::INFINITY => "+Inf",
        f64::NEG_INFINITY => "-Inf",
        _ => text,
    };
    line.get_mut(at..at + text.len())?.copy_from_slice(text.as_bytes());
    Some(at + text.len())
}

/// A float that is written as a whole number. Readers that take what has no point for an integer
/// lose the sign of `-0`, so that is not one.
#[inline]
fn whole(x: f64) -> Option<i64> {
    let whole = x as i64;
    let is_whole = whole as f64 == x && x.abs() < 1e15 && (whole != 0 || x.is_sign_positive());
    is_whole.then_some(whole)
}

/// A float as OpenMetrics requires it of thresholds: `10.0` rather than `10`. Thresholds and quantiles are
/// written so in both text formats, since they are part of a series' name. Source: "Canonical Numbers" in the
/// OpenMetrics specification, 1.0.0.
pub fn write_canonical(out: &mut Vec<u8>, x: f64) {
    let from = out.len();
    write_as_go(out, x);
    if x.is_finite() && !out[from..].iter().any(|byte| matches!(byte, b'.' | b'e')) {
        out.extend_from_slice(b".0");
    }
}

/// A float as Go writes it: with an exponent from a million on, and below a ten-thousandth.
fn write_as_go(out: &mut Vec<u8>, x: f64) {
    let is_usual = x == 0.0 || (1e-4..1e6).contains(&x.abs());
    if is_usual || !x.is_finite() {
        return write_float(out, x);
    }
    let text = format!("{x:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    out.extend_from_slice(format!("{digits}e{sign}{:02}", exponent.abs()).as_bytes());
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

impl Shown {
    /// The number as a float; 0 for a histogram or a summary.
    pub(super) fn as_f64(self) -> f64 {
        match self {
            Self::Unsigned(n) => n as f64,
            Self::Signed(n) => n as f64,
            Self::Float(x) => x,
            Self::Histogram | Self::Summary => 0.0,
        }
    }

    /// Puts a number into a line, if it is one; returns where it ends.
    #[inline(always)]
    pub(super) fn put(self, line: &mut [u8], at: usize) -> Option<usize> {
        match self {
            Self::Unsigned(n) => put_digits(line, at, n),
            Self::Signed(n) if n < 0 => {
                *line.get_mut(at)? = b'-';
                put_digits(line, at + 1, n.unsigned_abs())
            }
            Self::Signed(n) => put_digits(line, at, n.unsigned_abs()),
            Self::Float(x) => put_float(line, at, x),
            Self::Histogram | Self::Summary => None,
        }
    }

    #[inline(always)]
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Unsigned(n) => write_integer(out, n),
            Self::Signed(n) => write_integer(out, n),
            Self::Float(x) => write_float(out, x),
            Self::Histogram | Self::Summary => {}
        }
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
            (262_144.0, "262144", "262144.0"),
            (1e6, "1000000", "1e+06"),
            (1_048_576.0, "1048576", "1.048576e+06"),
            (0.000_05, "0.00005", "5e-05"),
            (0.000_1, "0.0001", "0.0001"),
            (1e300, "1e300", "1e+300"),
            (5e-324, "5e-324", "5e-324"),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf"),
            (f64::NAN, "NaN", "NaN"),
        ] {
            assert_eq!(text(|out| write_float(out, x)), shown);
            let mut line = [b'x'; 30];
            let end = put_float(&mut line, 3, x).unwrap();
            assert_eq!(line[3..end], *shown.as_bytes());
            assert_eq!(put_float(&mut line[..3], 3, x), None);
            assert_eq!(text(|out| write_canonical(out, x)), canonical);
        }
        for x in [0.1, 1.0 / 3.0, f64::MAX, f64::MIN_POSITIVE, 123_456_789.125, 2f64.powi(60)] {
            assert_eq!(text(|out| write_float(out, x)).parse::<f64>().unwrap(), x);
        }
    }

    #[test]
    fn digits_are_put_as_they_are_written() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let all = powers.flat_map(|n| [n - 1, n, n + 1]).chain([u64::MAX]);
        for n in all {
            let mut line = [b'x'; 30];
            let end = put_digits(&mut line, 3, n).unwrap();
            assert_eq!(line[3..end], *n.to_string().as_bytes());
        }
        assert_eq!(put_digits(&mut [0; 10], 30, 1), None);
        assert_eq!(put_digits(&mut [0; 20], 3, u64::MAX), None);
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
