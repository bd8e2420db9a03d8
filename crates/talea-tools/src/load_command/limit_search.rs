//! The search for the highest rate at which loads hold, and an interval in which it lies.
//!
//! The limit is the rate at which half of the loads hold. Rates are doubled until loads miss, and then the geometric
//! mean of the two is tried until they are close. A load that misses is repeated, since a single pause of the machine
//! may have caused it. Both ends of this interval were chosen by chance too, so each is then tested anew: loads at it
//! are repeated until it is decided whether more than half of them hold, or fewer. An end for which that stays undecided
//! moves away from the other.
//!
//! The test is looked at after each load, so it is by a ratio of likelihoods, which a fair coin brings to 1/x *at any
//! time* with a chance of at most x (Ville's inequality). An end that moved is tested with half of the chance, so that
//! the chance of an error stays below what is stated however often ends move.

use serde::Serialize;

/// The search ends when the rates between which the limit lies have at most this ratio.
const CLOSE: f64 = 1.05;
pub(super) const HIGHEST: f64 = 1e6;
const LOWEST: f64 = 1e-2;
/// The chance of an error at one end.
const CHANCE: f64 = 0.025;
/// The chance that the limit lies in the interval: the rest is that of both ends.
const CERTAINTY: f64 = 1.0 - 2.0 * CHANCE;
/// How many loads a test of an end has at most, and how many more each time that it moved.
const MOST_LOADS: u32 = 14;

/// A search. The caller makes a load at the rate that is next, notes whether it held, and so on.
#[derive(Clone, Debug)]
pub(super) struct LimitSearch {
    first: f64,
    /// The highest rate that held, and the lowest that missed.
    holds: Option<f64>,
    misses: Option<f64>,
    /// A rate that has missed once.
    in_doubt: Option<f64>,
    ends: Option<Ends>,
    /// Not even the highest rate could be decided on: there is no interval.
    is_vain: bool,
}

/// The interval in which the limit lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Limit {
    /// At this rate more than half of the loads hold.
    pub(super) low: f64,
    /// At this rate fewer do.
    pub(super) high: f64,
    /// The chance that such an interval has the limit in it.
    pub(super) certainty: f64,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    low: End,
    high: End,
    /// By how much the next end moves that is not decided.
    step: f64,
}

/// One end, and the loads that were made there to test it.
#[derive(Clone, Copy, Debug)]
struct End {
    rate: f64,
    held: u32,
    missed: u32,
    /// How often it moved.
    moves: u32,
}

impl End {
    fn at(rate: f64, moves: u32) -> Self {
        Self { rate, held: 0, missed: 0, moves }
    }

    fn is_decided(self, count: u32) -> bool {
        let chance = CHANCE / 2f64.powi(self.moves as i32 + 1);
        likelihood_ratio(count, self.held + self.missed) >= 1.0 / chance
    }

    fn is_given_up(self) -> bool {
        self.held + self.missed >= MOST_LOADS + self.moves
    }
}

/// How much likelier so many of some loads are if more than half hold than if half do. Of the first, half of the
/// weight is on all, the other half even between a half and all.
fn likelihood_ratio(count: u32, of: u32) -> f64 {
    let all = if count == of { 2f64.powi(of as i32) } else { 0.0 };
    // The integral of p^count (1 - p)^(of - count) over that half, by the binomial distribution.
    let ways = (0..count).fold(1.0, |ways, n| ways * f64::from(of - n) / f64::from(n + 1));
    let below = 1.0 - chance_of_at_least(count + 1, of + 1);
    let even = 2f64.powi(of as i32 + 1) * below / (f64::from(of + 1) * ways);
    (all + even) / 2.0
}

/// The chance that at least so many of some loads hold, if each holds by a chance of a half.
fn chance_of_at_least(count: u32, of: u32) -> f64 {
    let (mut ways, mut all) = (1.0, 0.0);
    for n in 0..=of {
        if n >= count {
            all += ways;
        }
        ways *= f64::from(of - n) / f64::from(n + 1);
    }
    all / 2f64.powi(of as i32)
}

