//! The real program on free ports, talked to over real HTTP.
#![cfg(unix)]

mod client;
mod crowd;
mod ending;
mod items;
mod metrics;
mod outage;
mod pool;
mod postgres;
mod script;
mod service;
mod sqlite;
mod starting;
mod study;
