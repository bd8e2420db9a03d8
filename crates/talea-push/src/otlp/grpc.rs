//! OTLP over gRPC: a call of one request and one response, over HTTP/2. Sources: the OTLP specification 1.11,
//! "OTLP/gRPC"; "gRPC over HTTP2"; `google/rpc/status.proto` and `error_details.proto`.

use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName};
use percent_encoding::percent_decode;
use prost::Message;

use super::verdict::written;
use crate::record::Counts;
use crate::response::Response;
use crate::verdict::Verdict;

pub(crate) const CONTENT_TYPE: &str = "application/grpc";
pub(crate) const PATH: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";

pub(crate) const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
pub(crate) const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// The header of a time limit has at most eight digits.
const MOST_MILLIS: u128 = 99_999_999;

const OK: u32 = 0;
const RESOURCE_EXHAUSTED: u32 = 8;
/// Cancelled, deadline exceeded, aborted, out of range, unavailable, data loss.
const TRANSIENT: [u32; 6] = [1, 4, 10, 11, 14, 15];

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// Senders may leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Clone, PartialEq, Eq, Message)]
struct Details {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// The body of a call whose message is compressed already.
pub(crate) fn body(compressed: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(PREFIX + compressed.len());
    body.put_u8(1);
    // A message of 4 GiB has more than most_samples of them.
    body.put_u32(u32::try_from(compressed.len()).unwrap_or(u32::MAX));
    body.put_slice(compressed);
    body.freeze()
}

/// The time limit of a call, as its header has it.
pub(crate) fn timeout(limit: Duration) -> String {
    format!("{}m", limit.as_millis().clamp(1, MOST_MILLIS))
}

/// The meaning of a response to a call with these values, and its words.
///
/// # Errors
/// It has no end, so what became of the request is not known.
pub(crate) fn verdict(sent: Counts, response: &Response) -> Result<(Verdict, String), String> {
    let Response { status, headers, trailers, body, .. } = response;
    // An error before any message has its status in the head.
    let of_call = [trailers, headers].into_iter().find(|of| of.contains_key("grpc-status"));
    let Some(of_call) = of_call else {
        return match *status {
            StatusCode::OK => Err("the response ended before its gRPC status".to_owned()),
            _ => Ok((without_grpc(*status), format!("{status}, not gRPC's"))),
        };
    };
    let code = of_call.get("grpc-status").and_then(|it| it.to_str().ok()?.parse().ok());
    let delay = retry_delay(of_call);
    let verdict = match code {
        Some(OK) => Verdict::Done(written(sent, body.get(PREFIX..).unwrap_or_default())),
        Some(RESOURCE_EXHAUSTED) if delay.is_some() => Verdict::Later(delay),
        Some(code) if TRANSIENT.contains(&code) => Verdict::Later(delay),
        _ => Verdict::Refused(Counts::default()),
    };
    Ok((verdict, words(of_call)))
}

/// What a status of HTTP means where gRPC's is missing: those that are gRPC's `UNAVAILABLE` are repeated.
fn without_grpc(status: StatusCode) -> Verdict {
    match status.as_u16() {
        429 | 502..=504 => Verdict::Later(None),
        _ => Verdict::Refused(Counts::default()),
    }
}

/// The time that a receiver asks to wait.
fn retry_delay(headers: &HeaderMap) -> Option<Duration> {
    let details = BASE64.decode(headers.get("grpc-status-details-bin")?).ok()?;
    let details = Details::decode(&*details).ok()?.details;
    let info = details.into_iter().find(|any| any.type_url == RETRY_INFO)?;
    let delay = RetryInfo::decode(&*info.value).ok()?.retry_delay.unwrap_or_default();
    let [seconds, nanos] = [u64::try_from(delay.seconds).ok()?, u64::try_from(delay.nanos).ok()?];
    Some(Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos)))
}

