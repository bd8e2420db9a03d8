//! The numbers of a row in words.

use std::time::{Duration, UNIX_EPOCH};

use talea_statistics::figures::{NONE, in_unit, measured};

use talea_view::families::Between;

/// The text of a quantile, which is in milliseconds: `12.3 ms`, or where the buckets are wide, their
/// bound: `<250 ms`, `>10.0 s`.
pub fn time(found: Option<Between>) -> String {
    let Some(found) = found else { return NONE.to_owned() };
    let in_ms = |ms: f64| in_unit(ms / 1e3, Some("seconds"));
    match (found.estimate(), found.high) {
        (Some((ms, _)), _) => in_ms(ms),
        (None, Some(high)) => format!("<{}", in_ms(high)),
        (None, None) => format!(">{}", in_ms(found.low)),
    }
}

pub fn rate(rate: f64) -> String {
    if rate == 0.0 { "0".to_owned() } else { measured(rate) }
}

/// A share as per cent.
pub fn share(share: Option<f64>) -> String {
    match share {
        None => NONE.to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(share) if share < 0.000_05 => "<0.01%".to_owned(),
        Some(share) if share < 0.0995 => format!("{:.2}%", share * 1e2),
        Some(share) => format!("{:.1}%", share * 1e2),
    }
}

/// The text of a gauge, such as requests in flight.
pub fn level(level: Option<f64>) -> String {
    level.map_or_else(|| NONE.to_owned(), |level| talea_statistics::figures::plain(level.max(0.0)))
}

/// The latest numbers as a line of bars, the highest of them at full height: `▁▃█`.
pub fn sparkline(numbers: &[f64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &numbers[numbers.len().saturating_sub(width)..];
    let most = shown.iter().copied().fold(0.0, f64::max);
    let bars: String = shown
        .iter()
        .map(|number: &f64| {
            if most <= 0.0 || *number <= 0.0 {
                return ' ';
            }
            let height = (number / most * BARS.len() as f64).ceil() as usize;
            BARS[height.clamp(1, BARS.len()) - 1]
        })
        .collect();
    format!("{bars:>width$}")
}

/// Of UTC: `2026-11-24 17:40:03Z`.
pub fn date(unix_millis: i64) -> String {
    let since = Duration::from_millis(u64::try_from(unix_millis).unwrap_or(0));
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string().replace('T', " ")
}

/// The time of a day, of UTC: `17:40:03`.
pub fn clock(unix_millis: i64) -> String {
    date(unix_millis).get(11..19).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_as_exact_as_its_bucket() {
        let of = |low, high| time(Some(Between { low, high }));
        assert_eq!(of(95.0, Some(105.0)), "99.8 ms");
        assert_eq!(of(100.0, Some(250.0)), "<250 ms");
        assert_eq!(of(10_000.0, None), ">10.0 s");
        assert_eq!(time(None), NONE);
    }

    #[test]
    fn shares_that_are_small_are_not_0() {
        for (number, shown) in
            [(0.0, "0"), (1e-9, "<0.01%"), (0.000_1, "0.01%"), (0.05, "5.00%"), (1.0, "100.0%")]
        {
            assert_eq!(share(Some(number)), shown);
        }
    }

    #[test]
    fn the_highest_bar_is_full_and_what_is_not_0_is_seen() {
        assert_eq!(sparkline(&[9.0, 0.0, 0.01, 4.0, 8.0], 4), " ▁▄█");
        assert_eq!(sparkline(&[1.0], 3), "  █");
        assert_eq!(sparkline(&[], 3), "   ");
        assert_eq!(sparkline(&[0.0, 0.0], 2), "  ");
    }
}
