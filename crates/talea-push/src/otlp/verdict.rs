//! What a response means. Source: the OTLP specification, 1.11, "OTLP/HTTP response".

use std::time::SystemTime;

use http::StatusCode;
use http::header::HeaderMap;
use prost::Message;

use super::message::ExportMetricsServiceResponse;
use crate::record::Counts;
use crate::verdict::{Verdict, retry_after};

/// The meaning of a response to a request with these values.
pub(crate) fn verdict(
    sent: Counts,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
) -> Verdict {
    match status.as_u16() {
        200..=299 => Verdict::Done(written(sent, body)),
        // No other status is repeated, 500 neither.
        429 | 502..=504 => Verdict::Later(retry_after(headers, now)),
        _ => Verdict::Refused(Counts::default()),
    }
}

/// The values that were taken. What is rejected of a partial success is not repeated.
pub(super) fn written(sent: Counts, body: &[u8]) -> Counts {
    let response = ExportMetricsServiceResponse::decode(body).unwrap_or_default();
    let rejected = response.partial_success.unwrap_or_default().rejected_data_points;
    let rejected = u64::try_from(rejected).unwrap_or_default().min(sent.values());
    let of_samples = rejected.min(sent.samples);
    sent - Counts { samples: of_samples, histograms: rejected - of_samples, exemplars: 0 }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::HeaderValue;
    use http::header::RETRY_AFTER;

    use super::super::message::PartialSuccess;
    use super::Verdict::{Done, Later, Refused};
    use super::*;

    #[test]
    fn each_response_means_what_the_specification_says() {
        let sent = Counts { samples: 5, histograms: 2, exemplars: 3 };
        let rejected = |rejected_data_points| {
            let partial_success =
                Some(PartialSuccess { rejected_data_points, error_message: "no".to_owned() });
            ExportMetricsServiceResponse { partial_success }.encode_to_vec()
        };
        let left = |samples, histograms| Done(Counts { samples, histograms, exemplars: 3 });
        let second = Some(Duration::from_secs(1));
        for (status, body, expected) in [
            (200, Vec::new(), Done(sent)),
            (202, b"{}".to_vec(), Done(sent)),
            (200, rejected(0), Done(sent)),
            (200, rejected(4), left(1, 2)),
            (200, rejected(6), left(0, 1)),
            (200, rejected(100), left(0, 0)),
            (200, rejected(-1), Done(sent)),
            (429, Vec::new(), Later(second)),
            (502, Vec::new(), Later(second)),
            (503, Vec::new(), Later(second)),
            (504, Vec::new(), Later(second)),
            (500, Vec::new(), Refused(Counts::default())),
            (501, Vec::new(), Refused(Counts::default())),
            (505, Vec::new(), Refused(Counts::default())),
            (307, Vec::new(), Refused(Counts::default())),
            (400, Vec::new(), Refused(Counts::default())),
            (404, Vec::new(), Refused(Counts::default())),
            (408, Vec::new(), Refused(Counts::default())),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("1"))]);
            let status = StatusCode::from_u16(status).unwrap();
            let found = verdict(sent, status, &headers, &body, UNIX_EPOCH);
            assert_eq!(found, expected, "{status} {body:?}");
        }
    }
}
