//! How much of a region is in use.

/// How much of a region is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Series records, those that wait to be used again among them.
    pub records: Part,
    /// Names, definitions and label text.
    pub text: Part,
    /// Single cells.
    pub single_cells: Part,
    /// Striped cells, in each plane.
    pub striped_cells: Part,
    /// Owned cells, in each process's block.
    pub owned_cells: Part,
    /// Bytes of a record.
    pub record_len: u64,
}

/// How much of a part of a region is in use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Bytes that are handed out.
    pub taken: u64,
    /// How far it ever reached; so much memory it has.
    pub reached: u64,
    /// How far it can reach.
    pub room: u64,
}
