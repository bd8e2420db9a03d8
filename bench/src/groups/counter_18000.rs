//! A counter with the labels of `counter-fixed18` and a dynamic one: 18,000 series,
//! all of which exist, each found by its labels each time.

use anyhow::Result;

use super::counters::{Draw, counted};
use super::failures_by_user::{
    self as by_user, ClientFailure, Failed, Failure, MeasuredFailure, TextFailure,
};
use crate::recorder;
use crate::work::{Group, Place, Setting, Subject, Work, work};

pub(super) const GROUP: Group = Group {
    name: "counter-18000",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("talea-text", |_| counted(by_user::filled_talea_text()?, TextFailure::of)),
        Subject::new("measured", |_| {
            counted(by_user::filled_measured().failures, MeasuredFailure::of)
        }),
        Subject::new("prometheus", |_| counted(by_user::filled_prometheus()?, by_user::texts)),
        Subject::new("prometheus-client", |_| {
            counted(by_user::filled_prometheus_client(), ClientFailure::of)
        }),
        Subject::new("metrics", metrics),
    ],
    place: Place::Here,
    note: "ns: time of a thread for one operation. talea-text takes the routes as any text, \
           where talea has them fixed.",
};

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    counted(by_user::filled_talea()?, Failure::of)
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    recorder::installed();
    by_user::fill_metrics();
    work(
        (),
        |(), thread, n| Failed::walk(thread, n, by_user::count_by_metrics),
        |()| recorder::total("failures_by_user_total"),
    )
}
