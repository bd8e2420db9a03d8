//! Steps that are run once: a dry run, which shows each request and response; setup and teardown.

use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, COOKIE};
use percent_encoding::percent_decode_str;

use crate::connect::EXPECTS_TLS;
use crate::cookies::Cookies;
use crate::judge::judge;
use crate::plan::Plan;
use crate::request::Requests;
use crate::scenario::{
    Cursors, FeedEnded, Scenario, Shard, Source, Step, Values, grpc_status, grpc_status_text,
    in_either, json_of, status_text,
};
use crate::session::{Answer, Session};
use crate::tally::{Failure, Tally};
use crate::websocket::Messages;

/// The most that is shown of a body, in characters.
const MOST: usize = 500;

/// Sends the requests of the scenario once, of all flows, and hands over what each request was, what response it got,
/// and why it failed if it did. Values of `Authorization` and `Cookie` are not shown. Returns how many requests failed.
///
/// Fails when a path of the scenario, behind that of the target, is none.
pub async fn dry_run(plan: &Plan, mut show: impl FnMut(&str)) -> Result<u64, String> {
    let Scenario { setup, steps, teardown, .. } = &*plan.scenario;
    let all = [&setup[..], steps, teardown].concat();
    let scenario = Scenario { steps: all, ..(*plan.scenario).clone() };
    let mut values = scenario.values(plan.seed);
    begin(&mut values, &scenario)?;
    let failures = once(plan, &scenario, &mut values, &mut show).await?;
    if !failures.is_empty() && plan.target.expects_tls().await {
        show(&format!("{EXPECTS_TLS}\n"));
    }
    Ok(failures.len() as u64)
}

/// Sends the requests of the plan's setup once. The plan that comes back has the values that they captured.
///
/// Fails if one of them fails.
pub async fn set_up(plan: &Plan) -> Result<Plan, String> {
    if plan.scenario.setup.is_empty() {
        return Ok(plan.clone());
    }
    let mut scenario = (*plan.scenario).clone();
    scenario.steps = scenario.setup.clone();
    let mut values = scenario.values(plan.seed);
    begin(&mut values, &scenario)?;
    let failures = once(plan, &scenario, &mut values, |_| {}).await?;
    if let Some(failure) = failures.first() {
        return Err(format!("setup: {failure}"));
    }
    let mut scenario = (*plan.scenario).clone();
    for (n, variable) in scenario.variables.iter_mut().enumerate() {
        if let (Source::Captured, Some(value)) = (&variable.source, values.get(n)) {
            variable.source = Source::Fixed(value.clone());
        }
    }
    Ok(Plan { scenario: Arc::new(scenario), ..plan.clone() })
}

/// Sends the requests of the plan's teardown once.
///
/// Fails if one of them fails; the others are sent all the same.
pub async fn tear_down(plan: &Plan) -> Result<(), String> {
    let mut scenario = (*plan.scenario).clone();
    scenario.steps = scenario.teardown.clone();
    let mut values = scenario.values(plan.seed);
    begin(&mut values, &scenario)?;
    let failures = once(plan, &scenario, &mut values, |_| {}).await?;
    failures.first().map_or(Ok(()), |failure| Err(format!("teardown: {failure}")))
}

fn begin(values: &mut Values, scenario: &Scenario) -> Result<(), String> {
    let begun = scenario.begin(values, &Cursors::new(&scenario.feeds, Shard::ALL));
    begun.map_err(|FeedEnded(feed)| Failure::FeedEnded(feed).describe(scenario))
}

/// Sends the requests of a scenario, of all its flows, one after the other: the failures in words.
async fn once(
    plan: &Plan,
    scenario: &Scenario,
    values: &mut Values,
    mut show: impl FnMut(&str),
) -> Result<Vec<String>, String> {
    let requests = Requests::new(scenario, &plan.target, plan.protocol)?;
    let mut session = Session::new(plan.target.clone(), plan.protocol, plan.timeout);
    let (mut cookies, mut tally) = (Cookies::default(), Tally::default());
    let mut failures = Vec::new();
    for (n, step) in scenario.steps.iter().enumerate() {
        let mut following = requests.request(n, values).map_err(|why| Failure::NoRequest(n, why));
        let mut redirects = 0;
        let result = loop {
            let mut request = match following {
                Ok(request) => request,
                Err(failure) => break Err(failure),
            };
            if scenario.cookies {
                cookies.add_to(&mut request, plan.target.is_https());
            }
            show(&request_text(&request, step).await);
            let (again, path) = (request.clone(), request.uri().path().to_owned());
            let answer = match session.send(request, step.keep()).await {
                Ok(answer) => answer,
                Err(error) => break Err(Failure::RequestError(n, error)),
            };
            show(&response_text(&answer, step));
            cookies.take(&answer.headers, &path);
            if !scenario.follows(step, &answer) {
                break judge(n, step, &answer, values, &mut tally);
            }
            redirects += 1;
            let next = scenario.next_request(again, &answer, &plan.target, redirects);
            following = next.map_err(|why| Failure::Redirect(n, why));
        };
        if let Err(failure) = result {
            let words = failure.describe(scenario);
            show(&format!("failed: {words}\n"));
            failures.push(words);
        }
    }
    Ok(failures)
}

async fn request_text(request: &Request<Full<Bytes>>, step: &Step) -> String {
    let mut text = format!("> {} {}\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        let is_secret = [AUTHORIZATION, COOKIE].contains(name) || value.is_sensitive();
        let value =
            if is_secret { "…".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        text.push_str(&format!("> {name}: {value}\n"));
    }
    if let Some(Messages(messages)) = request.extensions().get() {
        return text + &body_text(messages.join("\n").as_bytes());
    }
    match request.body().clone().collect().await {
        Ok(body) => {
            let body = body.to_bytes();
            let message = step.grpc.as_ref().and_then(|method| method.sent(&body));
            text + &body_text(&message.unwrap_or(body))
        }
        Err(never) => match never {},
    }
}

fn response_text(answer: &Answer, step: &Step) -> String {
    let (status, took) = (status_text(answer.status), answer.took.as_secs_f64() * 1e3);
    let mut text = format!("< {status}, {} bytes in {took:.1} ms\n", answer.bytes);
    let mut body = answer.body.clone();
    if let Some(method) = &step.grpc {
        if let Some(status) = grpc_status(answer) {
            let message = in_either(answer, "grpc-message").unwrap_or_default();
            let message = percent_decode_str(message).decode_utf8_lossy();
            let line = format!("< grpc-status: {} {message}", grpc_status_text(status));
            text.push_str(&format!("{}\n", printable(line.trim_end())));
        }
        let reply = method.reply(answer).ok();
        body = reply.as_ref().and_then(json_of).unwrap_or(body);
    }
    text + &body_text(&body)
}

/// The beginning of a body, without what a terminal would obey.
fn body_text(body: &[u8]) -> String {
    if body.is_empty() {
        return "\n".to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let shown = printable(&text.chars().take(MOST).collect::<String>());
    let more = if text.chars().nth(MOST).is_some() { " …" } else { "" };
    format!("\n{}{more}\n\n", shown.trim_end())
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}
