//! Talea, by default options.

use anyhow::Result;
use talea::{Registry, Value};
use talea_http::axum::{self as metered, Layer, get};
use tower_layer::{Stack, layer_fn};

use crate::http_layer::call::{AxumService, HELLO, PassThrough, ROUTE};
use crate::http_layer::case::{Answer, Case};
use crate::http_layer::service::{requests, router, streamed, uncounted, without_layers};
use crate::work::Work;

/// Talea's router with the layers.
pub(super) fn declared(case: Case) -> Result<Box<dyn Work>> {
    let registry = Registry::new()?;
    let router = declares(case).metered(&registry)?.with_state(());
    counted(router, case, registry, 1)
}

/// Talea's router without metering.
pub(super) fn unmetered(case: Case) -> Result<Box<dyn Work>> {
    uncounted(declares(case).unmetered().with_state(()), case)
}

fn declares(case: Case) -> metered::Router {
    // Each of these two handlers is metered once in a process: a function that is metered again
    // carries its endpoint along, which costs axum an allocation.
    let handler = match case.answer {
        Answer::InMemory => get(async || HELLO),
        Answer::Streamed => get(async || streamed()),
    };
    let router = metered::Router::new().route(ROUTE, handler);
    (0..case.layers).fold(router, |router, _| router.layer(layer_fn(PassThrough)))
}

/// axum's router, metered from outside.
pub(super) fn existing(case: Case) -> Result<Box<dyn Work>> {
    let registry = Registry::new()?;
    counted(metered::meter(router(case), &registry)?, case, registry, 1)
}

/// axum's router with the meter as its last layer.
pub(super) fn router_layer(case: Case) -> Result<Box<dyn Work>> {
    let registry = Registry::new()?;
    let router = router(case).layer(Layer::new(&registry)?);
    counted(router.with_state(()), case, registry, 1)
}

/// A meter around each of the layers, as Caddy had it: each records each request. A meter is joined
/// to its layer before axum boxes that, so no box is there for the meter alone.
pub(super) fn per_layer(case: Case) -> Result<Box<dyn Work>> {
    let registry = Registry::new()?;
    let layer = Layer::new(&registry)?;
    let router = (0..case.layers).fold(without_layers(case), |router, _| {
        router.layer(Stack::new(layer_fn(PassThrough), layer))
    });
    counted(router.with_state(()), case, registry, case.layers as u64)
}

/// Requests to a service that records each of them `times` times.
fn counted(
    service: impl AxumService,
    case: Case,
    registry: Registry,
    times: u64,
) -> Result<Box<dyn Work>> {
    requests(service, case, move || {
        let snapshot = registry.snapshot();
        let series = snapshot.select("http_requests_total", &[]);
        let count = series.map(|series| match series.value() {
            Value::Unsigned(count) => count,
            _ => 0,
        });
        Ok(count.sum::<u64>() / times)
    })
}
