//! What a response means. Source: the specification of remote-write 2.0, "Responses" and "Retries".

use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};

use super::Version;
use crate::record::Counts;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is done; so much of it was written.
    Done(Counts),
    /// It will never be taken; so much of it was written.
    Refused(Counts),
    /// It may be taken later, not before this time has passed.
    Later(Option<Duration>),
    /// The receiver does not know version 2.0. What it read of the request is nothing.
    NeedsV1,
    /// The receiver may not know version 2.0, or the request has a fault.
    MayNeedV1,
}

/// The meaning of a response to a request with these values.
pub(crate) fn verdict(
    version: Version,
    sent: Counts,
    status: StatusCode,
    headers: &HeaderMap,
    now: SystemTime,
) -> Verdict {
    let written = written(headers);
    match (status.as_u16(), version) {
        (200..=299, Version::V1) => Verdict::Done(sent),
        // A receiver of 1.0 that looks at no header reads a request of 2.0 as empty.
        (200..=299, Version::V2) => written.map_or(Verdict::NeedsV1, Verdict::Done),
        (415, Version::V2) => Verdict::NeedsV1,
        (400, Version::V2) if written.is_none() => Verdict::MayNeedV1,
        (429 | 500..=599, _) => Verdict::Later(retry_after(headers, now)),
        // The values wait until the URL is corrected, or the receiver is there again.
        (300..=399, _) => Verdict::Later(retry_after(headers, now)),
        _ => Verdict::Refused(written.unwrap_or_default()),
    }
}

/// How much a receiver says that it wrote; `None` if it says nothing of it.
fn written(headers: &HeaderMap) -> Option<Counts> {
    let count = |kind: &str| {
        let value = headers.get(format!("x-prometheus-remote-write-{kind}-written"))?;
        value.to_str().ok()?.trim().parse::<u64>().ok()
    };
    let found = [count("samples"), count("histograms"), count("exemplars")];
    if found == [None; 3] {
        return None;
    }
    let [samples, histograms, exemplars] = found.map(Option::unwrap_or_default);
    Some(Counts { samples, histograms, exemplars })
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

    use super::Verdict::{Done, Later, MayNeedV1, NeedsV1, Refused};
    use super::*;

    fn counts(samples: u64, histograms: u64, exemplars: u64) -> Counts {
        Counts { samples, histograms, exemplars }
    }

    #[test]
    fn each_response_means_what_the_specification_says() {
        let sent = counts(3, 1, 2);
        let [v1, v2] = [Version::V1, Version::V2];
        let all = &[("samples", "3"), ("histograms", "1"), ("exemplars", "2")][..];
        let some = &[("samples", "2")][..];
        let none = &[("samples", "0"), ("histograms", "0"), ("exemplars", "0")][..];
        for (version, status, written, expected) in [
            (v2, 200, all, Done(sent)),
            (v2, 204, some, Done(counts(2, 0, 0))),
            (v2, 200, none, Done(counts(0, 0, 0))),
            (v2, 200, &[], NeedsV1),
            (v2, 204, &[("samples", "many")], NeedsV1),
            (v1, 200, &[], Done(sent)),
            (v1, 204, none, Done(sent)),
            (v2, 415, &[], NeedsV1),
            (v1, 415, &[], Refused(counts(0, 0, 0))),
            (v2, 400, some, Refused(counts(2, 0, 0))),
            (v2, 400, &[], MayNeedV1),
            (v1, 400, &[], Refused(counts(0, 0, 0))),
            (v2, 401, &[], Refused(counts(0, 0, 0))),
            (v2, 404, &[], Refused(counts(0, 0, 0))),
            (v2, 408, &[], Refused(counts(0, 0, 0))),
            (v2, 413, &[], Refused(counts(0, 0, 0))),
            (v2, 429, &[], Later(None)),
            (v1, 429, &[], Later(None)),
            (v2, 301, &[], Later(None)),
            (v2, 307, &[], Later(None)),
            (v2, 500, &[], Later(None)),
            (v1, 501, &[], Later(None)),
            (v2, 503, all, Later(None)),
            (v2, 599, &[], Later(None)),
        ] {
            let mut headers = HeaderMap::new();
            for (kind, count) in written {
                let name = format!("X-Prometheus-Remote-Write-{kind}-Written");
                let name = http::HeaderName::try_from(name).unwrap();
                headers.insert(name, HeaderValue::from_static(count));
            }
            let status = StatusCode::from_u16(status).unwrap();
            let found = verdict(version, sent, status, &headers, UNIX_EPOCH);
            assert_eq!(found, expected, "{version:?} {status} {written:?}");
        }
    }

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
