//! The cases: how many layers a service has, and how it answers.

pub(crate) const NAME: &str = "http-layer";

/// glibc keeps 7 freed blocks of a size at hand for a thread. With 20 layers axum frees more at
/// once, and the cost of that depends on the sizes of all blocks: one block of another size makes
/// thousands of instructions more or less, by chance. So let it keep more.
pub(crate) const KEEPING_BLOCKS: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=120");

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) layers: usize,
    pub(super) answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    InMemory,
    Streamed,
}

pub(crate) const LAYERS: [usize; 3] = [1, 5, 20];

pub(super) const CASES: [Case; 4] = [
    Case { layers: LAYERS[0], answer: Answer::InMemory },
    Case { layers: LAYERS[1], answer: Answer::InMemory },
    Case { layers: LAYERS[2], answer: Answer::InMemory },
    Case { layers: LAYERS[0], answer: Answer::Streamed },
];

impl Case {
    /// Its name: `LAYERS` or `LAYERS-streamed`.
    pub(super) fn name(&self) -> String {
        let streamed = if self.answer == Answer::Streamed { "-streamed" } else { "" };
        format!("{}{streamed}", self.layers)
    }
}