impl LimitSearch {
    pub(super) fn from(first: f64) -> Self {
        Self { first, holds: None, misses: None, in_doubt: None, ends: None, is_vain: false }
    }

    /// The rate to try next; none if the search is over.
    pub(super) fn next(&self) -> Option<f64> {
        if self.is_vain {
            return None;
        }
        if let Some(rate) = self.in_doubt {
            return Some(rate);
        }
        if let Some(Ends { low, high, .. }) = self.ends {
            let of_low = (!low.is_decided(low.held)).then_some(low.rate);
            return of_low.or_else(|| (!high.is_decided(high.missed)).then_some(high.rate));
        }
        match (self.holds, self.misses) {
            (None, None) => Some(self.first),
            (Some(holds), None) => (holds < HIGHEST).then(|| (holds * 2.0).min(HIGHEST)),
            (None, Some(misses)) => (misses > LOWEST).then_some(misses / 2.0),
            (Some(holds), Some(misses)) => Some((holds * misses).sqrt()),
        }
    }

    /// Notes whether a load at the next rate held.
    pub(super) fn note(&mut self, held: bool) {
        let Some(rate) = self.next() else { return };
        if self.ends.is_some() {
            return self.test(held);
        }
        if !held && self.in_doubt.is_none() {
            self.in_doubt = Some(rate);
            return;
        }
        self.in_doubt = None;
        match held {
            true => self.holds = Some(rate),
            false => self.misses = Some(rate),
        }
        if let (Some(low), Some(high)) = (self.holds, self.misses)
            && high / low <= CLOSE
        {
            self.ends = Some(Ends { low: End::at(low, 0), high: End::at(high, 0), step: CLOSE });
        }
    }

    fn test(&mut self, held: bool) {
        let Some(Ends { low, high, step }) = &mut self.ends else { return };
        let is_low = !low.is_decided(low.held);
        let end = if is_low { &mut *low } else { &mut *high };
        *(if held { &mut end.held } else { &mut end.missed }) += 1;
        let is_other = if is_low { end.is_decided(end.missed) } else { end.is_decided(end.held) };
        let is_decided = if is_low { end.is_decided(end.held) } else { end.is_decided(end.missed) };
        if is_decided || !is_other && !end.is_given_up() {
            return;
        }
        if !is_low && !is_other && end.rate >= HIGHEST {
            self.is_vain = true;
            return;
        }
        // It is the other end, or too close to the limit.
        let moved = if is_low { end.rate / *step } else { (end.rate * *step).min(HIGHEST) };
        let tested = std::mem::replace(end, End::at(moved, end.moves + 1));
        if is_other {
            *(if is_low { high } else { low }) = tested;
        }
        *step *= *step;
        if self.ends.is_some_and(|ends| ends.low.rate < LOWEST) {
            (self.holds, self.misses) = (None, Some(LOWEST));
            self.ends = None;
        } else if self.ends.is_some_and(|ends| ends.low.rate >= HIGHEST) {
            (self.holds, self.misses) = (Some(HIGHEST), None);
            self.ends = None;
        }
    }

    /// The interval in which the limit lies, once it is known.
    pub(super) fn limit(&self) -> Option<Limit> {
        let Ends { low, high, .. } = self.ends?;
        let is_found = self.next().is_none() && !self.is_vain;
        is_found.then_some(Limit { low: low.rate, high: high.rate, certainty: CERTAINTY })
    }

