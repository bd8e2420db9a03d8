//! talea
