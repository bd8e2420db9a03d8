//! The real program on free ports, talked to over real HTTP.
#![cfg(unix)]

mod client;
mod crowd;
mod ending;
mod items;
mod metrics;
mod service;
mod starting;
mod study;
