//! Numbers, as Prometheus reads them.

/// The value of a number in a text; `None` if it is not one, or too large for a float.
///
/// This is the grammar of OpenMetrics. Rust's own parser differs: it accepts a sign before NaN, and
/// returns infinity for a number that is too large.
#[inline]
pub(super) fn float(text: &str) -> Option<f64> {
    if let Some(whole) = short_whole(text.as_bytes()) {
        return Some(whole);
    }
    float_slowly(text)
}

/// Most values are whole numbers: up to 18 digits, which never overflow.
#[inline]
fn short_whole(digits: &[u8]) -> Option<f64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut whole = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        whole = whole * 10 + u64::from(digit);
    }
    Some(whole as f64)
}

fn float_slowly(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let last = text.as_bytes().last()?;
    match value {
        // It says "NaN", with or without a sign.
        _ if value.is_nan() => (text.len() == 3).then_some(value),
        // It says "inf" or "infinity", or a number that is too large.
        _ if value.is_infinite() => last.is_ascii_alphabetic().then_some(value),
        _ => Some(value),
    }
}

/// Whole milliseconds, without a sign: Prometheus refuses one.
pub(super) fn milliseconds(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_formats() {
        for (text, value) in [
            ("0", 0.0),
            ("0042", 42.0),
            ("999999999999999999", 999_999_999_999_999_999.0),
            ("1341298465647914123456", 1_341_298_465_647_914_123_456.0),
            ("-4", -4.0),
            ("+4.", 4.0),
            (".5", 0.5),
            ("1.89e-7", 1.89e-7),
            ("4.20072246E+06", 4_200_722.46),
            ("Inf", f64::INFINITY),
            ("+inf", f64::INFINITY),
            ("-INFINITY", f64::NEG_INFINITY),
        ] {
            assert_eq!(float(text), Some(value), "{text}");
        }
        assert!(float("nan").unwrap().is_nan() && float("NaN").unwrap().is_nan());
        assert!(float("-0").unwrap().is_sign_negative());
        for text in ["", "+", ".", "1e", "0x10", "1_0", "+nan", "-NaN", "1e999", "1 ", "1\r", "ä"]
        {
            assert_eq!(float(text), None, "{text}");
        }
    }
}
