//! The report of a study, for people and programs: the table on the screen, `report.json`, and
//! `report.html`, which is one file that needs no network and no script.

mod analysis;
mod case;
mod comparison;
mod folder;
mod heat;
mod html;
mod latencies;
mod metrics;
mod pairs;
mod prometheus;
mod provenance;
mod rounds;
mod table;
mod thresholds;
mod throughput;

pub use self::folder::{Judged, ReportFolder};
pub use self::table::table;
