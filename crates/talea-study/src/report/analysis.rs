//! The conclusions from the numbers of a study, in sentences. Each has the numbers that it rests
//! on, and is there only where they carry it.

use talea_statistics::figures::{counted, measured, whole};

use super::throughput::by_clients;
use crate::study::{CaseResult, Server, Study};

/// The share that counts as all of the best throughput.
const NEARLY_ALL: f64 = 0.95;
/// Of how much more throughput it is said that there was none.
const NO_MORE: f64 = 1.1;
/// The share of the factor by which clients grew response times must grow by, for a queue.
const IN_PROPORTION: f64 = 0.5;
/// How much time per request may differ for it to be the same.
const THE_SAME: f64 = 1.25;
/// The shortest case, in seconds, that comes to its pace.
const TOO_SHORT: f64 = 0.2;
/// The share of the processors' time that counts as all of it.
const BUSY: f64 = 0.85;

pub(super) fn sentences(study: &Study) -> Vec<String> {
    let cases = by_clients(&study.cases);
    let mut all = Vec::new();
    all.extend(knee(&cases));
    all.extend(queues(&cases));
    all.extend(time_and_requests(&study.cases));
    all.extend(pool(&study.cases));
    all.extend(processors(study));
    all.extend(ready(&study.cases, study.machine.cores));
    all.extend(where_the_time_is(&cases));
    all.extend(study.cases.iter().flat_map(caveats));
    all
}

/// One number of clients, with the case that did best of them.
struct Level<'a> {
    clients: f64,
    case: &'a CaseResult,
    rate: f64,
    p50: f64,
}

fn levels<'a>(cases: &[&'a CaseResult]) -> Vec<Level<'a>> {
    cases
        .chunk_by(|one, other| one.clients == other.clients)
        .filter_map(|run| {
            let long = run.iter().filter(|case| case.client.seconds >= TOO_SHORT);
            let known = long.filter_map(|case| {
                let (rate, p50) = (case.client.mean_rate?, case.client.p50_ms?);
                let is_known = !case.client.at_least.contains("p50_ms");
                is_known.then_some(Level { clients: case.clients as f64, case, rate, p50 })
            });
            known.max_by(|one, other| one.rate.total_cmp(&other.rate))
        })
        .collect()
}

/// The fewest clients that make nearly the best throughput.
fn knee(cases: &[&CaseResult]) -> Option<String> {
    let levels = levels(cases);
    let (first, last) = (levels.first()?, levels.last()?);
    if levels.len() < 3 {
        return None;
    }
    let best = levels.iter().max_by(|one, other| one.rate.total_cmp(&other.rate))?;
    let knee = levels.iter().find(|level| level.rate >= best.rate * NEARLY_ALL)?;
    if knee.clients == last.clients {
        return Some(format!(
            "Throughput grew with the clients to the end: from {} requests a second with {} ({}) to \
             {} with {} ({}).",
            measured(first.rate),
            counted(first.case.clients, "client"),
            first.case.id,
            measured(last.rate),
            counted(last.case.clients, "client"),
            last.case.id,
        ));
    }
    let best_in_words = match best.clients == knee.clients {
        true => "the most of all cases".to_owned(),
        false => format!(
            "{} % of the most, {} with {} ({})",
            whole((knee.rate / best.rate * 100.0).round() as u64),
            measured(best.rate),
            counted(best.case.clients, "client"),
            best.case.id,
        ),
    };
    Some(format!(
        "{} ({}) made {} requests a second, {best_in_words}; with {} ({}) it was {}, and the median \
         response time {} ms rather than {}.",
        counted(knee.case.clients, "client"),
        knee.case.id,
        measured(knee.rate),
        counted(last.case.clients, "client"),
        last.case.id,
        measured(last.rate),
        measured(last.p50),
        measured(knee.p50),
    ))
}

/// The first step at which more clients made no more requests and waited instead.
fn queues(cases: &[&CaseResult]) -> Option<String> {
    let levels = levels(cases);
    let step = levels.windows(2).enumerate().find(|(at, pair)| {
        let enough = pair[0].rate * NO_MORE;
        let more = pair[1].clients / pair[0].clients;
        let longer = pair[1].p50 / pair[0].p50;
        // Not where still more clients do make more requests.
        levels[at + 1..].iter().all(|level| level.rate < enough)
            && longer > (more * IN_PROPORTION).max(NO_MORE)
    })?;
    let (_, [before, after]) = step else { return None };
    Some(format!(
        "Requests queue from between {} and {} on: {} times as many clients ({}, {}) made {} times \
         as many requests a second, and the median response time was {} times as long.",
        counted(before.case.clients, "client"),
        whole(after.case.clients),
        measured(after.clients / before.clients),
        before.case.id,
        after.case.id,
        measured(after.rate / before.rate),
        measured(after.p50 / before.p50),
    ))
}

