//! The agent: it serves regions from outside, keeps what they showed, and shows it live.
//!
//! - [`serve`]: any number of regions as one page.
//! - [`web`]: the web configuration: TLS, passwords, headers.
//! - [`history`]: what the page showed, by seconds and minutes; [`postmortem`] reads the last minute.
//! - [`live`]: what happens from one reading to the next; [`page`] shows it in a browser.
// What is public is for the programs of this repository; the modules' first lines say what they do.
#![allow(missing_docs)]
#![cfg(target_os = "linux")]

pub mod change;
pub mod descriptors;
mod exits;
pub mod history;
pub mod live;
pub mod page;
pub mod postmortem;
pub mod region_place;
pub mod serve;
pub mod web;
