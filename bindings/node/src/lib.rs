//! The native addon of the package `talea`: regions, metrics, pages. The package around it is in `lib`.
//!
//! Node loads it once in a process, and initializes it in each environment: the main thread and each worker
//! thread. Objects belong to one environment; the registries that they lead to are shared by all.

// JavaScript's classes have their documentation in `lib`.
#![allow(missing_docs)]

mod family;
mod http;
mod page;
#[allow(unsafe_code)]
mod plane;
mod region;
