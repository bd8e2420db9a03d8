//! The agent's own metrics, served beside those of the regions.

use talea::{Counter, Family, FloatGauge, Gauge, Histogram, LabelValue, Labels, Metrics, Seconds};

/// A region, by the name that it goes by.
#[derive(Labels)]
pub(super) struct RegionLabel<'a> {
    pub(super) region: &'a str,
}

/// A region, and a path of striped adds by its name.
#[derive(Labels)]
pub(super) struct PathLabels<'a> {
    pub(super) region: &'a str,
    pub(super) path: &'a str,
}

/// How a process of a region ended.
#[derive(Labels)]
pub(super) struct EndLabels<'a> {
    pub(super) region: &'a str,
    pub(super) reason: &'a str,
    pub(super) detail: &'a str,
}

/// How a scrape ended.
#[derive(Clone, Copy, Debug, LabelValue)]
pub(super) enum Outcome {
    /// All of it was sent.
    Complete,
    /// It was not answered with a page.
    Refused,
    /// The client went away, or was too slow.
    BrokenOff,
}

#[derive(Labels)]
pub(super) struct OutcomeLabel {
    pub(super) outcome: Outcome,
}

/// The state of the processes of a region, as the agent finds it.
#[derive(Debug, Metrics)]
#[metrics(prefix = "talea")]
pub(super) struct ProcessMeters {
    /// Processes that have a region open and live.
    #[metric(name = "region_processes")]
    pub(super) processes: Family<RegionLabel<'static>, Gauge>,
    /// Processes that have a region open and live, by how they add to cells with a copy for each CPU.
    pub(super) adds_by: Family<PathLabels<'static>, Gauge>,
    /// When a region was made.
    #[metric(name = "region_created_timestamp_seconds")]
    pub(super) created: Family<RegionLabel<'static>, FloatGauge>,
    /// Processes of a region that the agent saw alive and that ended, by their exit code, the signal that killed them, or
    /// because memory ran out.
    #[metric(name = "region_process_ends")]
    pub(super) ends: Family<EndLabels<'static>, Counter>,
    /// Since when the agent has found no living process of a region.
    #[metric(name = "region_dead_since_timestamp_seconds")]
    pub(super) dead_since: Family<RegionLabel<'static>, FloatGauge>,
    /// When the agent last found a process of a region gone that it had seen alive.
    #[metric(name = "region_last_death_timestamp_seconds")]
    pub(super) last_death: Family<RegionLabel<'static>, FloatGauge>,
}

/// The agent's metrics.
#[derive(Debug, Metrics)]
#[metrics(prefix = "talea_agent")]
pub(super) struct AgentMetrics {
    /// Whether a region is served.
    pub(super) region_up: Family<RegionLabel<'static>, Gauge>,
    /// Series of a region in the last scrape of all families.
    pub(super) region_series: Family<RegionLabel<'static>, Gauge>,
    /// Families of a region that are left out, or shown without their type in a text format.
    pub(super) region_conflicts: Family<RegionLabel<'static>, Gauge>,
    /// Times that a region could not be opened or read.
    pub(super) region_errors: Family<RegionLabel<'static>, Counter>,
    /// Times that a directory could not be listed.
    pub(super) directory_errors: Counter,
    /// Scrapes by how they ended.
    pub(super) scrapes: Family<OutcomeLabel, Counter>,
    /// Time from a scrape's request to the last byte of its body.
    pub(super) scrape_duration: Histogram<Seconds>,
    /// Bytes of bodies of scrapes, as they were sent.
    pub(super) scrape_bytes: Counter,
}
