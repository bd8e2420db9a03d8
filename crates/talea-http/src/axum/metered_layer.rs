//! A meter outside of a layer, in the same box as that layer.
//!
//! axum boxes a route again for every layer. So the meter is joined to the user's layer before axum
//! sees either, and has no box of its own.

use tower_layer::Layer;

use super::declared_endpoint::MetersByMethod;
use super::handler::MeteredHandler;

#[derive(Clone, Debug)]
pub(super) struct MeteredLayer<L> {
    layer: L,
    meters: &'static MetersByMethod,
}

impl<L> MeteredLayer<L> {
    pub(super) fn new(layer: L, meters: MetersByMethod) -> Self {
        // Meters live as long as the program, and so does their index.
        Self { layer, meters: Box::leak(Box::new(meters)) }
    }
}

impl<L: Layer<S>, S> Layer<S> for MeteredLayer<L> {
    type Service = MeteredHandler<L::Service, &'static MetersByMethod>;

    fn layer(&self, inner: S) -> Self::Service {
        MeteredHandler { inner: self.layer.layer(inner), door: self.meters }
    }
}
