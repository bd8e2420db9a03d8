//! Reads a region from outside the processes that count in it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use talea_region::{FamilyCopy, FamilyUse};
pub use talea_region::{Overview, ProcessEnd, ProcessSlot, Standing, Storage, process_end};

use crate::definition::kind::Kind;
use crate::definition::of_family;
use crate::error::Error;
use crate::expose::unit;
use crate::labels::LabelText;
use crate::samples;
use crate::snapshot::{Snapshot, derived_series, is_internal_kind, recent_of};
use crate::{Combine, OpenError};

/// A region that is read, never mapped: a file that is damaged, or truncated while it is read, is
/// an error and nothing worse. Writers are not affected. Any number of threads may use one at once.
#[derive(Debug)]
pub struct Reader {
    region: talea_region::Reader,
    /// The path that errors name.
    path: PathBuf,
    /// Whether that is a file's, rather than of a process that has it in memory.
    is_file: bool,
}

/// The state and the content of a region at one instant.
#[derive(Clone, Debug)]
pub struct Look {
    /// Its kind, how full it is, and the processes that have it open.
    pub overview: Overview,
    /// Its families, by name; of one name the newest first.
    pub families: Vec<FamilyFacts>,
    /// Families that Talea did not write, or that are damaged: they are left out.
    pub families_unreadable: u64,
    /// All values. Observable values are as old as their process [lets them
    /// get](crate::Registry::refresh_every). The quantiles of a [`Summary`](crate::Summary) need a
    /// reader that stays for the length of the window: [`Windows`](crate::Windows).
    pub snapshot: Snapshot,
}

/// A family as its region keeps it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FamilyFacts {
    /// The name, as samples have it (a counter's with `_total`).
    pub name: String,
    /// The type of the metric.
    pub kind: Kind,
    /// The unit that its name ends in, as OpenMetrics names it.
    pub unit: Option<&'static str>,
    /// The help text.
    pub help: String,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// How its cells are stored.
    pub storage: Storage,
    /// How the values of threads and processes are combined.
    pub combine: Combine,
    /// Series that a snapshot has, without the overflow series.
    pub series: u64,
    /// Series that it may have.
    pub limit: u64,
    /// Whether it has as many as its own count allows, so that a new one is refused. One
    /// whose labels are fixed may be so for good, and refuse nothing.
    pub is_at_limit: bool,
    /// The number of look-ups that were refused a new label combination for lack of room.
    pub dropped: u64,
    /// How many living processes registered it, as far as they have slots.
    pub processes: u64,
    /// When it was registered first, in nanoseconds since 1970.
    pub created_unix_nanos: u64,
}

