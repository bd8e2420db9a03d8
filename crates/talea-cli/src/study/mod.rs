//! The study: load cases against a service, with the service's own metrics sampled while each case
//! runs.
//!
//! For each case: the database is emptied and the task peaks are reset, where the service is one
//! that can; a baseline is read; the clients run while a `sampler` reads the metrics every 100 ms;
//! a last reading is taken after the last answer. Server numbers are differences of readings or
//! high-water marks that the server keeps, client numbers come from the load alone, and where the
//! two disagree the result says so.

mod case;
mod case_result;
mod clients;
mod design;
mod measure;
mod outcome;
mod prometheus;
mod reading;
pub mod rounds;
mod run;
mod sampler;
mod scraper;
mod series;
mod server;
mod study_run;
mod target_process;

pub use self::case::{Case, KNOWN, LONG};
pub use self::case_result::{CaseResult, Query};
pub use self::clients::{Clients, Heat, Times};
pub use self::design::{
    AddressSource, Addresses, Design, Program, PrometheusSource, STUDY_ARGUMENTS, Service,
};
pub use self::measure::{Measure, Measures};
pub use self::outcome::{Ended, Study, Versions};
pub use self::reading::{Between, Durations, Reading};
pub use self::run::run;
pub use self::sampler::SAMPLE_EVERY;
pub use self::series::{Sample, Series, WINDOW};
pub use self::server::Server;
pub use self::study_run::Unfinished;
