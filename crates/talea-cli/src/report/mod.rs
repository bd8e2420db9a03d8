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
mod latencies;
mod metrics;
mod pairs;
mod prometheus;
mod provenance;
mod rounds;
mod table;
mod thresholds;
mod throughput;

#[cfg(target_os = "linux")]
pub(crate) use self::chart::Chart;
#[cfg(target_os = "linux")]
pub(crate) use self::document::{STYLE, data_table, document, figure};
#[cfg(target_os = "linux")]
pub(crate) use self::folder::write_whole;
pub(crate) use self::folder::{Judged, ReportFolder};
pub(crate) use self::table::table;
