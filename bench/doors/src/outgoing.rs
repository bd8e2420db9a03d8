//! A request of a reqwest client, with a middleware in the place of the network. Users of reqwest-middleware take
//! reqwest-metrics.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use http::Extensions;
use metrics_exporter_prometheus::PrometheusBuilder;
use reqwest::{Client, Request, Response};
use reqwest_metrics::MetricsMiddleware;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use talea::Registry;
use talea_http::client::{Layer, Servers};

use crate::{Door, Subject};

pub(crate) fn door() -> Result<Door> {
    let servers = Servers::new().server("stock.example", &["/items", "/items/{id}"]);
    let talea = talea_http::client::Middleware::from(Layer::new(&servers, &Registry::new()?)?);
    PrometheusBuilder::new().install_recorder().map_err(|error| anyhow!("{error}"))?;
    let client = || ClientBuilder::new(Client::new());
    Ok(Door {
        name: "reqwest",
        subjects: [
            subject("bare", client()),
            subject("talea", client().with(talea)),
            subject("reqwest-metrics", client().with(MetricsMiddleware::new())),
        ],
    })
}

fn subject(name: &'static str, client: ClientBuilder) -> Subject {
    let client = client.with(Answers).build();
    Subject::new(name, move |calls| make(&client, calls))
}

/// Answers in the place of a server.
struct Answers;

#[async_trait]
impl Middleware for Answers {
    async fn handle(
        &self,
        _: Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        Ok(Response::from(http::Response::new("an item")))
    }
}

fn make(client: &ClientWithMiddleware, calls: u64) {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..calls {
        let read = pin!(async {
            let response = client.get("http://stock.example/items/7").send().await.ok()?;
            response.bytes().await.ok()
        });
        let Poll::Ready(Some(body)) = read.poll(&mut cx) else { panic!("it is answered at once") };
        assert_eq!(body.len(), 7);
    }
}
