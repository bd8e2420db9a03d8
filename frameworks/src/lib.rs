//! Meters for web frameworks whose requests are of types of their own. Frameworks that take a layer of tower, such as
//! axum, salvo and warp, need none: see talea-http.

#[cfg(feature = "poem")]
pub mod poem;
#[cfg(feature = "rocket")]
pub mod rocket;
