//! Whether a response is the expected one.

use hyper::body::Bytes;

use crate::scenario::{CapturedValue, NoReply, Step, Values, json_of};
use crate::session::Answer;
use crate::tally::{Failure, Tally};

/// Judges a response: its status, that of the call if it is one of gRPC, then its checks, which are counted, then
/// the values to capture. The failure is the first one: a request fails once.
pub(super) fn judge(
    n: usize,
    step: &Step,
    answer: &Answer,
    values: &mut Values,
    tally: &mut Tally,
) -> Result<(), Failure> {
    if !step.expected.includes(answer.status) {
        return Err(Failure::Status(n, answer.status));
    }
    let json;
    let body = match &step.grpc {
        None => &answer.body,
        Some(method) => {
            let reply = method.reply(answer).map_err(|why| Failure::NoReply(n, why))?;
            let read = if step.reads_body() { json_of(&reply) } else { Some(Bytes::new()) };
            json = read.ok_or(Failure::NoReply(n, NoReply::Malformed))?;
            &json
        }
    };
    let mut result = Ok(());
    for (nth, check) in step.checks.iter().enumerate() {
        let passes = check.passes(answer, body, values);
        tally.check(n, nth, passes);
        if !passes {
            result = result.and(Err(Failure::Check(n, nth)));
        }
    }
    for (nth, capture) in step.captures.iter().enumerate() {
        match CapturedValue::at(body, &capture.pointer) {
            Some(value) => values.set(capture.variable, value),
            None => result = result.and(Err(Failure::NotCaptured(n, nth))),
        }
    }
    for (nth, measure) in step.measures.iter().enumerate() {
        let found = CapturedValue::at(body, &measure.pointer);
        if let Some(number) = found.and_then(|found| found.text.parse().ok()) {
            tally.measure(n, nth, number);
        }
    }
    result
}
