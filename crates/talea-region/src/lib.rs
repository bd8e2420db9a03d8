//! talea-region