/// Whether the clients' time grows as their requests do.
fn time_and_requests(cases: &[CaseResult]) -> Option<String> {
    let cases: Vec<&CaseResult> = cases
        .iter()
        .filter(|case| case.iterations.is_some() && case.client.requests_sent > 0)
        .collect();
    let requests = |case: &&&CaseResult| case.client.requests_sent;
    let (fewest, most) = (cases.iter().min_by_key(requests)?, cases.iter().max_by_key(requests)?);
    let times = most.client.requests_sent as f64 / fewest.client.requests_sent as f64;
    if times < 2.0 {
        return None;
    }
    let each = |case: &&CaseResult| case.client.seconds / case.client.requests_sent as f64;
    let quickest = cases.iter().min_by(|one, other| each(one).total_cmp(&each(other)))?;
    let slowest = cases.iter().max_by(|one, other| each(one).total_cmp(&each(other)))?;
    let (low, high) = (each(quickest) * 1e3, each(slowest) * 1e3);
    let verdict = match high / low <= THE_SAME {
        true => "Time scales with the number of requests",
        false => "Time does not scale with the number of requests alone",
    };
    Some(format!(
        "{verdict}: a thousand requests took from {} s ({}) to {} s ({}), while the requests of a \
         case differ by a factor of {}.",
        measured(low),
        quickest.id,
        measured(high),
        slowest.id,
        measured(times),
    ))
}

/// Where requests wait for a connection to the database.
fn pool(cases: &[CaseResult]) -> Option<String> {
    let waits = cases.iter().filter_map(|case| {
        let server = case.server.as_ref()?;
        let pending = server.peak_pool_pending.filter(|pending| *pending > 0)?;
        let used = server.peak_pool_used.filter(|used| server.pool_max == Some(*used))?;
        Some((case, pending, used))
    });
    let (case, pending, used) = waits.max_by_key(|(_, pending, _)| *pending)?;
    let without: Vec<&str> = cases
        .iter()
        .filter(|case| {
            case.server.as_ref().is_some_and(|server| server.peak_pool_pending.is_some())
        })
        .filter(|case| case.server.as_ref().and_then(|it| it.peak_pool_pending) == Some(0))
        .map(|case| case.id.as_str())
        .collect();
    let rest = match without[..] {
        [] => String::new(),
        _ => format!(" In {}, no request waited.", without.join(", ")),
    };
    Some(format!(
        "Requests wait for the database: up to {} at once in {}, where all {} of the pool were in \
         use.{rest}",
        whole(pending),
        case.id,
        counted(used, "connection"),
    ))
}

/// Whether the processors were the limit, where both sides share them.
fn processors(study: &Study) -> Option<String> {
    if !study.started {
        return None;
    }
    let cores = study.machine.cores as f64;
    let long = study.cases.iter().filter(|case| case.client.seconds >= TOO_SHORT);
    let known = long.filter_map(|case| {
        let server = case.server.as_ref()?.cpu_seconds? / case.client.seconds;
        Some((case, (server, case.client.generator_cores)))
    });
    let sum = |(_, (server, clients)): &(&CaseResult, (f64, f64))| server + clients;
    let (case, (server, clients)) = known.max_by(|one, other| sum(one).total_cmp(&sum(other)))?;
    let all = (server + clients) / cores;
    let verdict = match all >= BUSY {
        true => "Server and clients used up the processors that they share: in",
        false => "In",
    };
    Some(format!(
        "{verdict} {} the server used {} and the clients {} of {}, {} % together.",
        case.id,
        measured(server),
        measured(clients),
        counted(study.machine.cores, "core"),
        whole((all * 100.0).round() as u64),
    ))
}

/// Where tasks that could run have to wait.
fn ready(cases: &[CaseResult], cores: u64) -> Option<String> {
    let ready = cases.iter().filter_map(|case| {
        let server = case.server.as_ref()?;
        Some((case, server, server.peak_ready_tasks.filter(|ready| *ready > cores)?))
    });
    let (case, Server { peak_additional_tasks, .. }, ready) =
        ready.max_by_key(|(_, _, ready)| *ready)?;
    let of = peak_additional_tasks.map(|tasks| format!(" of {}", whole(tasks)));
    Some(format!(
        "Up to {}{} tasks of the server were ready at once and waited for a processor ({}).",
        whole(ready),
        of.unwrap_or_default(),
        case.id,
    ))
}

/// How much of the clients' time the server's own measurement accounts for, with the most clients.
fn where_the_time_is(cases: &[&CaseResult]) -> Option<String> {
    let case = cases.last()?;
    let (clients, server) = (case.client.mean_ms?, case.server.as_ref()?.mean_response_ms?);
    if case.client.at_least.contains("mean_ms") || !(clients > 0.0 && server <= clients) {
        return None;
    }
    Some(format!(
        "Of the mean response time of {} ms with the most clients ({}), {} ms, {} %, lie within \
         the server's handlers; the rest comes before and after them.",
        measured(clients),
        case.id,
        measured(server),
        whole((server / clients * 100.0).round() as u64),
    ))
}

