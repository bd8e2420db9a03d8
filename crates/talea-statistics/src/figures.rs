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
        Some("cores") if number.is_finite() => format!("{} cores", cores(number)),
        _ if !number.is_finite() || number == 0.0 => plain(number),
        Some("seconds") => {
            let scales = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
            // A value that rounds to 1,000 of one unit is 1 of the one before.
            let &(scale, name) = scales
                .iter()
                .find(|&&(scale, _)| number.abs() >= scale * 0.9995)
                .unwrap_or(&scales[3]);
            format!("{} {name}", significant(number / scale))
        }
        Some("bytes") if number >= 0.0 => bytes(number.round() as u64),
        _ => significant(number),
    }
}

/// Cores in thousandths: a process takes that much that does nothing.
fn cores(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.001 => "<0.001".to_owned(),
        _ => measured(number),
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
    use super::*;

    /// Numbers and what is shown of them, which the live page's tests read too.
    const CASES: &str = include_str!("figures.json");

    #[test]
    fn numbers_are_shown_as_on_the_live_page() {
        let cases: Vec<(String, Option<f64>, String)> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() >= 30);
        for (kind, number, expected) in cases {
            let number = number.unwrap_or(f64::NAN);
            let shown = match kind.as_str() {
                "whole" => whole(number as u64),
                "measured" => measured(number),
                "plain" => plain(number),
                "bytes" => bytes(number as u64),
                unit => in_unit(number, Some(unit)),
            };
            assert_eq!(shown, expected, "{kind} {number}");
        }
    }

    #[test]
    fn a_number_is_shown_as_people_read_it() {
        for (shown, expected) in [
            (counted(1, "request"), "1 request"),
            (counted(2_000, "request"), "2,000 requests"),
            (count(1, "family", "families"), "1 family"),
            (count(0, "family", "families"), "0 families"),
            // Three significant digits.
            (in_unit(0.000_382_4, None), "0.000382"),
            (in_unit(0.099_99, None), "0.100"),
            (in_unit(7.0, None), "7.00"),
        ] {
            assert_eq!(shown, expected);
        }
    }
}
