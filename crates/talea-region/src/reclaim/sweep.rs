//! Sweeps: idle series are removed and memory is reclaimed, a chunk of the series table at a time.
//!
//! A sweep begins at most once a minute. Each thread that makes or removes a series does the next
//! chunk. A chunk:
//!
//! - removes series that were not looked up during as many sweeps as their family says, and hides
//!   those that a process keeps and no process added to; removes hidden ones that no process keeps any
//!   more;
//! - finishes the steps of a process that died;
//! - clears records that are reclaimable (`memory/guard.rs`), so that they, their cells and their
//!   text can be used again. As long as any such record waits, chunks are also done between sweeps.
//!
//! An idle series is removed by one compare-and-swap of its head. No thread can add to it afterwards,
//! because a look-up writes the number of its sweep into the head if there is an older one. A thread
//! that holds the series therefore:
//!
//! 1. either looked it up during a later sweep, and the compare-and-swap fails;
//! 2. or announced an epoch of that sweep or before, and reclamation waits for it;
//! 3. or no longer holds it. A process that keeps a series notes that before it leaves its guard.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::clock::boot_nanos;
use crate::layout::*;
use crate::memory::guard::{Guard, SWEEP, last_stamp_of_sweep};
use crate::region::Region;
use crate::series::family::{ENDED, RETIRED};
use crate::series::record::{
    self, BUILDING, CLEARING, FREE, Head, PUBLISHED, REMOVED, Series, UNLINKED,
};

/// Records of a chunk.
const CHUNK: u64 = 16;
/// Nanoseconds between two sweeps.
pub(crate) const SWEEP_INTERVAL: u64 = 60_000_000_000;

impl Region {
    /// Sweeps all series now: idle ones are removed, and memory of removed ones is reclaimed. It
    /// counts as a minute's sweep.
    pub fn sweep(&'static self) {
        self.begin_sweep(boot_nanos());
        self.sweep_all();
    }

    /// Sweeps all series if the last sweep began a minute ago or more, by the boot clock.
    pub fn sweep_if_due(&'static self) {
        if self.begin_sweep_if_due(boot_nanos()) {
            self.sweep_all();
        }
    }

    pub(crate) fn sweep_all(&'static self) {
        // The second round reclaims the records that the first one retires.
        for _ in 0..2 {
            for chunk in 0..self.chunks() {
                self.sweep_chunk(&self.memory.enter(), chunk);
            }
        }
    }

    /// Does the next chunk, if there is anything to do. `now` is in nanoseconds since 1970, or 0 if
    /// it is not known. Once in each of its seconds, the boot clock is read to find out whether a
    /// sweep is due.
    pub(crate) fn sweep_a_little(&self, guard: &Guard, now: u64) {
        let second = now / 1_000_000_000;
        // Another second, not a later one: the wall clock can be set back.
        if now > 0 && self.sweep_asked.load(Relaxed) != second {
            self.sweep_asked.store(second, Relaxed);
            self.begin_sweep_if_due(boot_nanos());
        }
        let swept = self.memory.word_at(M_SWEPT);
        let due = swept.load(Relaxed) < self.memory.word_at(M_DUE).load(Relaxed);
        if due || self.memory.word_at(M_WAITING).load(Relaxed) as i64 > 0 {
            let n = swept.fetch_add(1, Relaxed);
            self.sweep_chunk(guard, n % self.chunks().max(1));
        }
    }

    /// Begins a sweep if one is due; `now` by the boot clock.
    pub(crate) fn begin_sweep_if_due(&self, now: u64) -> bool {
        self.begin_sweep_where(now, |before| {
            let age = now.saturating_sub(before);
            // A time in the future is another thread's sweep just now, or damage.
            age >= SWEEP_INTERVAL || before.saturating_sub(now) > SWEEP_INTERVAL
        })
    }

    pub(crate) fn begin_sweep(&self, now: u64) {
        self.begin_sweep_where(now, |_| true);
    }

    /// Begins a sweep if that is wanted of the time at which the last one began.
    fn begin_sweep_where(&self, now: u64, is_wanted: impl FnOnce(u64) -> bool) -> bool {
        let swept_at = self.memory.word_at(M_SWEPT_AT);
        let before = swept_at.load(Relaxed);
        let begins =
            is_wanted(before) && swept_at.compare_exchange(before, now, AcqRel, Relaxed).is_ok();
        if begins {
            self.memory.restore_cpu_table();
            self.memory.restore_slot_count();
            self.memory.word_at(M_EPOCH).fetch_add(SWEEP, AcqRel);
            let due = self.memory.word_at(M_SWEPT).load(Relaxed).wrapping_add(self.chunks());
            self.memory.word_at(M_DUE).store(due, Relaxed);
        }
        begins
    }

    fn chunks(&self) -> u64 {
        (self.memory.used(&self.memory.sections.records) / RECORD_LEN).div_ceil(CHUNK)
    }

