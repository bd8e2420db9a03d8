//! talea-derive