    /// The highest rate that held and the lowest that missed so far.
    pub(super) fn so_far(&self) -> (Option<f64>, Option<f64>) {
        match self.ends {
            Some(Ends { low, high, .. }) => (Some(low.rate), (!self.is_vain).then_some(high.rate)),
            None => (self.holds, self.misses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval that a search finds, and how many loads it makes, if a load at a rate holds by that chance.
    fn search(seed: u64, chance: impl Fn(f64) -> f64) -> (LimitSearch, u32) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut search = LimitSearch::from(10.0);
        let mut loads = 0;
        while let Some(rate) = search.next() {
            search.note(random.f64() < chance(rate));
            loads += 1;
            assert!(loads < 2_000, "seed {seed}: no end: {search:?}");
        }
        (search, loads)
    }

    #[test]
    fn a_fair_coin_seldom_brings_the_ratio_up_however_often_it_is_looked_at() {
        for (count, of, expected) in [(0, 0, 1.0), (1, 1, 1.75), (0, 1, 0.25)] {
            assert!((likelihood_ratio(count, of) - expected).abs() < 1e-12, "{count} of {of}");
        }
        for chance in [CHANCE, CHANCE / 2.0, CHANCE / 8.0] {
            // By number of heads: the chance of it without a decision before.
            let (mut undecided, mut decided) = (vec![1.0], 0.0);
            for of in 1..=60 {
                let mut next = vec![0.0; of + 1];
                for (heads, chance) in undecided.iter().enumerate() {
                    next[heads] += chance / 2.0;
                    next[heads + 1] += chance / 2.0;
                }
                for (heads, of_heads) in next.iter_mut().enumerate() {
                    if likelihood_ratio(heads as u32, of as u32) >= 1.0 / chance {
                        decided += std::mem::take(of_heads);
                    }
                }
                undecided = next;
            }
            assert!(decided <= chance && decided > chance / 4.0, "{chance}: {decided}");
        }
    }

    #[test]
    fn a_sharp_limit_lies_within_an_interval_of_five_percent() {
        for limit in [0.02, 0.9, 10.0, 73.0, 4_200.0, 650_000.0] {
            let (search, loads) = search(1, |rate| if rate <= limit { 1.0 } else { 0.0 });
            let found = search.limit().unwrap();
            assert!(found.low <= limit && limit < found.high, "{limit}: {found:?}");
            assert!(found.high / found.low <= CLOSE, "{found:?}");
            assert!(loads < 60, "{limit}: {loads} loads");
        }
    }

    #[test]
    fn nineteen_of_twenty_intervals_have_the_limit_in_them_however_noisy_the_loads_are() {
        // The chance that a load holds falls from 0.9 to 0.1 within this ratio of rates.
        for spread in [1.001, 1.02, 1.1, 1.5, 3.0] {
            let (limit, searches) = (730.0, 2_000);
            let steepness = 2.0 * 9f64.ln() / f64::ln(spread);
            let right = (0..searches).filter(|seed| {
                let (search, _) =
                    search(*seed, |rate| 1.0 / (1.0 + (rate / limit).powf(steepness)));
                search.limit().is_some_and(|found| found.low <= limit && limit <= found.high)
            });
            let share = right.count() as f64 / searches as f64;
            assert!(share >= CERTAINTY, "spread {spread}: {share}");
        }
    }

    #[test]
    fn an_interval_without_the_limit_is_rare_also_where_the_rate_hardly_matters() {
        for margin in [0.2, 0.05, 0.01] {
            let (limit, searches) = (730.0, 2_000);
            let wrong = (0..searches).filter(|seed| {
                let (search, _) =
                    search(*seed, |rate| if rate <= limit { 0.5 + margin } else { 0.5 - margin });
                search.limit().is_some_and(|found| limit < found.low || found.high < limit)
            });
            let share = wrong.count() as f64 / searches as f64;
            assert!(share <= 1.0 - CERTAINTY, "margin {margin}: {share}");
        }
    }

    #[test]
    fn a_service_that_never_or_always_holds_has_no_limit() {
        let (never, _) = search(1, |_| 0.0);
        assert!(never.limit().is_none() && never.so_far().0.is_none(), "{never:?}");
        let (always, _) = search(1, |_| 1.0);
        assert!(always.limit().is_none(), "{always:?}");
        assert_eq!(always.so_far(), (Some(HIGHEST), None));
        for seed in 0..200 {
            let (by_chance, _) = search(seed, |_| 0.5);
            let (low, _) = by_chance.so_far();
            let has_none = by_chance.is_vain || low.is_none_or(|low| low == HIGHEST);
            assert!(by_chance.limit().is_some() || has_none, "seed {seed}: {by_chance:?}");
        }
    }
}