    pub(crate) fn sweep_chunk(&self, guard: &Guard, chunk: u64) {
        let end =
            (self.memory.used(&self.memory.sections.records) / RECORD_LEN).min((chunk + 1) * CHUNK);
        // One search for guards serves the whole chunk.
        let mut may_search = true;
        for id in chunk * CHUNK..end {
            self.series(id as u32).visit(guard, &mut may_search);
        }
    }
}

impl Series<'_> {
    fn visit(self, guard: &Guard, may_search: &mut bool) {
        let head = self.word(SERIES_HEAD).load(Acquire);
        match record::state(head) {
            PUBLISHED => self.look_for_idleness(guard, head, may_search),
            REMOVED => self.finish_removal(head),
            UNLINKED => self.clear_unlinked(head, may_search),
            BUILDING | CLEARING if self.region.is_abandoned(head) => self.take_over(head),
            // Taken, and its taker was killed before it could say so; or, seldom, it
            // is just about to, and then it takes another.
            FREE if self.is_taken() && self.claim_record(head) => self.clear(),
            _ => {}
        }
    }

    /// Whether its record is taken, by the bit of the pool.
    fn is_taken(self) -> bool {
        let memory = &self.region.memory;
        memory.is_taken(&memory.sections.records, u64::from(self.id))
    }

    fn look_for_idleness(self, guard: &Guard, seen: u64, may_search: &mut bool) {
        let head = Head::unpack(seen);
        if let Some(looked_up) = head.looked_up.moved_forward(guard.sweep) {
            let moved = Head { looked_up, ..head }.pack(PUBLISHED);
            // If it fails, a thread looked it up.
            let _ = self.word(SERIES_HEAD).compare_exchange(seen, moved, AcqRel, Relaxed);
            return;
        }
        if head.hidden && !self.is_pinned() {
            // The process that kept it was killed.
            return self.end_hiding(seen);
        }
        let Some(idle) = sweeps_since(guard, head) else { return };
        let family = self.region.family_word(head.family, FAMILY_HEAD).load(Acquire);
        let retired = matches!(record::state(family), RETIRED | ENDED);
        let idling = self.region.idling(head.family);
        let idle_limit = match (retired, head.permanent, idling.sweeps) {
            // A process that registered it may still have its permanent series.
            (true, true, _) if self.region.is_in_use(head.family) => return,
            (true, ..) => 1,
            (false, true, _) | (false, false, 0) => return,
            (false, false, sweeps) => u64::from(sweeps),
        };
        // First the guards are searched, then the pins: a thread pins a series before it leaves its
        // guard.
        let stamp = last_stamp_of_sweep(guard.sweep.saturating_sub(idle));
        // At the first sweep after a look-up no time may have passed at all.
        if idle <= idle_limit || !self.region.memory.is_unreachable(stamp, may_search) {
            return;
        }
        if self.is_pinned() {
            if idling.accumulates {
                self.hide_if_idle(guard, seen, idle_limit);
            }
        } else if !self.is_held() {
            // If it fails, a thread looked it up.
            let _ = self.retire(seen, None);
        }
    }
}