/// Why a case's numbers may not be the server's.
pub(super) fn caveats(case: &CaseResult) -> impl Iterator<Item = String> {
    case.client.limits.iter().map(|limit| format!("Beware of {}: {limit}.", case.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Clients, Measure};

    /// A case of so many clients, with rate, median and requests.
    fn case(id: &str, clients: u64, rate: f64, p50: f64, requests: u64) -> CaseResult {
        let client = Clients {
            requests_sent: requests,
            seconds: requests as f64 / rate,
            mean_rate: Some(rate),
            mean_ms: Some(p50),
            p50_ms: Some(p50),
            ..Clients::default()
        };
        CaseResult { id: id.to_owned(), clients, iterations: Some(1), client, ..Default::default() }
    }

    fn text_of(cases: Vec<CaseResult>) -> String {
        let mut study = crate::compare::tests::study(Measure::P99, &[1.0]);
        (study.cases, study.started) = (cases, true);
        sentences(&study).join("\n")
    }

    #[test]
    fn a_conclusion_is_drawn_where_the_numbers_carry_it() {
        let five = vec![
            case("A", 10, 12_000.0, 1.0, 1_000), // over in 83 ms
            case("B", 100, 10_400.0, 12.0, 10_000),
            case("C", 1000, 8_500.0, 104.0, 100_000),
            case("D", 20, 10_300.0, 2.0, 10_000),
            case("E", 20, 10_200.0, 1.6, 100_000),
        ];
        let grows = vec![
            case("a", 1, 100.0, 10.0, 1_000),
            case("b", 2, 200.0, 10.0, 1_000),
            case("c", 4, 400.0, 10.0, 1_000),
        ];
        let once_slow = vec![
            case("a", 10, 1_000.0, 1.0, 1_000),
            case("b", 20, 900.0, 2.0, 1_000),
            case("c", 100, 1_500.0, 7.0, 1_000),
        ];
        let scaling = vec![case("a", 5, 100.0, 1.0, 100), case("b", 5, 110.0, 1.0, 1_000)];
        let not_scaling = vec![case("a", 5, 100.0, 1.0, 100), case("b", 5, 200.0, 1.0, 1_000)];
        for (cases, sentences, queues) in [
            (
                five,
                &[
                    "20 clients (D) made 10,300 requests a second, 99 % of the most, 10,400 with 100 \
                     clients (B); with 1,000 clients (C) it was 8,500, and the median response time 104 \
                     ms rather than 2.00.",
                    "Requests queue from between 20 clients and 100 on: 5.00 times as many clients (D, \
                     B) made 1.01 times as many requests a second, and the median response time was \
                     6.00 times as long.",
                ][..],
                true,
            ),
            (grows, &["Throughput grew with the clients to the end"], false),
            (once_slow, &[], false),
            (
                scaling,
                &["Time scales with the number of requests: a thousand", "by a factor of 10.0"],
                false,
            ),
            (not_scaling, &["Time does not scale with the number of requests alone"], false),
        ] {
            let text = text_of(cases);
            sentences.iter().for_each(|one| assert!(text.contains(one), "{one}\nin\n{text}"));
            assert_eq!(text.contains("queue"), queues, "{text}");
        }
    }

    #[test]
    fn conclusions_that_the_numbers_do_not_support_are_not_drawn() {
        assert_eq!(text_of(vec![case("a", 5, 100.0, 1.0, 100)]), "");
        assert_eq!(text_of(Vec::new()), "");
        let two = text_of(vec![case("a", 5, 100.0, 1.0, 100), case("b", 50, 101.0, 1.0, 100)]);
        assert_eq!(two, "", "two numbers of clients have no knee, and nothing queues");
    }

    #[test]
    fn waiting_is_reported_if_the_server_reports_it() {
        let mut one = case("C", 1000, 8_000.0, 120.0, 100_000);
        one.server = Some(Server {
            peak_pool_pending: Some(991),
            peak_pool_used: Some(10),
            pool_max: Some(10),
            peak_ready_tasks: Some(261),
            peak_additional_tasks: Some(1_000),
            cpu_seconds: Some(12.5),
            mean_response_ms: Some(119.0),
            ..Server::default()
        });
        one.client.generator_cores = 0.8;
        one.client.limits = vec!["the generator used 1.9 of 2 cores".to_owned()];
        let mut idle = case("A", 10, 8_000.0, 120.0, 100_000);
        idle.server = Some(Server { peak_pool_pending: Some(0), ..Server::default() });
        let text = text_of(vec![idle, one]);
        for expected in [
            "up to 991 at once in C, where all 10 connections of the pool were in use. In A, no request",
            "Up to 261 of 1,000 tasks of the server were ready at once",
            "used up the processors that they share: in C the server used 1.00 and the clients \
             0.800 of 2 cores, 90 % together.",
            "119 ms, 99 %, lie within the server's handlers",
            "Beware of C: the generator used 1.9 of 2 cores.",
        ] {
            assert!(text.contains(expected), "{expected}\n in \n{text}");
        }
    }
}
