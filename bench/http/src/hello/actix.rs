//! On actix-web, with and without Talea's middleware.

use std::net::TcpListener;
use std::sync::Arc;

use actix_web::{App, HttpServer, web};
use anyhow::Result;
use talea::{Bucketing, Registry};
use talea_http::Opts;
use talea_http::actix::Meter;

use crate::service::{Framework, ROUTE, Service, counted_by};

pub(crate) fn plain() -> Service {
    Service { framework: Framework::Actix(None), counted: Arc::new(|| None) }
}

pub(crate) fn metered() -> Result<Service> {
    let registry = Registry::new()?;
    let endpoints = Opts::new().bucketing(Bucketing::Classic).register(&registry)?;
    let meter = Meter::by(&endpoints).routes(&[("GET", ROUTE)])?;
    Ok(Service { framework: Framework::Actix(Some(meter)), counted: counted_by(registry) })
}

async fn hello(name: web::Path<String>) -> String {
    format!("Hello, {name}!")
}

/// Serves for as long as the process runs.
pub(crate) fn serve(listener: TcpListener, meter: Option<Meter>, threads: u16) -> Result<()> {
    let app = || App::new().route(ROUTE, web::get().to(hello));
    actix_web::rt::System::new().block_on(async {
        let server = match meter {
            None => HttpServer::new(app)
                .workers(threads.into())
                .disable_signals()
                .listen(listener)?
                .run(),
            Some(meter) => HttpServer::new(move || app().wrap(meter))
                .workers(threads.into())
                .disable_signals()
                .listen(listener)?
                .run(),
        };
        Ok(server.await?)
    })
}
