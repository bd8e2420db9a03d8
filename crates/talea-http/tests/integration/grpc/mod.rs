//! gRPC over real connections, by tonic's server and client, both with the layer: whatever they do, each call
//! is recorded once on each side, with its method and its status.

mod calls;
mod shop;
