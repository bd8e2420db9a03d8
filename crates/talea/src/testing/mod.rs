//! Queries of a snapshot, and assertions whose messages show the nearest series.

mod expect;
mod failure;
mod nearest;
mod query;
