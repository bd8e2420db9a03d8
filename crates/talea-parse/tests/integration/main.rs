//! The tests of the reader and the checker in one binary.

mod check;
mod corpus;
mod hostile;
mod pages;
mod prometheus;
mod reader;
