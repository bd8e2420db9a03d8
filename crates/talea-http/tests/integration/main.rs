//! The tests of this crate that can share a process. Tests in files beside this folder need a
//! process of their own, because they measure its memory.

mod actix;
mod cases;
mod client;
mod costs;
mod examples;
mod existing;
mod exposition;
mod grpc;
mod http1;
mod metrics_server;
mod mirror;
mod openapi;
mod options;
mod outcomes;
mod page_size;
mod published_names;
mod support;
mod turns;
