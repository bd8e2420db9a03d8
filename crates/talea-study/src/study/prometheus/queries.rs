//! The queries of appendix E of "Phoenix Concurrency", in the names of the service.

use anyhow::Result;
use talea_load::scenario::{Names, Quantity, Selector};

use super::super::series::most;
use super::super::server::Server;
use super::api::Api;

/// A query, and the same quantity from the study's own samples.
pub(super) struct QueryTemplate {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    query: String,
    when: When,
    pub(super) sampled: fn(&Server) -> Option<f64>,
}

#[derive(Clone, Copy)]
enum When {
    /// Once, at the end: of the whole case.
    AtTheEnd,
    /// Each second from so many seconds after the beginning on, when what it looks back at is of
    /// this case alone; the result is the maximum.
    EachSecondFrom(f64),
}

/// The placeholder in a query for the time of the case, as in the appendix.
const TIME: &str = "<time>";

impl QueryTemplate {
    pub(super) fn text(&self, seconds: f64) -> String {
        self.query.replace(TIME, &format!("{}ms", (seconds * 1e3).ceil()))
    }

    pub(super) async fn ask(
        &self,
        api: &mut Api,
        text: &str,
        from: f64,
        to: f64,
    ) -> Result<Option<f64>> {
        match self.when {
            When::AtTheEnd => api.number(text, to).await,
            When::EachSecondFrom(after) if from + after > to => Ok(None),
            When::EachSecondFrom(after) => api.most(text, from + after, to).await,
        }
    }
}

/// All that the names allow, in the appendix' order.
pub(super) fn all(names: &Names, selected: impl Fn(&Selector) -> String) -> Vec<QueryTemplate> {
    let of = |quantity| names.get(quantity).map(&selected);
    let duration = |ending| names.get(Quantity::Duration).map(|it| selected(&it.ending(ending)));
    let increase = |quantity| Some(format!("sum(increase({}[{TIME}]))", of(quantity)?));
    let to_ms = if names.seconds() == 1.0 { " * 1000" } else { "" };
    let mut queries = Vec::new();
    let mut ask = |title, unit, when, query: Option<String>, sampled| {
        queries.extend(query.map(|query| QueryTemplate { title, unit, query, when, sampled }));
    };
    ask("Requests received", "", When::AtTheEnd, increase(Quantity::Requests), |server| {
        server.requests_received.map(|count| count as f64)
    });
    ask(
        "Requests received a second over 2 s, at most",
        "",
        When::EachSecondFrom(2.0),
        of(Quantity::Requests).map(|requests| format!("sum(rate({requests}[2s]))")),
        |server| server.peak_rate_2s,
    );
    let mean = |range: &str| {
        let (sum, count) = (duration("_sum")?, duration("_count")?);
        Some(format!("sum(rate({sum}[{range}])) / sum(rate({count}[{range}])){to_ms}"))
    };
    ask(
        "Mean response time over 2 s, at most",
        "ms",
        When::EachSecondFrom(2.0),
        mean("2s"),
        |server| most(&server.series.mean_response_ms_2s),
    );
    ask("Mean response time of the case", "ms", When::AtTheEnd, mean(TIME), |server| {
        server.mean_response_ms
    });
    ask(
        "Server processes created",
        "",
        When::AtTheEnd,
        increase(Quantity::TasksSpawned),
        |server| server.tasks_created.map(|count| count as f64),
    );
    ask(
        "Additional server processes (of a gauge, increase() takes each fall for a restart)",
        "",
        When::AtTheEnd,
        increase(Quantity::Tasks),
        |server| server.peak_additional_tasks.map(|count| count as f64),
    );
    ask(
        "Ready-queued server processes, at most",
        "",
        When::EachSecondFrom(0.0),
        of(Quantity::Ready).map(|ready| format!("sum({ready})")),
        |server| most(&server.series.ready_tasks),
    );
    queries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(base: &str) -> Vec<String> {
        let names = Names::built_in(base).unwrap();
        let all = all(&names, ToString::to_string);
        all.iter().map(|asked| asked.text(12.3456)).collect()
    }

    #[test]
    fn phoenix_is_asked_what_the_appendix_asks() {
        assert_eq!(
            texts("phoenix"),
            [
                "sum(increase(cowboy_request_duration_milliseconds_count[12346ms]))",
                "sum(rate(cowboy_request_duration_milliseconds_count[2s]))",
                "sum(rate(cowboy_request_duration_milliseconds_sum[2s])) / \
                 sum(rate(cowboy_request_duration_milliseconds_count[2s]))",
                "sum(rate(cowboy_request_duration_milliseconds_sum[12346ms])) / \
                 sum(rate(cowboy_request_duration_milliseconds_count[12346ms]))",
                "sum(increase(erlang_vm_system_counts_process_count[12346ms]))",
                "sum(erlang_vm_run_queue_total)",
            ]
        );
    }

    #[test]
    fn metrics_that_a_service_does_not_have_are_not_queried() {
        let texts = texts("opentelemetry");
        assert_eq!(texts.len(), 4);
        assert!(texts[3].ends_with(" * 1000"), "{}", texts[3]);
    }
}
