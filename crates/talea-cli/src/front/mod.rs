//! What listens for an agent.

pub mod web;
