//! The extension module `talea_metrics._talea`: registries and metrics. The package around it is in
//! `python/talea_metrics`.
//!
//! All of it runs while its thread is attached to the interpreter. While a lock is held, no code of Python
//! is called: a garbage collection waits for all threads, and would wait for one that waits for the lock.
//! So a fork catches no lock either, which would stay locked in the child for ever: it waits until all other
//! threads run code of Python or are detached, with an interpreter's lock and without one ([CPython
//! gh-116522](https://github.com/python/cpython/issues/116522)).

// Python's classes have their documentation in `python/talea_metrics`.
#![allow(missing_docs)]

mod asgi;
mod blocks;
mod callable;
mod exchange;
mod family;
mod held_by_object;
mod http;
mod lock;
mod metrics;
mod parse;
mod private_region;
mod region;
mod route;
mod sorted_labels;

use pyo3::prelude::*;

#[pymodule(name = "_talea", gil_used = false)]
mod extension {
    #[pymodule_export]
    use crate::{
        asgi::{AsgiMiddleware, asgi_route},
        blocks::{CountedExceptions, InProgress, Timer},
        exchange::{HttpExchange, WsgiBody},
        http::HttpMeter,
        metrics::{Counter, CurrentValue, Enum, Gauge, Histogram, Summary},
        parse::{escape_name, parse},
        region::{
            FunctionGauge, InfoFamily, Region, accepts_gzip, disable_created_metrics,
            enable_created_metrics, negotiate,
        },
        route::HttpRoute,
    };
}
