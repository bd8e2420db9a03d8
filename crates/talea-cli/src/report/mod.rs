//! The report of a study, for people and programs: the table on the screen, `report.json`, and
//! `report.html`, which is one file that needs no network and no script.

mod analysis;
mod case;
mod chart;
mod comparison;
mod document;
mod folder;
mod heat;
mod html;
mod metrics;
mod pairs;
mod provenance;
mod rounds;
mod table;
mod throughput;
mod witness;

pub use self::comparison::comparison_page;
pub use self::folder::{Folder, Written};
pub use self::html::page;
pub use self::table::table;

use crate::study::{Finding, Server};

/// The server's values in a case; nothing if it has no metrics.
fn seen(finding: &Finding) -> Server {
    finding.server.clone().unwrap_or_default()
}
