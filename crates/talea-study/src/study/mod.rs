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
mod endpoints;
mod figure;
mod measure;
mod outcome;
mod process_group;
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
mod watcher;

pub use self::case::{Case, KNOWN, LONG};
pub use self::case_result::CaseResult;
pub use self::clients::{Clients, Times};
pub use self::design::{
    AddressSource, Addresses, Design, Program, PrometheusSource, STUDY_ARGUMENTS, Service,
};
pub use self::endpoints::EndpointSummary;
pub use self::figure::{Figure, Share};
pub(crate) use self::measure::ENDPOINT;
pub use self::measure::{Measure, Measures, Values};
pub use self::outcome::{RunEnd, Study};
pub use self::process_group::kill_all;
pub use self::scraper::Scraper;
pub use self::series::WINDOW;
pub use self::server::Server;
pub use self::watcher::Watcher;
