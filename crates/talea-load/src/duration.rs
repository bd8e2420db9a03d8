//! Durations that a user types.

use std::time::Duration;

/// Longer than any load, and short enough to be added to any instant.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Parses a duration such as `500ms`, `30s` or `1m 30s`, of at most a hundred years.
///
/// # Errors
/// The fault in words. The caller adds what is expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration > LONGEST => {
            Err(format!("found {text:?}, which is more than 100 years"))
        }
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_longest_duration_can_be_added_to_an_instant() {
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        let longest = parse_duration("36500d").unwrap();
        assert!(Instant::now().checked_add(longest + longest).is_some());
        for text in ["36501d", "500000000000y", "18446744073709551615s"] {
            assert!(parse_duration(text).unwrap_err().contains("100 years"), "{text}");
        }
        assert!(parse_duration("5 parsecs").unwrap_err().contains("unknown time unit"));
    }
}