impl Reader {
    /// Opens the region in a file. No symbolic link is followed, and what is no regular file
    /// is not waited for.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a region of this boot and layout.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        Ok(Self { region: talea_region::Reader::open(&path)?, path, is_file: true })
    }

    /// Opens the region in a file for reading, if it is a regular file of one of `owners` (user
    /// ids) that nobody else may write to: for a reader that gets paths from others, or that has
    /// more rights than they. It is looked at before it is opened, so that a FIFO, a device or a
    /// socket never is, and once more when it is open. No symbolic link is followed at the end of
    /// the path; its directories are the caller's to trust.
    ///
    /// # Errors
    ///
    /// The file is another user's, or of another kind, or its mode lets others write to it: the
    /// error names the value found and the one expected. And as [`open`](Self::open).
    pub fn open_owned_by(path: impl AsRef<Path>, owners: &[u32]) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        Ok(Self {
            region: talea_region::Reader::open_owned_by(&path, owners)?,
            path,
            is_file: true,
        })
    }

    /// The device and the number (inode) of the file, which no other file has as long as this
    /// one is open.
    ///
    /// # Errors
    ///
    /// The system refuses to look at it.
    pub fn identity(&self) -> std::io::Result<(u64, u64)> {
        self.region.identity()
    }

    /// When the region was made, in nanoseconds since 1970, by the wall clock of that time. Costs nothing.
    pub fn created_unix_nanos(&self) -> u64 {
        self.region.created_unix_nanos()
    }

    /// Whether the path that it was opened by still names this file, and whether the file is as
    /// long as it was. Ask before each [`look`](Self::look) of many: a service that was started
    /// anew may have put another file in its place. Cost: two system calls. Memory of a process
    /// has no path and is always the same.
    ///
    /// # Errors
    ///
    /// The system refuses to look at the path.
    pub fn standing(&self) -> std::io::Result<Standing> {
        if self.is_file { self.region.standing(&self.path) } else { Ok(Standing::Same) }
    }

    /// Opens the region that a running process of the same user has in memory, the first
    /// that it made. It can be read also after the process has died.
    ///
    /// # Errors
    ///
    /// There is no such process, it may not be looked into, or its region is in a file.
    pub fn of_process(pid: u32) -> Result<Self, Error> {
        let path = format!("/proc/{pid}").into();
        Ok(Self { region: talea_region::Reader::of_process(pid)?, path, is_file: false })
    }

    /// Copies the values of those families out whose names are wanted, as samples have them, into a
    /// snapshot that was taken before, whose memory is reused. Quantiles of the last minutes come
    /// by [`Windows`](crate::Windows).
    ///
    /// Cost: their series, read once; a word for each 64 others. It takes some hundred kilobytes
    /// beside the snapshot, and as much as the region has of cells if series have native buckets or
    /// exemplars, or were wiped.
    ///
    /// # Errors
    ///
    /// The file was truncated, or claims to have more in use than it has. The snapshot is then of
    /// no use.
    pub fn snapshot_into(
        &self,
        out: &mut Snapshot,
        wants: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let mut result = Ok(());
        out.take(wants, |raw, wants| result = self.region.snapshot_into(raw, wants));
        result.map_err(|source| self.failed(source).into())
    }

    /// The families, by the name that samples have, and how many series live in each that its limit counts: those
    /// with labels, but not the one that takes what overflows. Quantiles that a histogram shows beside itself
    /// are a family of their own.
    ///
    /// Cost: a look at each family; no series is read.
    ///
    /// # Errors
    ///
    /// As [`snapshot_into`](Self::snapshot_into).
    pub fn series_counts(&self) -> Result<Vec<(String, u64)>, Error> {
        let counts = RefCell::new(Vec::new());
        let taken = self.region.snapshot_into(&mut Default::default(), &|family: &FamilyCopy| {
            if !is_hidden(family) {
                let name = String::from_utf8_lossy(&family.name).into_owned();
                let names = [Some(name), recent_of(family)].into_iter().flatten();
                counts.borrow_mut().extend(names.map(|name| (name, family.live_series)));
            }
            false
        });
        taken.map_err(|source| self.failed(source))?;
        Ok(counts.into_inner())
    }

    /// As [`snapshot_into`](Self::snapshot_into), for only the families whose quantiles
    /// [`Windows`](crate::Windows) show. Windows need such a snapshot from time to time.
    ///
    /// Cost: a look at each family's definition, and their series.
    ///
    /// # Errors
    ///
    /// As [`snapshot_into`](Self::snapshot_into).
    pub fn recent_into(&self, out: &mut Snapshot) -> Result<(), Error> {
        let mut result = Ok(());
        out.refill(
            |_| true,
            |raw| {
                result = self.region.snapshot_into(raw, &|family: &FamilyCopy| {
                    of_family(family)
                        .is_some_and(|it| it.recent.is_some_and(|recent| !recent.sampled))
                })
            },
        );
        result.map_err(|source| self.failed(source).into())
    }

    fn failed(&self, source: std::io::Error) -> OpenError {
        OpenError::System { doing: "read the region", path: Some(self.path.clone()), source }
    }

    /// Copies all of it out. Cost: one read of the part in use, in memory of this
    /// process.
    ///
    /// # Errors
    ///
    /// The file was truncated, claims to have more in use than it has, or has an impossible header.
    pub fn look(&self) -> Result<Look, Error> {
        let (overview, taken) = self.region.look().map_err(|source| self.failed(source))?;
        let uses = overview.family_uses.iter().map(|one| (one.number, one));
        let uses: HashMap<u32, &FamilyUse> = uses.collect();
        let mut families: Vec<FamilyFacts> = taken
            .families()
            .iter()
            .filter_map(|family| {
                let own = taken.series(family).filter(|one| !LabelText::is_overflow(one.text));
                FamilyFacts::of(family, uses.get(&family.number())?, own.count() as u64)
            })
            .collect();
        // The newest of one name first. They come in the order in which they were made, which is
        // reliable: the time of creation is of a clock that can be set.
        families.reverse();
        families.sort_by(|one, other| one.name.cmp(&other.name));
        let hidden = taken.families().iter().filter(|family| is_hidden(family)).count();
        let known = families.len() + hidden;
        let families_unreadable = overview.family_uses.len().saturating_sub(known) as u64;
        let mut snapshot = Snapshot::default();
        snapshot.refill(
            |_| true,
            |raw| {
                *raw = taken;
                derived_series::dropped(raw);
            },
        );
        Ok(Look { overview, families, families_unreadable, snapshot })
    }
}

/// Whether a family holds what is shown with another.
fn is_hidden(family: &FamilyCopy) -> bool {
    samples::is_own(&family.name) || is_internal_kind(family.kind)
}

impl FamilyFacts {
    /// `None` of what Talea did not write.
    fn of(copy: &FamilyCopy, of_it: &FamilyUse, series: u64) -> Option<Self> {
        let definition = of_family(copy)?;
        let name = String::from_utf8(copy.name.clone()).ok()?;
        let kind = Kind::from_u8(copy.kind)?;
        Some(Self {
            unit: unit(kind, &name),
            name,
            kind,
            help: definition.help,
            is_at_limit: !definition.labels.is_empty() && of_it.series >= of_it.limit,
            labels: definition.labels,
            storage: of_it.storage,
            combine: copy.combine,
            series,
            limit: of_it.limit,
            dropped: copy.dropped,
            processes: of_it.processes,
            created_unix_nanos: copy.created_unix_nanos,
        })
    }
}
