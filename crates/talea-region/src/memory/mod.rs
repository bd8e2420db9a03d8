//! Memory: the words of a region, and how they are handed out. Nothing here knows of families and
//! series.
//!
//! - `mapping`: the mapped words, their pages, and the locks that say which processes live
//! - `words`: [`Memory`], the words with the state of this process beside them; `refusal`, pages that
//!   the system refused
//! - `slots`: the process slots; `planes`: the copies of striped cells, one for each CPU
//! - `guard`: epoch-based reclamation; `membarrier`, a fence that one thread makes for all
//! - `path`: how this process adds to striped cells; `amount`: what is added; `restartable`: plain adds to
//!   the running CPU's plane; `current_cpu`: the CPU of an atomic add
//! - `pool`: runs of granules; in them `text`, `runs` of cells, and `table`s of segments

pub(crate) mod amount;
#[allow(unsafe_code)]
mod current_cpu;
mod free_runs;
pub(crate) mod guard;
#[allow(unsafe_code)]
pub(crate) mod mapping;
#[allow(unsafe_code)]
pub(crate) mod membarrier;
pub(crate) mod path;
#[allow(unsafe_code)]
pub(crate) mod planes;
mod pool;
mod refusal;
#[allow(unsafe_code)]
pub(crate) mod restartable;
pub(crate) mod runs;
pub(crate) mod slots;
pub(crate) mod table;
mod text;
#[allow(unsafe_code)]
mod words;

pub(crate) use words::Memory;
