//! The tests of the `talea` program in one binary. Those beside this folder are binaries of their own,
//! since they limit or measure what belongs to the whole process, or need the whole machine.

#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod check;
mod compare;
mod completions;
#[cfg(target_os = "linux")]
mod inspect;
#[cfg(target_os = "linux")]
mod jobs;
#[cfg(target_os = "linux")]
mod live_page;
mod load;
mod load_grpc;
#[cfg(target_os = "linux")]
mod load_memory;
mod load_models;
#[cfg(target_os = "linux")]
mod load_output;
mod load_queues;
#[cfg(target_os = "linux")]
mod load_region;
mod load_scenarios;
mod load_shards;
mod load_websocket;
mod load_without_answer;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod serve_answers;
#[cfg(target_os = "linux")]
mod serve_descriptors;
#[cfg(target_os = "linux")]
mod serve_history;
#[cfg(target_os = "linux")]
mod serve_life;
#[cfg(target_os = "linux")]
mod serve_push;
#[cfg(target_os = "linux")]
mod serve_regions;
#[cfg(target_os = "linux")]
mod serve_socket;
mod server;
#[cfg(target_os = "linux")]
mod server_tls;
mod study;
mod study_by_a_prometheus;
mod study_of_a_stand_in;
mod study_of_databases;
mod study_under_faults;
#[cfg(all(target_os = "linux", feature = "top"))]
mod top;
#[cfg(target_os = "linux")]
mod upkeep;
mod web_config;
mod web_config_prometheus;
