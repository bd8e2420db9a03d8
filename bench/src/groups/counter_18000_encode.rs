//! The text of the 18,000 series of `counter-18000`.

use anyhow::Result;
use metrics_exporter_prometheus::PrometheusBuilder;

use super::failures_by_user::{self as by_user, SERIES};
use super::texts;
use crate::work::{Group, Place, Setting, Subject, Work};

pub(super) const GROUP: Group = Group {
    name: "counter-18000-encode",
    threads: &[1],
    subjects: &[
        Subject::new("talea", talea),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
    ],
    place: Place::Apart,
    note: texts::NOTE,
};

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    texts::of_talea(by_user::filled_talea()?.0, SERIES)
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    texts::of_measured(by_user::filled_measured(), SERIES)
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    texts::of_prometheus(by_user::filled_prometheus()?.0, SERIES)
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    texts::of_prometheus_client(by_user::filled_prometheus_client().0, SERIES)
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, by_user::fill_metrics);
    texts::of_metrics(recorder.handle(), SERIES)
}
