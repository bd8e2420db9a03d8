//! talea-collectors
