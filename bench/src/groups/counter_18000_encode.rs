//! The text of the 18,000 series of `counter-18000`.

use metrics_exporter_prometheus::PrometheusBuilder;

use super::failures_by_user::{self as by_user, SERIES};
use super::texts;
use crate::work::{Group, Place, Subject};

pub(super) const GROUP: Group = Group {
    name: "counter-18000-encode",
    threads: &[1],
    subjects: &[
        Subject::new("talea", |_| texts::of_talea(by_user::filled_talea()?.0, SERIES)),
        Subject::new("measured", |_| texts::of_measured(by_user::filled_measured(), SERIES)),
        Subject::new("prometheus", |_| {
            texts::of_prometheus(by_user::filled_prometheus()?.0, SERIES)
        }),
        Subject::new("prometheus-client", |_| {
            texts::of_prometheus_client(by_user::filled_prometheus_client().0, SERIES)
        }),
        Subject::new("metrics", |_| {
            let recorder = PrometheusBuilder::new().build_recorder();
            metrics::with_local_recorder(&recorder, by_user::fill_metrics);
            texts::of_metrics(recorder.handle(), SERIES)
        }),
    ],
    place: Place::Apart,
    note: texts::NOTE,
};
