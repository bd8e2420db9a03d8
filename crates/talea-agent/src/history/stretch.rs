//! Some of the ticks of a history, which can be read while others are added.

use std::sync::Arc;
use std::time::Duration;

use super::block::Block;
use super::record::{State, Time};

/// Ticks in their order.
#[derive(Debug)]
pub struct Stretch(Vec<Part>);

/// Some ticks of a block, by their numbers in it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) block: Arc<Block>,
    pub(super) ticks: Vec<usize>,
}

impl Stretch {
    pub(super) fn new(mut parts: Vec<Part>) -> Self {
        parts.retain(|part| !part.ticks.is_empty());
        Self(parts)
    }

    pub(crate) fn times(&self) -> Vec<Time> {
        self.0
            .iter()
            .flat_map(|part: &Part| -> Vec<Time> {
                part.ticks
                    .iter()
                    .filter_map(|tick| part.block.times().get(*tick).copied())
                    .collect()
            })
            .collect()
    }

    /// The time from the first tick to each, by the clock that is never set, or by the other one where the machine
    /// was booted in between.
    pub(crate) fn afters(&self) -> Vec<Duration> {
        let mut after = Duration::ZERO;
        let mut before: Option<Time> = None;
        self.times()
            .into_iter()
            .map(|time| {
                if let Some(before) = before.replace(time) {
                    let on_the_wall = time.unix_millis.saturating_sub(before.unix_millis).max(0);
                    let passed = time.steady.checked_sub(before.steady);
                    let passed = passed.unwrap_or(Duration::from_millis(on_the_wall as u64));
                    after = after.saturating_add(passed);
                }
                after
            })
            .collect()
    }

    /// Hands each tick to `show`: its number, its time, and all that was shown then. Of a block that is
    /// damaged, what comes before the damage. Its cost grows with the ticks of the blocks that it is in.
    pub(crate) fn replay(&self, mut show: impl FnMut(usize, Time, &State)) {
        let mut before = 0;
        for Part { block, ticks } in &self.0 {
            let mut state = State::within(block.bytes());
            let mut wanted = ticks.iter().enumerate().peekable();
            let mut number = 0;
            block.ticks(|tick| {
                let Some((at, wanted_number)) = wanted.peek() else { return false };
                let Some(time) = state.apply(tick) else { return false };
                if **wanted_number == number {
                    show(before + at, time, &state);
                    wanted.next();
                }
                number += 1;
                true
            });
            before += ticks.len();
        }
    }
}
