//! Claims that need several crates, or programs that others wrote.

mod advice;
mod check;
mod contrib;
mod current;
mod dashboard;
mod first_event;
mod members;
mod native;
mod promtool;
mod push;
mod push_by_agent;
mod push_to_collector;
mod python;
mod relabel;
mod report;
mod rules;
mod study_files;
