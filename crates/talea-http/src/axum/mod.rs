//! Routers that mirror axum's and meter what they declare.

mod layer;
mod method_router;
mod router;

pub use method_router::{
    MethodRouter, connect, delete, get, head, options, patch, post, put, trace,
};
pub use router::Router;
