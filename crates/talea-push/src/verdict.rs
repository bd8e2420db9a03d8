//! What became of a request.

use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, RETRY_AFTER};

use crate::record::Counts;

/// The meaning of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The request is done; so much of it was written.
    Done(Counts),
    /// It will never be taken; so much of it was written.
    Refused(Counts),
    /// It may be taken later, not before this time has passed.
    Later(Option<Duration>),
    /// The receiver does not know remote-write 2.0. What it read of the request is nothing.
    NeedsV1,
    /// The receiver may not know remote-write 2.0, or the request has a fault.
    MayNeedV1,
}

/// The time that a receiver asks to wait: seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(text).ok()?.duration_since(now).ok()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_receiver_asks_to_wait_by_seconds_or_by_a_date() {
        // One minute before the date.
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777 - 60);
        for (text, expected) in [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(60)),
            ("Sat, 05 Nov 1994 08:49:37 GMT", None),
            ("-1", None),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            let found = retry_after(&headers, now);
            assert_eq!(found, expected.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
