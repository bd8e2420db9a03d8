//! The items API: five endpoints over one table, metered by Talea.
//!
//! ```text
//! GET    /api/items        200  {"data":[{"id":1,"value":true}]}, ordered by id
//! POST   /api/items        201  Location: /api/items/1, {"data":{"id":1,"value":true}}
//! GET    /api/items/{id}   200  {"data":{"id":1,"value":true}}
//! PUT    /api/items/{id}   200  {"data":{"id":1,"value":false}}
//! PATCH  /api/items/{id}   200  the same as PUT
//! DELETE /api/items/{id}   204
//! ```
//!
//! POST, PUT and PATCH take `{"item":{"value":true}}`. A missing value is false
//! for a new item; a change without a value leaves the item as it is. `null` is
//! no value.
//!
//! Errors are answered as `{"error":{"message":"…"}}`: 404 for an item or a
//! path that is not there (an id that is not an integer names no item), 405 with
//! `Allow` for a method that a path does not answer, 413 for a body above 2 MB,
//! 422 for a body that is not an item.
//!
//! From the arguments down: [`service`] puts the parts together, [`server`]
//! accepts connections, [`items`] answers requests, [`store`] keeps the items in
//! the [`database`], to which requests share the connections of a pool. [`metering`]
//! says what of this the metrics show.

pub mod answer;
pub mod arguments;
pub mod database;
pub mod descriptors;
pub mod items;
pub mod log;
pub mod metering;
mod pool;
mod request;
pub mod server;
pub mod service;
pub mod stop;
pub mod store;
mod study;