/// How many sweeps began since a series was last looked up; `None` where none did.
pub(crate) fn sweeps_since(guard: &Guard, head: Head) -> Option<u64> {
    Some(head.looked_up.sweeps_until(guard.sweep)).filter(|&sweeps| sweeps > 0)
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::*;
    use crate::clock::set::{pass, step_wall};
    use crate::lookup::register::FamilySpec;
    use crate::series::family::Family;
    use std::time::Duration;

    const HOUR: i64 = 3_600;

    fn family(minutes: u32) -> (&'static Region, Family) {
        crate::testing::family(FamilySpec { idle_minutes: minutes, ..FamilySpec::default() })
    }

    fn series(region: &'static Region) -> u64 {
        let snapshot = region.snapshot();
        snapshot.families().iter().map(|family| snapshot.series(family).count() as u64).sum()
    }

    /// Lets minutes pass, and calls `sweeps` in each.
    fn minutes(count: u32, mut sweeps: impl FnMut()) {
        for _ in 0..count {
            pass(60);
            sweeps();
        }
    }

    #[test]
    fn idle_series_expire_on_time_whichever_way_the_wall_clock_is_set() {
        for step in [-10 * HOUR, -61, 0, 61, 10 * HOUR] {
            let (region, f) = family(5);
            f.series(b"idle").unwrap();
            minutes(2, || region.sweep_if_due());
            step_wall(step);
            region.sweep_if_due();
            minutes(3, || region.sweep_if_due());
            assert_eq!(series(region), 1, "after a step of {step} s it went too early");
            minutes(2, || region.sweep_if_due());
            assert_eq!(series(region), 0, "after a step of {step} s it stays");
        }
    }

    #[test]
    fn new_series_begin_sweeps_though_the_wall_clock_was_set_back() {
        let (region, f) = family(2);
        f.series(b"idle").unwrap();
        step_wall(-10 * HOUR);
        let mut n = 0;
        minutes(4, || {
            n += 1;
            f.series(format!("new {n}").as_bytes()).unwrap();
        });
        let found = region.snapshot();
        let all = found.families().iter().flat_map(|family| found.series(family));
        let texts: Vec<&[u8]> = all.map(|series| series.text).collect();
        assert!(!texts.contains(&b"idle".as_slice()), "{texts:?}");
    }

    #[test]
    fn how_long_a_series_was_idle_is_known_though_the_wall_clock_was_set() {
        for step in [-10 * HOUR, 10 * HOUR] {
            let (region, f) = family(60);
            f.series(b"idle").unwrap();
            region.sweep();
            step_wall(step);
            pass(30);
            let seconds = |n| Some(Duration::from_secs(n));
            assert_eq!(region.expire(seconds(600), |_, _| true), 0, "after a step of {step} s");
            assert_eq!(region.expire(seconds(30), |_, _| true), 1, "after a step of {step} s");
        }
    }

    /// A region whose sweeps have come to a number, with a series that was looked up then.
    fn looked_up_at(sweep: u64, limit_minutes: u32) -> &'static Region {
        let (region, f) = family(limit_minutes);
        region.memory.word_at(M_EPOCH).store(sweep * SWEEP, Relaxed);
        f.series(b"idle").unwrap();
        region
    }

    /// Lets sweeps pass as far as the numbers go.
    fn skip(region: &Region, sweeps: u64) {
        region.memory.word_at(M_EPOCH).fetch_add(sweeps * SWEEP, Relaxed);
    }

    #[test]
    fn a_series_that_was_idle_for_any_time_expires_whenever_it_was_looked_up() {
        const DAYS_200: u64 = 200 * 24 * 60;
        let ends = [1 << 15, 1 << 16, 22 * 1440 + 18 * 60, 47 * 1440, 1 << 17, DAYS_200 - 1];
        let mut state = 1_u64;
        let drawn = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            2 + (state >> 33) % DAYS_200
        });
        let near_ends = ends.into_iter().flat_map(|end| end - 2..=end + 2);
        let idle_for = (2..40).chain(near_ends).chain(drawn.take(300));
        for (n, idle) in (0..).zip(idle_for) {
            // Phases of the sweeps' numbers, the ends of 16 and of 21 bits among them.
            let phase = [0, 65_530, 32_767, (1 << 21) - 5, n * 7_919 % (1 << 21)][n as usize % 5];
            for minutes in [1, (idle - 1) as u32] {
                let region = looked_up_at(phase, minutes);
                skip(region, idle - 1);
                region.sweep();
                assert_eq!(series(region), 0, "idle for {idle} sweeps since {phase}, {minutes}");
            }
            let region = looked_up_at(phase, idle as u32);
            skip(region, idle - 1);
            region.sweep();
            assert_eq!(series(region), 1, "{idle} sweeps since {phase} are not more than {idle}");

            // A family whose series never expire by themselves.
            let region = looked_up_at(phase, 0);
            skip(region, idle - 1);
            region.sweep();
            let minutes = |n: u64| Some(Duration::from_secs(60 * n));
            assert_eq!(region.expire(minutes(idle), |_, _| true), 0, "{idle} since {phase}");
            assert_eq!(region.expire(minutes(idle - 1), |_, _| true), 1, "{idle} since {phase}");
        }
    }

    #[test]
    fn a_series_that_is_idle_for_years_stays_old() {
        for phase in [0, 1 << 20, (1 << 21) - 2] {
            let region = looked_up_at(phase, 0);
            // Ten years, in steps such as sweeps of a service that is seldom used.
            for _ in 0..10 * 12 {
                skip(region, 30 * 24 * 60);
                region.sweep();
            }
            let days_360 = Duration::from_secs(360 * 24 * 3600);
            assert_eq!(region.expire(Some(days_360), |_, _| true), 1, "since {phase}");
        }
    }

    #[test]
    fn a_time_of_the_last_sweep_that_cannot_be_stops_no_expiry() {
        for damage in [u64::MAX, 1 << 60] {
            let (region, f) = family(2);
            f.series(b"idle").unwrap();
            region.memory.word_at(M_SWEPT_AT).store(damage, Relaxed);
            minutes(4, || region.sweep_if_due());
            assert_eq!(series(region), 0, "{damage}");
        }
    }

    #[test]
    fn a_time_that_was_read_before_the_last_sweep_begins_no_other() {
        let (region, _) = family(2);
        pass(60);
        let now = crate::clock::boot_nanos();
        region.sweep_if_due();
        let swept_at = region.memory.word_at(M_SWEPT_AT).load(Relaxed);
        assert!(swept_at >= now);
        assert!(!region.begin_sweep_if_due(now));
        assert_eq!(region.memory.word_at(M_SWEPT_AT).load(Relaxed), swept_at);
    }
}
