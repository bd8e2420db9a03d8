//! Layers whose services are shared, so that a request clones fewer of them.
//!
//! axum boxes a route again for every layer, and clones the outermost box for each request, with
//! everything inside. Each layer then clones its inner service once more to call it, so the number
//! of clones grows with the square of the number of layers. A shared service is cloned only when it
//! is called: with some of them among the layers, the clones grow linearly.

use std::sync::Arc;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

/// Whether the layer with this number around a route is shared: one in four is. Sharing more saves
/// little, and the reference count of a shared service is contended by all threads.
pub(super) fn is_shared(layers: usize) -> bool {
    layers % 4 == 0
}

#[derive(Clone, Debug)]
pub(super) struct SharedLayer<L>(pub(super) L);

impl<L: Layer<S>, S> Layer<S> for SharedLayer<L> {
    type Service = Shared<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        Shared { service: Arc::new(self.0.layer(inner)), ready: None }
    }
}

/// A service that is shared, and cloned for each call.
#[derive(Debug)]
pub(super) struct Shared<S> {
    service: Arc<S>,
    /// The clone that was polled ready, which has to be the one that is called.
    ready: Option<S>,
}

impl<S> Clone for Shared<S> {
    #[inline]
    fn clone(&self) -> Self {
        Self { service: Arc::clone(&self.service), ready: None }
    }
}

impl<S, R> Service<R> for Shared<S>
where
    S: Service<R> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.ready.get_or_insert_with(|| S::clone(&self.service)).poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: R) -> S::Future {
        self.ready.take().unwrap_or_else(|| S::clone(&self.service)).call(request)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::task::Waker;

    use tower_layer::layer_fn;

    use super::*;

    /// Ready when it was polled twice, and only for one call.
    #[derive(Default)]
    struct Slow {
        polls: u32,
    }

    impl Clone for Slow {
        fn clone(&self) -> Self {
            Self::default()
        }
    }

    impl Service<()> for Slow {
        type Response = ();
        type Error = Infallible;
        type Future = Ready<Result<(), Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.polls += 1;
            if self.polls < 2 { Poll::Pending } else { Poll::Ready(Ok(())) }
        }

        fn call(&mut self, (): ()) -> Self::Future {
            assert!(self.polls >= 2, "called before it was ready");
            self.polls = 0;
            ready(Ok(()))
        }
    }

    #[test]
    fn the_clone_that_is_ready_is_called() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut shared = SharedLayer(layer_fn(|()| Slow::default())).layer(());
        for _ in 0..3 {
            assert!(shared.poll_ready(&mut cx).is_pending());
            let mut other = shared.clone();
            assert!(shared.poll_ready(&mut cx).is_ready());
            assert!(other.poll_ready(&mut cx).is_pending(), "a clone begins anew");
            drop(shared.call(()));
        }
    }
}
