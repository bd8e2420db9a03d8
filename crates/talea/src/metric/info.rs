//! Info: facts that do not change while a process runs, as labels.

use talea_region::{Cell, Combine, Number, Storage};

use super::slot::Slot;
use super::{Shape, single_cell_metric};
use crate::definition::kind::Kind;
use crate::family::Family;
use crate::labels::Labels;

/// The series of an [`Info`], which is 1.
#[derive(Clone, Debug)]
pub(crate) struct InfoSeries {
    cell: Slot<Cell>,
}

single_cell_metric!(pub(crate) InfoSeries, |opts| {
    Shape::without_choice(opts)?;
    let (number, storage) = (Number::Integer, Some(Storage::Single));
    Ok(Shape::single_cell(Kind::Info, number, storage, Combine::Latest, "_info"))
});

/// A fact that does not change while the process runs, such as its version: a series that is always
/// 1, with the fact in its labels.
///
/// Processes that share the region share it: the latest call wins.
///
/// ```
/// use talea::{Info, Labels, Opts, Registry};
///
/// #[derive(Labels)]
/// struct Build<'a> { version: &'a str, revision: &'a str }
///
/// let registry = Registry::for_test()?;
/// let build: Info<Build<'static>> =
///     registry.register(Opts::new("shop_build", "What this program was built from."))?;
/// build.set(Build { version: "1.4.0", revision: "f3a91c" });
/// let labels = [("version", "1.4.0"), ("revision", "f3a91c")];
/// assert_eq!(registry.snapshot().value("shop_build_info", &labels), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
pub struct Info<L> {
    pub(crate) family: Family<L, InfoSeries>,
}

impl<L> Info<L> {
    /// An info that is not installed yet: until then, its updates are discarded.
    #[track_caller]
    pub const fn new() -> Self {
        Self { family: Family::new() }
    }
}

impl<L: 'static> Info<L> {
    /// Sets the labels, in place of the previous ones. If the region has no room for them, nothing
    /// changes.
    ///
    /// Cost: that of making a series, and a look at the previous ones; it is meant to be called
    /// once.
    pub fn set<Q: Labels<Static = L>>(&self, labels: Q) {
        let Some(series) = self.family.bound().map(|bound| bound.family) else {
            return self.family.late.note_discarded();
        };
        let text = crate::labels::LabelText::of(&labels);
        // Two concurrent calls with different labels may remove the series of each other. So a call
        // that removed a series checks again that its own is there. The number of attempts is
        // bounded, in case the region is damaged.
        for _ in 0..1000 {
            let Ok(looked) = series.series(text.as_bytes()) else { return };
            looked.at(0).set(1);
            let mut is_there = false;
            let removed = series.remove_where(|other| {
                let own = other == text.as_bytes();
                is_there |= own;
                !own
            });
            if is_there && removed == 0 {
                return;
            }
        }
    }
}

impl<L> Default for Info<L> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<L> Clone for Info<L> {
    fn clone(&self) -> Self {
        Self { family: self.family.clone() }
    }
}

impl<L> std::fmt::Debug for Info<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Info").field("family", &self.family).finish()
    }
}
