//! The declaration and the options of a router: series before the first request, exact codes,
//! quantiles, errors.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Extension;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Redirect;
use talea::{Counter, Opts as MetricOpts};
use talea_http::axum::{Layer, Router, any, get};
use talea_http::{Convention, Opts, StatusLabel};

use crate::support::counts::{lines, recorded, registry, requests};
use crate::support::requests::ask;

#[tokio::test]
async fn the_series_of_declared_methods_exist_before_the_first_request_and_others_from_theirs_on() {
    let registry = registry();
    let app: axum::Router = Router::new()
        .route("/api/items", get(async || "").post(async || ""))
        .route("/api/items/{id}", get(async || "").delete(async || ""))
        .route("/any", any(async || Redirect::to("/")))
        .metered(&registry)
        .unwrap();
    let mut expected = BTreeSet::new();
    for (method, route) in [
        ("GET", "/api/items"),
        ("POST", "/api/items"),
        ("GET", "/api/items/{id}"),
        ("DELETE", "/api/items/{id}"),
        ("GET", "/any"),
    ] {
        let labels = format!(r#"method="{method}",route="{route}""#);
        for status in ["2xx", "4xx", "5xx"] {
            expected.insert(format!(r#"http_requests_total{{{labels},status="{status}"}} 0"#));
        }
        for outcome in ["complete", "aborted", "panicked"] {
            let labels = format!(r#"{labels},outcome="{outcome}""#);
            expected.insert(format!("http_request_outcomes_total{{{labels}}} 0"));
        }
        expected.insert(format!("http_requests_in_flight{{{labels}}} 0"));
        expected.insert(format!("http_request_duration_seconds_count{{{labels}}} 0"));
    }
    assert_eq!(lines(&registry.snapshot()), expected);
    let series = || registry.snapshot().select("http_requests_total", &[]).count();
    for (method, uri, route, status) in [
        ("PUT", "/api/items", "/api/items", "4xx"),
        ("GET", "/nowhere", "_unmatched", "4xx"),
        ("PATCH", "/any", "/any", "3xx"),
    ] {
        let before = series();
        for _ in 0..2 {
            ask(&app, method, uri).await;
        }
        let shown = if route == "/any" { method } else { "_OTHER" };
        assert_eq!(requests(&registry, shown, route, status), Some(2.0), "{method} {uri}");
        assert_eq!(series(), before + 1, "{method} {uri}");
    }
    assert_eq!(recorded(&registry), 6);
}

#[tokio::test]
async fn methods_that_the_user_names_have_their_name_where_it_is_the_method_sent() {
    let sent = ["PROPFIND"; 3];
    for (convention, durations, label, other, by_route) in [
        (
            Convention::Prometheus,
            "http_request_duration_seconds",
            "method",
            "_OTHER",
            ["PROPFIND", "_OTHER", "_OTHER"],
        ),
        (
            Convention::OpenTelemetry,
            "http_server_request_duration_seconds",
            "http_request_method",
            "_OTHER",
            sent,
        ),
        (Convention::Caddy, "caddy_http_request_duration_seconds", "method", "OTHER", sent),
    ] {
        let registry = registry();
        let opts = Opts::new().convention(convention).methods(&["PROPFIND", "MKCOL"]);
        let app: axum::Router = Router::new()
            .route("/files/{*path}", any(async || ""))
            .route("/items", get(async || ""))
            .metered_by(&opts.register(&registry).unwrap());
        let count = |method: &str| {
            let found = registry.snapshot().histogram(durations, &[(label, method)]);
            found.map_or(0, |found| found.count())
        };
        for (uri, shown) in ["/files/a", "/items", "/nowhere"].into_iter().zip(by_route) {
            let before = count(shown);
            ask(&app, "PROPFIND", uri).await;
            assert_eq!(count(shown), before + 1, "{convention:?} {uri}");
        }
        for (sent, shown) in [("propfind", other), ("REPORT", other), ("MKCOL", "MKCOL")] {
            let before = count(shown);
            ask(&app, sent, "/files/a").await;
            assert_eq!(count(shown), before + 1, "{convention:?} {sent}");
        }
    }
    for method in ["", "TWO WORDS", "GÊT"] {
        let refused = Opts::new().methods(&["MKCOL", method]).register(&registry()).unwrap_err();
        let expected = format!("the method {method:?} is none that a request can have");
        assert!(refused.to_string().contains(&expected), "{refused}");
    }
}

#[tokio::test]
async fn exact_codes_are_bounded_too() {
    let registry = registry();
    let status = async |Path(status): Path<u16>| StatusCode::from_u16(status).unwrap();
    let app = Router::new()
        .route("/status/{status}", get(status))
        .metered_by(&Opts::new().status_label(StatusLabel::Code).register(&registry).unwrap());
    for _ in 0..2 {
        for status in 200..=999 {
            ask(&app, "GET", &format!("/status/{status}")).await;
        }
    }
    let route = "/status/{status}";
    for (status, expected) in [("200", 2.0), ("418", 2.0), ("599", 2.0), ("_OTHER", 800.0)] {
        assert_eq!(requests(&registry, "GET", route, status), Some(expected), "{status}");
    }
    for status in ["2xx", "600", "999"] {
        assert_eq!(requests(&registry, "GET", route, status), None, "{status}");
    }
    assert_eq!(recorded(&registry), 1600);
}

#[tokio::test]
async fn the_state_of_layers_is_freed_with_their_router() {
    let state = Arc::new(());
    let mut router = Router::new().route("/x", get(async || "").layer(Extension(state.clone())));
    for _ in 0..9 {
        router = router.layer(Extension(state.clone()));
    }
    let app = router.metered(&registry()).unwrap();
    assert_eq!(ask(&app, "GET", "/x").await.status(), StatusCode::OK);
    assert!(Arc::strong_count(&state) > 10);
    drop(app);
    assert_eq!(Arc::strong_count(&state), 1);
}

#[test]
fn a_metric_of_the_same_name_is_an_error() {
    let registry = registry();
    registry.register::<Counter>(MetricOpts::new("http_requests", "Mine.")).unwrap();
    let error = Router::<()>::new().metered(&registry).unwrap_err().to_string();
    assert!(error.contains("http_requests_total"), "{error}");
}

#[tokio::test]
async fn quantiles_of_the_last_minutes_are_shown_on_request() {
    let registry = registry();
    let endpoints = Opts::new().quantiles(&[0.5, 0.99]).register(&registry).unwrap();
    let app = Router::new().route("/x", get(async || "")).metered_by(&endpoints);
    let median = || {
        let labels = [("method", "GET"), ("route", "/x"), ("quantile", "0.5")];
        registry.snapshot().value("http_request_duration_recent_seconds", &labels).unwrap()
    };
    assert!(median().is_nan());
    ask(&app, "GET", "/x").await;
    assert!(median() > 0.0, "{}", median());
    let error = Opts::new().quantiles(&[2.0]).register(&registry).unwrap_err().to_string();
    assert!(error.contains("from 0 to 1"), "{error}");
}

#[tokio::test]
async fn the_response_of_a_fallback_is_not_counted_under_a_listed_route() {
    let registry = registry();
    let layer = Layer::new(&registry).unwrap();
    let app = axum::Router::new()
        .route("/items", axum::routing::get(async || "items"))
        .fallback(async || "anything")
        .layer(layer.routes(&[("GET", "/items"), ("GET", "/gone")]).unwrap());
    for path in ["/items", "/gone", "/nowhere"] {
        ask(&app, "GET", path).await;
    }
    assert_eq!(requests(&registry, "GET", "/items", "2xx"), Some(1.0));
    assert_eq!(requests(&registry, "GET", "/gone", "2xx"), Some(0.0));
    assert_eq!(requests(&registry, "_OTHER", "_unmatched", "2xx"), Some(2.0));
}
