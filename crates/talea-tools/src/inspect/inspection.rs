//! The results of `talea inspect`, as its JSON has them.

use serde::Serialize;
use talea::outside::{FamilyFacts, Look, Overview, ProcessSlot, Storage};
use talea::{Combine, Part, SeriesSnapshot, Snapshot, Value};

#[derive(Debug, Serialize)]
pub(crate) struct Inspection {
    /// The file, or the process.
    pub source: String,
    pub region: Header,
    pub usage: Usage,
    /// The processes that have it open, and those that had.
    pub processes: Vec<Process>,
    /// Its families by name; of one name the newest first.
    pub families: Vec<FamilyLine>,
    pub families_unreadable: u64,
    /// Families that a later definition of their name has replaced.
    pub families_retired: u64,
    /// Families that were ended by their name.
    pub families_ended: u64,
    /// The series of the family that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<Series>>,
    #[serde(skip)]
    pub unit: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Header {
    pub layout_version: u64,
    /// The boot of the machine that it was made in.
    pub boot_id: String,
    /// Bytes that it may come to use.
    pub bytes: u64,
    pub created_unix_nanos: u64,
    /// When idle series were last looked for, in nanoseconds since 1970, as the wall clock has that
    /// time now.
    pub swept_unix_nanos: u64,
}

/// How much of each part of a region is in use.
#[derive(Debug, Serialize)]
pub(crate) struct Usage {
    /// Series, those that wait to be used again among them.
    pub series: PartUsage,
    /// Records of families, those that ended among them.
    pub families: PartUsage,
    /// Slots of living processes.
    pub processes: PartUsage,
    pub cpu_planes: PartUsage,
    /// Bytes of names, definitions and label text.
    pub text_bytes: PartUsage,
    pub single_cell_bytes: PartUsage,
    /// Bytes of striped cells, in each plane.
    pub striped_cell_bytes: PartUsage,
    /// Bytes of striped cells of segments, in each CPU's plane.
    pub lazy_cell_bytes: PartUsage,
    /// Bytes of owned cells, in each process's block.
    pub owned_cell_bytes: PartUsage,
    /// Bytes of text without an owner: being made at that instant, or left behind by processes that
    /// were killed.
    pub text_bytes_without_owner: u64,
    /// Bytes of cells without an owner, and of the extensions that some series have beside them.
    pub cell_bytes_without_owner: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PartUsage {
    pub used: u64,
    /// How much there ever was at once, as far as that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<u64>,
    /// How much there can be.
    pub room: u64,
}

/// A process that has a region open, or had.
#[derive(Debug, Serialize)]
pub(crate) struct Process {
    pub slot: u64,
    /// Its id, as it sees it itself.
    pub pid: u64,
    /// Whether it lives; a process that is stopped does.
    pub alive: bool,
    /// When it opened the region, in nanoseconds since 1970, as the wall clock has that time now.
    pub started_unix_nanos: u64,
    /// How many processes had that slot, this one among them.
    pub taken: u64,
    /// The path of its striped adds: `restartable`, `atomic` or `single`.
    pub adds: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct FamilyLine {
    /// The name, as samples have it.
    pub name: String,
    /// Its metric type, by its name in OpenMetrics.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The unit that its name ends in.
    pub unit: Option<&'static str>,
    pub help: String,
    pub labels: Vec<String>,
    /// How its cells are stored: single, striped, owned or stripes.
    pub storage: &'static str,
    /// How the values that threads and processes wrote are combined.
    pub combine: &'static str,
    /// Series that a scrape shows, without the overflow series.
    pub series: u64,
    /// Series that it may have.
    pub limit: u64,
    /// Whether a new series would be refused.
    pub at_limit: bool,
    /// How often a new series was refused; its values are in the overflow series.
    pub overflow: u64,
    /// How many living processes registered it.
    pub processes: u64,
    /// When it was registered first, in nanoseconds since 1970.
    pub created_unix_nanos: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Series {
    pub labels: Vec<(String, String)>,
    #[serde(flatten)]
    pub value: SeriesValue,
}

/// The value of a series. A number that JSON has no word for, such as NaN, is null.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum SeriesValue {
    Count {
        value: u64,
    },
    /// A whole number that may be negative.
    Signed {
        value: i64,
    },
    Float {
        value: f64,
    },
    Histogram {
        count: u64,
        sum: f64,
        /// The median, by its buckets.
        p50: Option<f64>,
        /// The 99th percentile, by its buckets.
        p99: Option<f64>,
        /// Each upper bound, as a text since the last is +Inf, and how many were at most that.
        buckets: Vec<(String, u64)>,
    },
    Summary {
        count: u64,
        sum: f64,
        /// The quantiles of recent observations, if the region keeps those: others only its process
        /// knows.
        quantiles: Vec<(f64, f64)>,
    },
}

impl Inspection {
    /// The result of a look, and the series of the family of that name.
    /// Fails when the region has no family of that name.
    pub(super) fn of(source: String, look: &Look, family: Option<&str>) -> anyhow::Result<Self> {
        let overview = &look.overview;
        Ok(Self {
            source,
            region: Header {
                layout_version: overview.layout_version,
                boot_id: overview.boot_id.clone(),
                bytes: overview.len,
                created_unix_nanos: overview.created_unix_nanos,
                swept_unix_nanos: overview.swept_unix_nanos,
            },
            usage: Usage::of(overview),
            processes: overview.processes.iter().map(Process::of).collect(),
            families: look.families.iter().map(FamilyLine::of).collect(),
            families_unreadable: look.families_unreadable,
            families_retired: overview.families_retired,
            families_ended: overview.families_ended,
            series: family.map(|name| series(&look.snapshot, name)).transpose()?,
            unit: look
                .families
                .iter()
                .find(|facts| family.is_some_and(|name| facts.name == name))
                .and_then(|facts| facts.unit),
        })
    }
}

impl Usage {
    fn of(overview: &Overview) -> Self {
        let usage = &overview.usage;
        let known = |used, room| PartUsage { used, reached: None, room };
        let alive = overview.processes.iter().filter(|process| process.is_alive).count();
        let records = usage.records;
        Self {
            series: PartUsage {
                used: records.taken / usage.record_len,
                reached: Some(records.reached / usage.record_len),
                room: overview.series_max,
            },
            families: known(overview.families, overview.families_max),
            processes: known(alive as u64, overview.processes_max),
            cpu_planes: known(overview.cpu_planes, overview.cpu_planes_max),
            text_bytes: usage.text.into(),
            single_cell_bytes: usage.single_cells.into(),
            striped_cell_bytes: usage.striped_cells.into(),
            lazy_cell_bytes: usage.lazy_cells.into(),
            owned_cell_bytes: usage.owned_cells.into(),
            text_bytes_without_owner: overview.text_without_owner,
            cell_bytes_without_owner: overview.cells_without_owner,
        }
    }
}

impl From<Part> for PartUsage {
    fn from(Part { taken, reached, room }: Part) -> Self {
        Self { used: taken, reached: Some(reached), room }
    }
}

impl Process {
    fn of(process: &ProcessSlot) -> Self {
        let &ProcessSlot { slot, pid, started_unix_nanos, taken, adds, is_alive: alive } = process;
        Self { slot, pid, alive, started_unix_nanos, taken, adds: adds.name() }
    }
}

impl FamilyLine {
    fn of(family: &FamilyFacts) -> Self {
        Self {
            name: family.name.clone(),
            kind: family.kind.as_str(),
            unit: family.unit,
            help: family.help.clone(),
            labels: family.labels.clone(),
            storage: match family.storage {
                Storage::Single => "single",
                Storage::Striped => "striped",
                Storage::Owned => "owned",
                Storage::Stripes => "stripes",
            },
            combine: match family.combine {
                Combine::Sum => "sum",
                Combine::Latest => "latest",
                Combine::Max => "max",
                Combine::Min => "min",
                Combine::Each => "each",
            },
            series: family.series,
            limit: family.limit,
            at_limit: family.is_at_limit,
            overflow: family.dropped,
            processes: family.processes,
            created_unix_nanos: family.created_unix_nanos,
        }
    }
}

/// The series of a family, which may be called without what its type adds to its name.
fn series(snapshot: &Snapshot, name: &str) -> anyhow::Result<Vec<Series>> {
    let named = |name: &str| snapshot.families().find(|family| family.name() == name);
    let found = named(name).or_else(|| named(&format!("{name}_total")));
    match found {
        Some(family) => Ok(family.series().map(|series| Series::of(&series)).collect()),
        None => anyhow::bail!(
            "found no family {name:?}, expected one of the {} in the region; without --family they \
             are listed",
            snapshot.families().len()
        ),
    }
}

impl Series {
    fn of(series: &SeriesSnapshot<'_>) -> Self {
        let labels = series.labels().into_iter().map(|(name, value)| (name.to_owned(), value));
        Self { labels: labels.collect(), value: SeriesValue::of(series.value()) }
    }
}

impl SeriesValue {
    fn of(value: Value) -> Self {
        match value {
            Value::Unsigned(value) => Self::Count { value },
            Value::Signed(value) => Self::Signed { value },
            Value::Float(value) => Self::Float { value },
            Value::Histogram(histogram) => Self::Histogram {
                count: histogram.count(),
                sum: histogram.sum(),
                p50: histogram.quantile(0.5),
                p99: histogram.quantile(0.99),
                buckets: histogram.cumulative().map(|(le, n)| (bound(le), n)).collect(),
            },
            Value::Summary(summary) => Self::Summary {
                count: summary.count,
                sum: summary.sum,
                quantiles: summary.quantiles.into_iter().filter(|it| !it.1.is_nan()).collect(),
            },
        }
    }
}

fn bound(le: f64) -> String {
    if le == f64::INFINITY { "+Inf".to_owned() } else { le.to_string() }
}
