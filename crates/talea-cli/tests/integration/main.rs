//! The tests of the `talea` program in one binary. Those beside this folder are binaries of their own,
//! since they limit or measure what belongs to the whole process, or need the whole machine.

#[path = "../support/mod.rs"]
mod support;

mod check;
#[cfg(unix)]
mod compare;
mod completions;
#[cfg(target_os = "linux")]
mod inspect;
#[cfg(target_os = "linux")]
mod live_page;
mod load;
mod load_models;
#[cfg(target_os = "linux")]
mod load_output;
mod load_queues;
#[cfg(target_os = "linux")]
mod serve_answers;
#[cfg(target_os = "linux")]
mod serve_descriptors;
#[cfg(target_os = "linux")]
mod serve_life;
#[cfg(target_os = "linux")]
mod serve_regions;
#[cfg(unix)]
mod server;
#[cfg(target_os = "linux")]
mod server_tls;
#[cfg(unix)]
mod study;
#[cfg(unix)]
mod study_by_a_prometheus;
#[cfg(unix)]
mod study_of_a_stand_in;
#[cfg(unix)]
mod study_of_databases;
#[cfg(unix)]
mod study_under_faults;
#[cfg(all(target_os = "linux", feature = "top"))]
mod top;
#[cfg(target_os = "linux")]
mod upkeep;
#[cfg(unix)]
mod web_config;
#[cfg(unix)]
mod web_config_prometheus;
