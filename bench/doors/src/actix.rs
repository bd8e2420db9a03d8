//! `GET /items/7` of actix-web. Its users take actix-web-prom.

use std::rc::Rc;

use actix_http::Request;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::rt::{System, SystemRunner};
use actix_web::{App, Error, body, test, web};
use actix_web_prom::PrometheusMetricsBuilder;
use anyhow::Result;
use talea::Registry;
use talea_http::actix::Meter;

use crate::{Door, Subject};

pub(crate) fn door() -> Result<Door> {
    let talea = Meter::new(&Registry::new()?)?.routes(&[("GET", "/items/{id}")])?;
    let other = PrometheusMetricsBuilder::new("api").build().map_err(anyhow::Error::from_boxed)?;
    let system = Rc::new(System::new());
    let app = || App::new().route("/items/{id}", web::get().to(async || "an item"));
    let bare = system.block_on(test::init_service(app()));
    let talea = system.block_on(test::init_service(app().wrap(talea)));
    let other = system.block_on(test::init_service(app().wrap(other)));
    Ok(Door {
        name: "actix-web",
        subjects: [
            subject("bare", &system, bare),
            subject("talea", &system, talea),
            subject("actix-web-prom", &system, other),
        ],
    })
}

fn subject<B>(
    name: &'static str,
    system: &Rc<SystemRunner>,
    app: impl Service<Request, Response = ServiceResponse<B>, Error = Error> + 'static,
) -> Subject
where
    B: body::MessageBody,
{
    let system = Rc::clone(system);
    Subject::new(name, move |calls| system.block_on(make(&app, calls)))
}

async fn make<B>(
    app: &impl Service<Request, Response = ServiceResponse<B>, Error = Error>,
    calls: u64,
) where
    B: body::MessageBody,
{
    for _ in 0..calls {
        let mut request = test::TestRequest::get().uri("/items/7").to_request();
        // As actix's server makes a request that has no body.
        drop(request.take_payload());
        let response = test::call_service(app, request).await;
        let Ok(body) = body::to_bytes(response.into_body()).await else { panic!("a body fails") };
        assert_eq!(body.len(), 7);
    }
}
