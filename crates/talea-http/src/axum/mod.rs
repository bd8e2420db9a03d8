//! Routers that mirror axum's and meter what they declare, and a layer for those that exist
//! already.

mod existing;
mod future;
mod handler;
mod layer;
mod matched;
mod method_router;
mod panics;
mod route_table;
mod router;
mod shared;
mod site;
mod sole;

pub use existing::{meter, meter_by};
pub use matched::{Layer, Metered};
pub use method_router::{
    MethodRouter, any, any_service, connect, connect_service, delete, delete_service, get,
    get_service, head, head_service, on, on_service, options, options_service, patch,
    patch_service, post, post_service, put, put_service, trace, trace_service,
};
pub use router::Router;
