//! Holds: a process keeps a series for some time, and lets go.
//!
//! A process is noted once beside a series that it keeps (`pins.rs`). How many holds of it there are is
//! counted in its own memory. With the last one the note goes; then a series that was removed meanwhile,
//! or that was idle, is retired.
//!
//! Invariants:
//!
//! 1. Count and note change together, under a lock. Where this process keeps the series for ever,
//!    beside or before, it has no count, and the note stays.
//! 2. A hold is noted before the head is read; a thread that removes a series marks the head as
//!    *removing* before it reads the notes; each with a full fence between (`reclaim/retire.rs`). So either
//!    that thread finds the note, or this one the mark; and then it changes the head, so that the removal fails
//!    and is tried anew.
//! 3. The lock is held while no other code of the caller runs. In a child, the counts are those of the
//!    parent, as its objects are; the child must not be forked while another thread makes or drops a hold.

use std::fmt;
use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};

use crate::error::Overflow;
use crate::layout::SERIES_HEAD;
use crate::memory::guard::Guard;
use crate::primitive::fence;
use crate::region::Region;
use crate::series::cell::Cell;
use crate::series::record::{self, Head, PUBLISHED, Series};

/// Keeps a series until it is dropped: its cells belong to it, also after it was removed. What is added
/// to a series that was removed is discarded.
///
/// It may be sent to another thread, and be dropped in a child made by `fork`.
pub struct Hold {
    region: &'static Region,
    id: u32,
}

impl Hold {
    /// Of the series with this cell, which was just looked up. `None` if it was removed since.
    ///
    /// # Errors
    ///
    /// [`Overflow`] where there is no room to note it.
    pub fn of(cell: Cell) -> Result<Option<Self>, Overflow> {
        let series = cell.series();
        let Series { region, id } = series;
        let mut counts = region.holds.begin();
        match counts.get_mut(&id) {
            Some(count) => *count += 1,
            None if series.set_pin().ok_or(Overflow::Full)? => {
                counts.insert(id, 1);
            }
            None => {}
        }
        drop(counts);
        let hold = Self { region, id };
        fence(SeqCst);
        Ok(series.outruns_removal().then_some(hold))
    }

    /// Whether look-ups still find the series.
    pub fn is_current(&self) -> bool {
        record::state(self.series().word(SERIES_HEAD).load(Acquire)) == PUBLISHED
    }

    /// Whether the series was removed, or is hidden since it is idle.
    pub fn is_out_of_sight(&self) -> bool {
        self.series().is_out_of_sight()
    }

    fn series(&self) -> Series<'static> {
        self.region.series(self.id)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let guard = self.region.memory.enter();
        let mut counts = self.region.holds.counts();
        match counts.get_mut(&self.id) {
            // It is kept for ever beside.
            None => return,
            Some(count) if *count > 1 => {
                *count -= 1;
                return;
            }
            Some(count) => debug_assert_eq!(*count, 1, "a count is at least 1"),
        }
        counts.remove(&self.id);
        self.series().clear_pin();
        drop(counts);
        self.series().was_let_go(&guard);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("series", &self.id).finish_non_exhaustive()
    }
}

impl Series<'_> {
    /// Has a removal fail that began before this process noted that it keeps the series, and shows the
    /// series if it is hidden; false if it was removed.
    fn outruns_removal(self) -> bool {
        let word = self.word(SERIES_HEAD);
        let mut seen = word.load(Acquire);
        loop {
            let head = Head::unpack(seen);
            if record::state(seen) != PUBLISHED {
                return false;
            }
            if !head.hidden && !head.removing {
                return true;
            }
            let turn = head.turn.wrapping_add(1);
            let shown = Head { turn, hidden: false, ..head }.pack(PUBLISHED);
            match word.compare_exchange(seen, shown, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// The last hold of this process was dropped.
    fn was_let_go(self, guard: &Guard) {
        fence(SeqCst);
        self.end_hiding(self.word(SERIES_HEAD).load(Acquire));
        self.region.sweep_a_little(guard, 0);
    }
}
