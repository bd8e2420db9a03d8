//! Some of the ticks of a history, which can be read while others are added.

use std::sync::Arc;

use super::record::{State, Time};
use super::store::Block;

/// Ticks in their order.
#[derive(Debug)]
pub(crate) struct Stretch(Vec<Part>);

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

    /// When each tick was.
    pub(crate) fn times(&self) -> Vec<Time> {
        let of_part = |part: &Part| -> Vec<Time> {
            part.ticks.iter().map(|tick| part.block.time(*tick)).collect()
        };
        self.0.iter().flat_map(of_part).collect()
    }

    /// Hands each tick to `show`: its number, its time, and all that was shown then. Of a block that is
    /// damaged, what comes before the damage. Its cost grows with the ticks of the blocks that it is in.
    pub(crate) fn replay(&self, mut show: impl FnMut(usize, Time, &State)) {
        let mut before = 0;
        for Part { block, ticks } in &self.0 {
            let mut state = State::default();
            let mut wanted = ticks.iter().enumerate().peekable();
            for (number, record) in block.records().enumerate() {
                let Some((at, tick)) = wanted.peek() else { break };
                let Some(time) = record.get(1..).and_then(|tick| state.apply(tick)) else { break };
                if **tick == number {
                    show(before + at, time, &state);
                    wanted.next();
                }
            }
            before += ticks.len();
        }
    }
}
