//! talea-http
