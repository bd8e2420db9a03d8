//! A dry run: one client runs the scenario once, and each request and response is shown.

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, COOKIE};

use crate::connect::EXPECTS_TLS;
use crate::plan::Plan;
use crate::request::Requests;
use crate::scenario::{CapturedValue, Step, Values, status_text};
use crate::session::{Answer, Session};
use crate::tally::Failure;

/// The most that is shown of a body, in characters.
const MOST: usize = 500;

/// Sends the requests of the scenario once, and hands over what each request was, what response it got, and why it
/// failed if it did. Values of `Authorization` and `Cookie` are not shown. Returns how many requests failed.
///
/// Fails when a path of the scenario, behind that of the target, is none.
pub async fn dry_run(plan: &Plan, mut show: impl FnMut(&str)) -> Result<u64, String> {
    let requests = Requests::new(&plan.scenario, &plan.target, plan.protocol)?;
    let mut session = Session::new(plan.target.clone(), plan.protocol, plan.timeout);
    let mut values = Values::new(&plan.scenario.variables, plan.seed);
    values.begin(&plan.scenario.variables);
    let mut failed = 0;
    for (n, step) in plan.scenario.steps.iter().enumerate() {
        let result = match requests.request(n, &values) {
            Err(why) => Err(Failure::NoRequest(n, why)),
            Ok(request) => {
                show(&request_text(&request).await);
                match session.send(request, true).await {
                    Err(error) => Err(Failure::RequestError(n, error)),
                    Ok(answer) => {
                        show(&response_text(&answer));
                        judged(n, step, &answer, &mut values)
                    }
                }
            }
        };
        if let Err(failure) = result {
            failed += 1;
            show(&format!("failed: {}\n", failure.describe(&plan.scenario)));
        }
    }
    if failed > 0 && plan.target.expects_tls().await {
        show(&format!("{EXPECTS_TLS}\n"));
    }
    Ok(failed)
}

/// Checks a response as a client of a load does, and captures its values.
fn judged(n: usize, step: &Step, answer: &Answer, values: &mut Values) -> Result<(), Failure> {
    if !step.expected.includes(answer.status) {
        return Err(Failure::Status(n, answer.status));
    }
    capture(n, step, answer, values)
}

/// Captures the values of a response. The failure is that of the first one that is not there: a request fails once.
pub(super) fn capture(
    n: usize,
    step: &Step,
    answer: &Answer,
    values: &mut Values,
) -> Result<(), Failure> {
    let mut result = Ok(());
    for (nth, capture) in step.captures.iter().enumerate() {
        match CapturedValue::at(&answer.body, &capture.pointer) {
            Some(value) => values.set(capture.variable, value),
            None => result = result.and(Err(Failure::NotCaptured(n, nth))),
        }
    }
    result
}

async fn request_text(request: &Request<Full<Bytes>>) -> String {
    let mut text = format!("> {} {}\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        let is_secret = [AUTHORIZATION, COOKIE].contains(name) || value.is_sensitive();
        let value =
            if is_secret { "…".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        text.push_str(&format!("> {name}: {value}\n"));
    }
    match request.body().clone().collect().await {
        Ok(body) => text + &body_text(&body.to_bytes()),
        Err(never) => match never {},
    }
}

fn response_text(answer: &Answer) -> String {
    let (status, took) = (status_text(answer.status), answer.took.as_secs_f64() * 1e3);
    format!("< {status}, {} bytes in {took:.1} ms\n{}", answer.bytes, body_text(&answer.body))
}

/// The beginning of a body, without what a terminal would obey.
fn body_text(body: &[u8]) -> String {
    if body.is_empty() {
        return "\n".to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let shown = text.chars().take(MOST);
    let shown: String =
        shown.map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect();
    let more = if text.chars().nth(MOST).is_some() { " …" } else { "" };
    format!("\n{}{more}\n\n", shown.trim_end())
}
