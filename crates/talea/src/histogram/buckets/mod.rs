//! The cells of a histogram: the cell that counts an observation, and the buckets that a reader
//! derives from the cells.
//!
//! The cells are the common refinement of the classic thresholds and the native buckets,
//! so one count serves both, and both are always the same observations.
//!
//! A series has *base cells* from the start, and a *segment* of cells for an octave of values when
//! the first of them comes. The base cells belong to the series itself, up to zero and the values
//! that are not finite if it has native buckets, then those of a segment that it is made with. A segment has a cell for each native bucket of its octave and for each
//! threshold that cuts one. Base cells count zero, values that are not finite and, if the region
//! has no room for a segment, all others; they are divided by the thresholds and the buckets of the
//! coarsest schema alone.
//!
//! ```text
//!   series    specials │ sum                     or, without native buckets,
//!             specials │ by thresholds │ sum
//!   made      by thresholds and ±2^(16n)
//!   segment   by thresholds and the octave's bounds, of the schema that it was made for
//! ```
//!
//! The schema of new segments is a number of the series that only decreases: when one more segment
//! would make more cells than there may be, those from then on are half as fine. Existing segments
//! stay as they are. A reader merges all into the coarsest schema, and further, as long as more
//! buckets are in use than may be shown.

mod by_octave;
mod cuts;
mod grid;
mod layout;
mod native;
mod octaves;
mod read;

pub(crate) use grid::{Grid, ZERO};
pub(crate) use layout::{Layout, NativeLayout, Numbers, order};
pub(crate) use native::{COARSEST, FINEST, bucket_of, coarser, growth, upper_bound};
pub(crate) use octaves::{Octave, Octaves};
