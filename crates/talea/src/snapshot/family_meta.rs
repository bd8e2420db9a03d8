//! The definition of a family as a snapshot keeps it from one scrape to the next.

use std::ops::Range;
use std::sync::Arc;

use talea_region::FamilyCopy;

use crate::definition::kind::Kind;
use crate::definition::names::{self, is_plain, is_plain_label};
use crate::definition::{Definition, Recent, of_family};
use crate::histogram::buckets::Grid;

/// A family that can be shown.
#[derive(Clone)]
pub(super) struct FamilyMeta {
    /// Its number among the raw families.
    pub(super) n: usize,
    pub(super) about: [u64; 5],
    /// The places of its name and its help in the texts.
    pub(super) name: Range<usize>,
    pub(super) help: Range<usize>,
    /// Whether its name, and the names of its labels, are such as every format has.
    pub(super) is_plain: bool,
    pub(super) kind: Kind,
    /// Apart, so that those who go through all families pass over less memory.
    pub(super) definition: Arc<Definition>,
    /// The grid, and the part of `definition` that each scrape reads. Families with equal ones
    /// share them.
    pub(super) grid: Arc<Grid>,
    pub(super) recent: Option<Arc<Recent>>,
    /// The quantiles of a summary that [`Windows`](crate::Windows) filled in, of one series after
    /// the other.
    pub(super) quantiles: Vec<f64>,
    /// For a summary that stores samples: the number of the raw family that has them.
    pub(super) samples: Option<usize>,
    /// How many of them there are in its window and their sum, of one series after the other.
    pub(super) window_totals: Vec<(u64, f64)>,
    /// The name of a summary that shows the quantiles of a histogram.
    pub(super) recent_name: Option<String>,
    /// Whether it has a label of the name of a constant one. Kept, as the encoder asks for each piece of a page.
    pub(super) hides_constants: bool,
}

/// The name under which a histogram shows its quantiles of the last minutes, if it does.
pub(crate) fn recent_of(family: &FamilyCopy) -> Option<String> {
    if Kind::from_u8(family.kind)? != Kind::Histogram {
        return None;
    }
    of_family(family)?.recent?;
    std::str::from_utf8(&family.name).ok().map(names::recent)
}

impl FamilyMeta {
    pub(super) fn name_in<'a>(&'a self, raw: &'a talea_region::Snapshot) -> &'a str {
        self.recent_name.as_deref().unwrap_or_else(|| {
            std::str::from_utf8(&raw.families()[self.n].name).unwrap_or_default()
        })
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.recent.as_ref().is_some_and(|recent| recent.sampled)
    }

    /// The summary that a histogram shows beside itself, if it does.
    pub(super) fn recent(&self, raw: &talea_region::Snapshot) -> Option<Self> {
        if self.kind != Kind::Histogram || self.definition.recent.is_none() {
            return None;
        }
        let name = names::recent(self.name_in(raw));
        Some(Self { kind: Kind::Summary, recent_name: Some(name), ..self.clone() })
    }

    /// Decodes the definition of a family; equal parts are shared with one of `others`.
    pub(super) fn of(n: usize, family: &FamilyCopy, others: &[Self]) -> Option<Self> {
        /// How many of the latest are searched for equal parts; mostly one has them.
        const LATEST: usize = 8;
        let definition = of_family(family)?;
        let name = std::str::from_utf8(&family.name).ok()?;
        let kind = Kind::from_u8(family.kind)?;
        let mut alike = others.iter().rev().take(LATEST).filter(|other| {
            let Definition { layout, recent, .. } = &*other.definition;
            (layout, recent) == (&definition.layout, &definition.recent)
        });
        let (grid, recent) = match alike.next() {
            Some(other) => (other.grid.clone(), other.recent.clone()),
            None => (
                Arc::new(Grid::new(definition.layout.clone())),
                definition.recent.clone().map(Arc::new),
            ),
        };
        let is_plain = is_plain(name)
            && definition.labels.iter().all(|label| is_plain_label(label))
            // A state set has its own name among its labels.
            && (kind != Kind::StateSet || is_plain_label(name));
        Some(Self {
            n,
            about: family.about(),
            name: 0..0,
            help: 0..0,
            is_plain,
            kind,
            definition: Arc::new(definition),
            grid,
            recent,
            quantiles: Vec::new(),
            samples: None,
            window_totals: Vec::new(),
            recent_name: None,
            hides_constants: false,
        })
    }
}