fn words(headers: &HeaderMap) -> String {
    let [status, message] = ["grpc-status", "grpc-message"].map(|name| {
        let value = headers.get(name).map(|value| value.as_bytes()).unwrap_or_default();
        percent_decode(value).decode_utf8_lossy().into_owned()
    });
    format!("gRPC status {status} {message}")
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;

    use super::super::message::{ExportMetricsServiceResponse, PartialSuccess};
    use super::Verdict::{Done, Later, Refused};
    use super::*;

    fn fields(pairs: &[(&'static str, String)]) -> HeaderMap {
        let fields = pairs.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::try_from(value.as_str()).unwrap())
        });
        fields.collect()
    }

    fn response(status: u16, headers: HeaderMap, trailers: HeaderMap, body: &[u8]) -> Response {
        let status = StatusCode::from_u16(status).unwrap();
        Response { status, headers, trailers, body: Bytes::copy_from_slice(body), is_whole: true }
    }

    fn retry_info(seconds: i64, nanos: i32) -> String {
        let retry_delay = Some(Delay { seconds, nanos });
        let value = RetryInfo { retry_delay }.encode_to_vec();
        let details = vec![Any { type_url: RETRY_INFO.to_owned(), value }];
        base64::prelude::BASE64_STANDARD_NO_PAD.encode(Details { details }.encode_to_vec())
    }

    #[test]
    fn each_status_means_what_the_specification_says() {
        let sent = Counts { samples: 5, histograms: 2, exemplars: 3 };
        let refused = Refused(Counts::default());
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (code, details, expected) in [
            (0, None, Done(sent)),
            (1, None, Later(None)),
            (2, None, refused),
            (3, None, refused),
            (4, None, Later(None)),
            (7, None, refused),
            (8, None, refused),
            (8, Some(retry_info(7, 0)), Later(seconds(7))),
            (8, Some(retry_info(-1, 0)), refused),
            (8, Some("?".to_owned()), refused),
            (10, None, Later(None)),
            (11, None, Later(None)),
            (12, None, refused),
            (14, None, Later(None)),
            (14, Some(retry_info(2, 500_000_000)), Later(Some(Duration::from_millis(2_500)))),
            (
                14,
                Some(retry_info(i64::MAX, i32::MAX)),
                Later(seconds(u64::MAX / 2).map(|it| it + Duration::from_nanos(i32::MAX as u64))),
            ),
            (15, None, Later(None)),
            (16, None, refused),
            (99, None, refused),
        ] {
            let mut pairs =
                vec![("grpc-status", code.to_string()), ("grpc-message", "a%20b".to_owned())];
            pairs.extend(details.map(|details| ("grpc-status-details-bin", details)));
            for at_once in [false, true] {
                let (mut headers, mut trailers) = (HeaderMap::new(), fields(&pairs));
                if at_once {
                    std::mem::swap(&mut headers, &mut trailers);
                }
                let (found, words) = verdict(sent, &response(200, headers, trailers, &[])).unwrap();
                assert_eq!(found, expected, "{code} {at_once}");
                assert_eq!(words, format!("gRPC status {code} a b"));
            }
        }
    }

    #[test]
    fn a_response_without_a_status_of_grpc_is_unknown_or_means_what_http_says() {
        let sent = Counts { samples: 1, ..Counts::default() };
        for (status, expected) in [
            (200, None),
            (400, Some(Refused(Counts::default()))),
            (404, Some(Refused(Counts::default()))),
            (429, Some(Later(None))),
            (503, Some(Later(None))),
        ] {
            let found = verdict(sent, &response(status, HeaderMap::new(), HeaderMap::new(), &[]));
            assert_eq!(found.ok().map(|(verdict, _)| verdict), expected, "{status}");
        }
    }

    #[test]
    fn what_a_partial_success_rejects_is_not_written() {
        let sent = Counts { samples: 5, histograms: 2, exemplars: 3 };
        let rejected = PartialSuccess { rejected_data_points: 4, error_message: "no".to_owned() };
        let message = ExportMetricsServiceResponse { partial_success: Some(rejected) };
        let message = message.encode_to_vec();
        let body = [&[0, 0, 0, 0, message.len() as u8][..], &message].concat();
        let trailers = fields(&[("grpc-status", "0".to_owned())]);
        let found = verdict(sent, &response(200, HeaderMap::new(), trailers, &body));
        assert_eq!(found.unwrap().0, Done(Counts { samples: 1, histograms: 2, exemplars: 3 }));
    }

    #[test]
    fn a_time_limit_has_at_most_eight_digits() {
        for (limit, expected) in [
            (Duration::ZERO, "1m"),
            (Duration::from_secs(30), "30000m"),
            (Duration::MAX, "99999999m"),
        ] {
            assert_eq!(timeout(limit), expected);
        }
    }
}
