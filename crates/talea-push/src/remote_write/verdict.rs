//! What a response means. Source: the specification of remote-write 2.0, "Responses" and "Retries".

use std::time::SystemTime;

use http::StatusCode;
use http::header::HeaderMap;

use super::Version;
use crate::record::Counts;
use crate::verdict::{Verdict, retry_after};

/// The meaning of a response to a request with these values.
pub(crate) fn verdict(
    version: Version,
    sent: Counts,
    status: StatusCode,
    headers: &HeaderMap,
    now: SystemTime,
) -> Verdict {
    // No receiver writes more than it got, whatever it says.
    let written = written(headers).map(|written| written.min(sent));
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
            (v2, 200, &[("samples", "18446744073709551615")], Done(counts(3, 0, 0))),
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
}
