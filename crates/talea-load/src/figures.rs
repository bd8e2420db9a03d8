//! Numbers as people read them.

/// The placeholder for a missing number.
pub const NONE: &str = "–";

/// A whole number with its thousands set apart: `12,345`.
pub fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A measured number to three digits that mean something: `0.042`, `4.21`, `42.1`, `421`, `4,213`.
pub fn measured(number: f64) -> String {
    if !number.is_finite() {
        return NONE.to_owned();
    }
    let size = number.abs();
    if size >= 99.95 {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{}", whole(size.round() as u64));
    }
    let decimals = match size {
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

/// A number that may be a count: [`whole`] where it is one, else [`measured`].
pub fn plain(number: f64) -> String {
    match number.fract() == 0.0 && (0.0..1e15).contains(&number) {
        true => whole(number as u64),
        false => measured(number),
    }
}

/// A value in its unit to three significant digits: `382 µs`, `1.24 s`, `23.5 KiB`, and without a
/// known unit `0.000382`.
pub fn in_unit(number: f64, unit: Option<&str>) -> String {
    match unit {
        _ if !number.is_finite() || number == 0.0 => plain(number),
        Some("seconds") => {
            let scales = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
            // A value that rounds to 1,000 of one unit is 1 of the one before.
            let fits = |&&(scale, _): &&(f64, &str)| number.abs() >= scale * 0.9995;
            let &(scale, name) = scales.iter().find(fits).unwrap_or(&scales[3]);
            format!("{} {name}", significant(number / scale))
        }
        Some("bytes") if number >= 0.0 => bytes(number.round() as u64),
        _ => significant(number),
    }
}

/// A number to three significant digits, or whole if it has more.
fn significant(number: f64) -> String {
    if number.abs() >= 99.95 || number == 0.0 {
        return measured(number);
    }
    // So many digits before the point, or zeros behind it.
    let magnitude = (number.abs() * 1.0005).log10().floor() as i32;
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0).min(30);
    format!("{number:.decimals$}")
}

/// [`measured`], or a dash where there is no number.
pub fn measured_or_none(number: Option<f64>) -> String {
    number.map_or_else(|| NONE.to_owned(), measured)
}

/// [`whole`], or a dash where there is no number.
pub fn whole_or_none(number: Option<u64>) -> String {
    number.map_or_else(|| NONE.to_owned(), whole)
}

/// A number of bytes in binary units: `23.5 GiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut size = number as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        return counted(number, "byte");
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A number with its noun in the right form: `1 request`, `2 requests`.
pub fn counted(number: u64, noun: &str) -> String {
    count(number, noun, &format!("{noun}s"))
}

/// A number with a noun whose plural is irregular: `1 family`, `2 families`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", whole(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_value_has_three_significant_digits_in_its_unit() {
        for (number, unit, shown) in [
            (0.000_382_4, Some("seconds"), "382 µs"),
            (0.001_239, Some("seconds"), "1.24 ms"),
            (0.999_9, Some("seconds"), "1.00 s"),
            (0.000_999_9, Some("seconds"), "1.00 ms"),
            (12.345, Some("seconds"), "12.3 s"),
            (4_213.0, Some("seconds"), "4,213 s"),
            (4e-9, Some("seconds"), "4.00 ns"),
            (-0.002, Some("seconds"), "-2.00 ms"),
            (0.0, Some("seconds"), "0"),
            (24_064.0, Some("bytes"), "23.5 KiB"),
            (0.000_382_4, None, "0.000382"),
            (0.099_99, None, "0.100"),
            (7.0, None, "7.00"),
            (f64::NAN, Some("seconds"), "–"),
        ] {
            assert_eq!(super::in_unit(number, unit), shown, "{number}");
        }
    }

    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(whole(0), "0");
        assert_eq!(whole(999), "999");
        assert_eq!(whole(1_000), "1,000");
        assert_eq!(whole(1_234_567), "1,234,567");
    }

    #[test]
    fn measured_numbers_keep_three_digits() {
        assert_eq!(measured(0.0421), "0.042");
        assert_eq!(measured(4.213), "4.21");
        assert_eq!(measured(9.996), "10.0");
        assert_eq!(measured(99.96), "100");
        assert_eq!(measured(4213.4), "4,213");
        assert_eq!(measured(-4213.4), "-4,213");
        assert_eq!(measured(f64::NAN), NONE);
    }

    #[test]
    fn counts_have_no_decimals() {
        assert_eq!(plain(20.0), "20");
        assert_eq!(plain(0.0), "0");
        assert_eq!(plain(20.5), "20.5");
        assert_eq!(plain(f64::NAN), NONE);
    }

    #[test]
    fn bytes_have_binary_units() {
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(bytes(25_277_284_352), "23.5 GiB");
    }

    #[test]
    fn one_has_no_plural() {
        assert_eq!(counted(1, "request"), "1 request");
        assert_eq!(counted(2_000, "request"), "2,000 requests");
        assert_eq!(count(1, "family", "families"), "1 family");
        assert_eq!(count(0, "family", "families"), "0 families");
    }
}
