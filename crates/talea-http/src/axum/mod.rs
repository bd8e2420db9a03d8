//! Routers that mirror axum's and meter their endpoints; a meter for existing routers.

mod debug_routes;
mod declared_endpoint;
mod declared_router;
mod existing;
mod handler;
mod metered_layer;
mod meters_by_type;
mod method_router;
mod panic_watch;
mod router;
mod router_layer;
mod routes;
mod service;
mod shared_layer;

pub use existing::{meter, meter_by};
pub use method_router::{
    MethodRouter, RouteMethods, any, any_service, connect, connect_service, delete, delete_service,
    get, get_service, head, head_service, on, on_service, options, options_service, patch,
    patch_service, post, post_service, put, put_service, trace, trace_service,
};
pub use router::Router;
pub use router_layer::{Layer, Metered};
pub use routes::RouteError;
