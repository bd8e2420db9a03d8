//! The one text that each number should have in `le` and `quantile`.

/// A number as OpenMetrics' "Canonical Numbers" has it: the shortest digits that are read
/// back as the same, an exponent of two digits or more below 0.0001 and from 1e6 on, and
/// a fraction or an exponent always.
pub(super) fn canonical(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let shortest = format!("{x:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else { return shortest };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x != 0.0 && !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let fixed = format!("{x}");
    if fixed.contains('.') { fixed } else { fixed + ".0" }
}

/// A number as people read it.
pub(super) fn shown(x: f64) -> String {
    if !x.is_finite() {
        return canonical(x);
    }
    if x.abs() < 1e15 { format!("{x}") } else { format!("{x:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_numbers_are_as_it_writes_them() {
        for text in
            "0.0 0.001 0.002 0.01 0.1 0.9 0.95 0.99 0.999 1.0 1.7 10.0 1e-10 1e-09 1e-05 0.0001 \
                     100000.0 1e+06 1e+10 1e+23 1.1e+23 +Inf -Inf -1.5 1.048576e+06 262144.0 5e-324"
                .split(' ')
        {
            assert_eq!(canonical(text.parse().unwrap()), text);
        }
    }
}
